/* Loads that the network writes into GPU memory: what they share (against rates by brute force), what several
 * GPUs, a lost memory server and a host cache make of them, and who has no such path. Single loads are held
 * to the formula in test_every_path.c. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/balancer.h"
#include "harness/explain.h"
#include "harness/store_schema.h"
#include "lab.h"
#include "plain_fill.h"
#include "small_world.h"

#define MB 1000000ULL
#define AT NS_PER_S /* everybody has joined by then */

/* --- what is shared
 * ---------------------------------------------------------------------------------------------------------*/

#define FLOWS_MAX 64
#define LINKS_MAX 64

/* Bytes over links from a time on: for which request. */
struct fluid {
  struct plain_flow flow[FLOWS_MAX];
  long double left[FLOWS_MAX], start[FLOWS_MAX], end[FLOWS_MAX];
  uint32_t request[FLOWS_MAX], flows;
  double capacity[LINKS_MAX];
  uint32_t links;
};

static void fluid_add(struct fluid *f, uint32_t request, int64_t start, uint64_t bytes, uint32_t count,
                      const link_id *links)
{
  uint32_t i = f->flows++;
  g_assert(i < FLOWS_MAX && count <= FLOW_LINKS_MAX);
  f->flow[i] = (struct plain_flow){.count = count};
  memcpy(f->flow[i].links, links, count * sizeof *links);
  f->request[i] = request;
  f->start[i] = start;
  f->left[i] = bytes;
}

/* Lets all flows run to their ends, rates filled anew whenever one starts or ends. */
static void fluid_run(struct fluid *f)
{
  long double now = 0;
  for (;;) {
    long double next = INFINITY;
    for (uint32_t i = 0; i < f->flows; i++)
      f->flow[i].active = f->start[i] <= now && f->left[i] > 0;
    plain_fill(f->capacity, f->links, f->flow, f->flows);
    for (uint32_t i = 0; i < f->flows; i++)
      if (f->flow[i].active)
        next = MIN(next, now + f->left[i] * 1e9L / f->flow[i].rate);
      else if (f->start[i] > now)
        next = MIN(next, f->start[i]);
    if (isinf(next))
      return;
    for (uint32_t i = 0; i < f->flows; i++) {
      if (!f->flow[i].active)
        continue;
      f->left[i] -= (next - now) * f->flow[i].rate / 1e9L;
      if (f->left[i] < 1e-6L) {
        f->left[i] = 0;
        f->end[i] = next;
      }
    }
    now = next;
  }
}

static int draw(GRand *rand, int low, int high)
{
  return g_rand_int_range(rand, low, high + 1);
}

/* A cluster whose GPUs hold a model each, with as many models more: the first of those in the host caches.
 * Each request is for one of them, on the next GPU. */
struct sharing {
  struct small_world *w;
  uint32_t gpus, cached;
  uint64_t bytes[16];
};

static struct sharing draw_sharing(GRand *rand)
{
  struct sharing s = {.w = small_world_new("distmind")};
  struct config *config = &s.w->config;
  double compute = 1000;
  s.w->grouping = (struct grouping_policy){.kind = GROUPING_PER_APP};
  s.w->servers = (uint32_t)draw(rand, 1, 2);
  s.w->gpus_per_server = (uint32_t)draw(rand, 1, 4);
  s.w->memory_servers = (uint32_t)draw(rand, 1, 4);
  s.gpus = s.w->servers * s.w->gpus_per_server;
  config->gpudirect = TRUE;
  config->warm = TRUE;
  config->gpu_models_max = 1;
  config->sharding = draw(rand, 0, 1) ? SHARDING_HYBRID : SHARDING_PER_APP;
  config->balancer = &balancer_round_robin;
  config->hardware[0].gpus_per_pcie_switch = (uint32_t)draw(rand, 1, 4);
  config->hardware[0].pcie_bytes_s = draw(rand, 2, 12) * 1e9;
  config->hardware[0].nic_bytes_s = draw(rand, 2, 30) * 1e9;
  config->hardware[0].spine_oversubscription = draw(rand, 1, 2);
  config->memory_hardware.memory_nic_bytes_s = draw(rand, 1, 9) * 1e9;
  for (uint32_t m = 0; m < 2 * s.gpus; m++) {
    s.bytes[m] = (uint64_t)draw(rand, 1000000, 80000000);
    small_world_model(s.w, 1, &s.bytes[m], &compute, 1);
  }
  s.cached = (uint32_t)draw(rand, 0, (int)s.gpus);
  for (uint32_t m = 0; s.cached > 0 && m < s.gpus + s.cached; m++)
    config->host_cache_bytes += s.bytes[m];
  return s;
}

static void request_all(GRand *rand, const struct sharing *s)
{
  int64_t at = AT;
  for (uint32_t g = 0; g < s->gpus; g++, at += draw(rand, 0, 1) * draw(rand, 0, 12000000))
    small_world_request(s->w, at, s->gpus + g);
}

/* Links: egress of each memory server, ingress of each server, then GPUs, then their switches, and the spine.
 */
static void fluid_of(const struct sharing *s, struct fluid *f)
{
  const struct small_world *w = s->w;
  const struct hardware *hw = &w->config.hardware[0];
  uint32_t per = w->gpus_per_server, m = w->memory_servers, ingress = m, own = m + w->servers;
  uint32_t switches = own + s->gpus, spine = switches + s->gpus;
  double egress = w->config.memory_hardware.memory_nic_bytes_s;
  f->links = spine + 1;
  for (uint32_t l = 0; l < f->links; l++)
    f->capacity[l] = l < m ? egress : l < own ? hw->nic_bytes_s : hw->pcie_bytes_s;
  f->capacity[spine] = hw->spine_oversubscription > 1
                           ? MIN(egress * m, hw->nic_bytes_s * w->servers) / hw->spine_oversubscription
                           : 0;
  for (uint32_t g = 0; g < s->gpus; g++) {
    uint32_t server = g / per,
             first = server * per + g % per / hw->gpus_per_pcie_switch * hw->gpus_per_pcie_switch;
    uint64_t bytes = s->bytes[s->gpus + g];
    gboolean whole = w->config.sharding == SHARDING_PER_APP;
    int64_t at = w->request[g].at_ns;
    if (g < s->cached)
      fluid_add(f, g, at, bytes, 2, (link_id[]){own + g, switches + first});
    for (uint32_t i = 0; g >= s->cached && i < (whole ? 1 : m); i++)
      fluid_add(f, g, at, whole ? bytes : bytes / m + (i < bytes % m), 4,
                (link_id[]){i, ingress + server, switches + first, spine});
  }
}

Test(gpudirect, loads_share_links_as_brute_force_says)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(11);
  uint32_t both = 0;
  for (int round = 0; round < 300; round++) {
    struct sharing s = draw_sharing(rand);
    struct fluid f = {.flows = 0};
    request_all(rand, &s);
    small_world_run(s.w, TIME_NEVER);
    fluid_of(&s, &f);
    fluid_run(&f);
    uint64_t net = 0, pcie = 0;
    for (uint32_t r = 0; r < s.gpus; r++) {
      long double end = 0;
      for (uint32_t i = 0; i < f.flows; i++)
        if (f.request[i] == r)
          end = MAX(end, f.end[i]);
      double expected = (double)(end - s.w->request[r].at_ns) + 1000;
      cr_expect_float_eq((double)small_world_latency(s.w, r), expected, 2, "round %d, request %u of %u",
                         round, r, s.gpus);
      net += r < s.cached ? 0 : s.bytes[s.gpus + r];
      pcie += s.bytes[s.gpus + r];
    }
    struct usage usage;
    sim_usage(s.w->sim, &usage);
    cr_expect(usage.net_bytes == net && usage.pcie_bytes == pcie, "round %d", round);
    both += s.cached > 0 && s.cached < s.gpus;
    small_world_free(s.w);
  }
  cr_expect_gt(both, 50, "copies and NICs were on PCIe together %u times only", both);
}

/* --- by hand
 * ---------------------------------------------------------------------------------------------------------*/

/* Four groups of 10 MB, computed in a millisecond each; one memory server sends 4 GB/s: one every 2.5 ms. */
static struct small_world *four_groups(uint32_t gpus)
{
  static const uint64_t bytes[] = {10 * MB, 10 * MB, 10 * MB, 10 * MB};
  static const double compute[] = {1e6, 1e6, 1e6, 1e6};
  struct small_world *w = small_world_new("distmind");
  w->grouping = (struct grouping_policy){.kind = GROUPING_PER_LAYER};
  w->gpus_per_server = gpus;
  w->memory_servers = 2;
  w->config.gpudirect = TRUE;
  w->config.sharding = SHARDING_PER_APP;
  w->config.host_cache_bytes = 1000 * MB; /* nothing enters it */
  small_world_model(w, 4, bytes, compute, 1);
  return w;
}

/* A request for a model under way joins on the same GPU; another GPU has a load of its own, at half the rate
 * each. */
Test(gpudirect, another_gpu_loads_for_itself)
{
  struct small_world *w = four_groups(2);
  static const enum found found[] = {FOUND_REMOTE, FOUND_REMOTE, FOUND_JOINED, FOUND_JOINED, FOUND_RESIDENT};
  static const double ms[] = {21, 21, 25, 25, 4};
  w->config.balancer = &balancer_round_robin;
  for (uint32_t i = 0; i < 4; i++)
    small_world_request(w, AT, 0);
  small_world_request(w, 2 * AT, 0);
  small_world_run(w, TIME_NEVER);
  for (uint32_t i = 0; i < 5; i++) {
    double latency = (double)small_world_latency(w, i) / 1e6;
    cr_expect(w->request[i].answer.found == (uint32_t)found[i], "request %u", i);
    cr_expect_float_eq(latency, ms[i], 1e-5, "request %u: %.6f ms", i, latency);
  }
  struct usage usage;
  sim_usage(w->sim, &usage);
  cr_expect(usage.loads[SOURCE_REMOTE] == 2 && usage.loads[SOURCE_HOST] == 0 && usage.net_bytes == 80 * MB);
  cr_expect_eq(usage.host_bytes, 1000 * MB, "no staging");
  small_world_free(w);
}

/* A memory server falls silent after 6 ms: two groups are on the GPU, of the third 4 MB. The other copy
 * brings that one anew, and no more than it must. */
Test(gpudirect, a_lost_memory_server_costs_what_was_under_way)
{
  struct small_world *w = four_groups(1);
  w->config.replicas = 2;
  w->config.heartbeat_ns = NS_PER_MS;
  small_world_request(w, AT, 0);
  small_world_until(w, AT + 6 * NS_PER_MS);
  sim_fail_memory_server(w->sim, 0);
  small_world_until(w, AT + NS_PER_S);
  struct usage usage;
  sim_usage(w->sim, &usage);
  cr_expect_eq(w->request[0].answer.outcome, OUTCOME_COMPLETED);
  cr_expect(usage.net_bytes == 44 * MB && usage.pcie_bytes == 44 * MB, "%" G_GUINT64_FORMAT " bytes came",
            usage.net_bytes);
  double ms = (double)small_world_latency(w, 0) / 1e6;
  cr_expect(ms > 6 + 5 + 1 && ms < 6 + 5 + 5 + 1, "it took %.6f ms", ms);
  small_world_free(w);
}

/* No other copy: the request is lost, and the GPU's memory is free again for the next one. */
Test(gpudirect, without_another_copy_the_request_is_lost)
{
  struct small_world *w = four_groups(1);
  w->config.heartbeat_ns = NS_PER_MS;
  w->config.gpu_model_bytes = 40 * MB;
  small_world_model(w, 1, (uint64_t[]){40 * MB}, (double[]){1e6}, 2); /* its second variant is elsewhere */
  small_world_request(w, AT, 0);
  small_world_request(w, AT + 7 * NS_PER_MS, 2);
  small_world_until(w, AT + 6 * NS_PER_MS);
  sim_fail_memory_server(w->sim, 0);
  small_world_until(w, AT + NS_PER_S);
  cr_expect_eq(w->request[0].answer.outcome, OUTCOME_LOST);
  cr_expect_eq(w->request[1].answer.outcome, OUTCOME_COMPLETED);
  small_world_free(w);
}

/* --- whole runs
 * ---------------------------------------------------------------------------------------------------------*/

/* Only systems whose models live in the memory pool have remote loads. */
Test(gpudirect, says_nothing_to_systems_without_a_pool)
{
  static const char *const systems[] = {"ideal", "ideal-shared",  "pipeswitch", "mps",
                                        "ray",   "serverlessllm", "distmind"};
  g_autoptr(Lab) lab = lab_new();
  for (size_t i = 0; i < G_N_ELEMENTS(systems); i++) {
    g_autoptr(LabResult) host =
        lab_run(lab, systems[i], "models.a=40", "workload.duration_s=3", "cluster.gpu_memory_gb=1", NULL);
    g_autoptr(LabResult) direct = lab_run(lab, systems[i], "models.a=40", "workload.duration_s=3",
                                          "cluster.gpu_memory_gb=1", "pipeline.path=gpudirect", NULL);
    gboolean pool = strcmp(systems[i], "distmind") == 0;
    cr_expect((strcmp(host->json, direct->json) != 0) == pool, "%s", systems[i]);
    cr_expect(!pool || direct->figures.loads_remote > 0);
  }
}

Test(gpudirect, tells_that_a_window_holds_nothing_back)
{
  g_autoptr(Lab) lab = lab_new();
  g_autoptr(LabResult) direct =
      lab_run(lab, "distmind", "models.a=1", "pipeline.path=gpudirect", "pipeline.window_mb=10", NULL);
  cr_expect(strstr(direct->notices, "window_mb"), "%s", direct->notices);
  g_autoptr(LabResult) host = lab_run(lab, "distmind", "models.a=1", "pipeline.window_mb=10", NULL);
  cr_expect_null(strstr(host->notices, "window_mb"));
}

/* Staging that is too small for a group is no matter where nothing is staged. */
Test(gpudirect, needs_no_staging)
{
  g_autoptr(Lab) lab = lab_new();
  g_autofree char *message = lab_refusal(lab, "distmind", "models.a=1", "cluster.staging_gb=0.001",
                                         "pipeline.grouping=per-app", NULL);
  cr_expect(strstr(message, "staging"), "%s", message);
  g_autoptr(LabResult) direct =
      lab_run(lab, "distmind", "models.a=1", "cluster.staging_gb=0.001", "pipeline.grouping=per-app",
              "experiment.initial=cold", "pipeline.path=gpudirect", NULL);
  cr_expect(direct->figures.failed == 0 && direct->figures.loads_remote == 1);
}

/* Two GPUs of one server load a model at once: each request is told its own groups' arrivals. */
Test(gpudirect, a_request_is_explained_by_its_own_load)
{
  g_autoptr(Lab) lab = lab_new();
  lab_write(lab, "t.csv", "arrival_s,model\n0.5,a-0\n0.5,a-0\n");
  lab->rows = TRUE;
  g_autoptr(LabResult) result =
      lab_run(lab, "distmind", "models.a=1", "workload.kind=trace", "workload.trace=t.csv",
              "workload.map=name", "workload.duration_s=0", "cluster.gpus_per_server=2",
              "cluster.nic_gbit_s=10", "balancing.policy=round_robin", "experiment.initial=cold",
              "pipeline.path=gpudirect", "pipeline.grouping=count:2", "output.decisions=all", NULL);
  g_autofree char *database = g_build_filename(lab->folder, "x.db", NULL);
  g_autoptr(StoreReader) reader = store_open(database, NULL);
  cr_assert(reader && result->figures.loads_remote == 2);
  for (uint64_t request = 0; request < 2; request++) {
    char *story = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&story, &length);
    gboolean told = explain_request(out, reader, "distmind", request, NULL);
    fclose(out);
    cr_expect(told && strstr(story, "\ngroup 1 ") && !strstr(story, "came to the server for"), "%s", story);
    free(story);
  }
}
