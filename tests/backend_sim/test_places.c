/* Places: random runs of every system, with failures, newcomers, caches that change and training, held to the
 * rules of world.h by place_check. What breaks none of them here overwrites nothing on a real GPU. */
#include <criterion/criterion.h>

#include "core/balancer.h"
#include "place_check.h"
#include "small_world.h"

#define MB 1000000ULL

static uint64_t draw(GRand *rand, uint64_t low, uint64_t high)
{
  return low + (uint64_t)(g_rand_double(rand) * (double)(high - low + 1));
}

static void draw_models(GRand *rand, struct small_world *w)
{
  uint32_t profiles = (uint32_t)draw(rand, 1, 3);
  for (uint32_t p = 0; p < profiles; p++) {
    uint64_t bytes[12];
    double compute[12];
    uint32_t layers = (uint32_t)draw(rand, 1, 12);
    for (uint32_t i = 0; i < layers; i++) {
      bytes[i] = draw(rand, 0, 5) == 0 ? draw(rand, 0, 5000) : draw(rand, 1, 40 * MB);
      compute[i] = (double)draw(rand, 1000, 3000000);
    }
    small_world_model(w, layers, bytes, compute, (uint32_t)draw(rand, 1, 8));
  }
}

static void draw_hardware(GRand *rand, struct small_world *w)
{
  struct hardware *hw = &w->config.hardware[0];
  hw->nic_bytes_s = (double)draw(rand, 1, 12) * 1e9;
  hw->pcie_bytes_s = (double)draw(rand, 1, 12) * 1e9;
  hw->gpus_per_pcie_switch = (uint32_t)draw(rand, 1, 2);
  hw->control_ns = 21000;
  hw->net_stream_ns = 33000;
  hw->net_group_ns = 5100;
  hw->pcie_transfer_ns = 7300;
  hw->group_sync_ns = 11000;
  hw->mps_max_processes = 4;
  hw->mps_process_bytes = 30 * MB;
  hw->mps_process_start_ns = 20e6;
  hw->mps_queue_max = 3;
  w->config.memory_hardware = *hw;
  w->config.memory_hardware.memory_nic_bytes_s = (double)draw(rand, 1, 6) * 1e9;
}

static uint64_t largest_group(const struct small_world *w)
{
  uint64_t largest = 1;
  for (uint32_t p = 0; p < w->plans->profiles; p++)
    for (int source = SOURCE_REMOTE; source <= SOURCE_SSD; source++) {
      const struct grouping *g = load_plan(w->plans, p, 0, (enum load_source)source)->grouping;
      for (uint32_t j = 0; j < g->groups; j++)
        largest = MAX(largest, g->bytes[j]);
    }
  return largest;
}

static uint64_t largest_model(const struct small_world *w)
{
  uint64_t largest = 1;
  for (uint32_t m = 0; m < catalog_models(w->catalog); m++)
    largest = MAX(largest, catalog_bytes(w->catalog, m));
  return largest;
}

/* Memories a few models large, at times just large enough. */
static void draw_memory(GRand *rand, struct small_world *w)
{
  struct config *config = &w->config;
  uint64_t model = largest_model(w), group = largest_group(w);
  config->train_state_bytes = draw(rand, 0, 2) == 0 ? draw(rand, 1, 50 * MB) : 0;
  config->gpu_model_bytes = model + 30 * MB + draw(rand, 0, 3) * model + draw(rand, 0, 2) * 50 * MB;
  config->gpu_models_max = (uint32_t)draw(rand, 0, 2);
  config->host_cache_bytes = draw(rand, 0, 3) == 0 ? 0 : draw(rand, 0, 4 * model);
  config->staging_bytes =
      draw(rand, 0, 1) ? model + draw(rand, 0, model) : draw(rand, group, MAX(group, model));
  config->window_bytes = draw(rand, 0, 1) ? 0 : draw(rand, 1, 60 * MB);
  config->warm = draw(rand, 0, 1) == 0;
  config->host_policy = draw(rand, 0, 1) ? &tier_policy_lru : &tier_policy_weighted;
}

static void draw_world(GRand *rand, struct small_world *w)
{
  static const struct grouping_policy groupings[] = {
      {GROUPING_PER_LAYER, 0}, {GROUPING_FIXED, 20 * MB}, {GROUPING_COUNT, 3}, {GROUPING_OPTIMAL, 0}};
  struct config *config = &w->config;
  w->grouping = groupings[draw(rand, 0, 3)];
  w->servers = (uint32_t)draw(rand, 1, 3);
  w->servers_later = 1;
  w->gpus_per_server = (uint32_t)draw(rand, 1, 3);
  w->memory_servers = (uint32_t)draw(rand, 1, 5);
  w->memory_servers_later = 2;
  config->replicas = (uint32_t)draw(rand, 1, MIN(3, w->memory_servers));
  config->ssd_copies = (uint32_t)draw(rand, 1, w->servers);
  config->sharding = (enum sharding_kind)draw(rand, SHARDING_PER_APP, SHARDING_HYBRID);
  config->sequential = draw(rand, 0, 2) == 0;
  config->heartbeat_ns = 5 * NS_PER_MS;
  config->report_ns = (int64_t)draw(rand, 0, 1) * NS_PER_MS;
  draw_models(rand, w);
  draw_hardware(rand, w);
  small_world_plan(w);
  draw_memory(rand, w);
  if (draw(rand, 0, 1)) {
    config->train_profile = 0;
    config->train_step_ns = (int64_t)draw(rand, 1, 30) * NS_PER_MS;
    config->train_endless = TRUE;
    config->train_burst = draw(rand, 1, 4);
  }
}

static void draw_requests(GRand *rand, struct small_world *w, uint32_t requests)
{
  int64_t at = NS_PER_MS;
  uint64_t gap = draw(rand, 0, 2) == 0 ? 1 : draw(rand, 1, 30);
  for (uint32_t i = 0; i < requests; i++) {
    at += (int64_t)draw(rand, 0, 2 * gap) * NS_PER_MS;
    small_world_request(w, at, (uint32_t)draw(rand, 0, catalog_models(w->catalog) - 1));
  }
}

struct happenings {
  uint32_t servers, memory_servers; /* added so far */
  gboolean failed;                  /* a GPU server: one of them stays */
};

static void happen(GRand *rand, struct small_world *w, struct happenings *h)
{
  uint32_t memory = (uint32_t)draw(rand, 0, w->memory_servers - 1);
  uint64_t cache = w->config.host_cache_bytes;
  switch (draw(rand, 0, 7)) {
  case 0:
  case 1:
    if (w->config.system->residence == RESIDENCE_POOL)
      sim_fail_memory_server(w->sim, memory);
    break;
  case 2:
  case 3:
    if (w->config.system->residence == RESIDENCE_POOL && h->memory_servers < w->memory_servers_later)
      sim_add_memory_server(w->sim, w->memory_servers + h->memory_servers++);
    break;
  case 4:
    if (w->config.system->residence == RESIDENCE_POOL)
      sim_remove(w->sim, ACTOR_MEMORY_SERVER, memory);
    break;
  case 5:
    if (w->servers > 1 && !h->failed)
      sim_fail_gpu_server(w->sim, (uint32_t)draw(rand, 0, w->servers - 1));
    h->failed = TRUE;
    break;
  case 6:
    if (h->servers < w->servers_later)
      sim_add_gpu_server(w->sim, w->servers + h->servers++);
    break;
  default:
    sim_set_host_cache(w->sim, draw(rand, 0, cache + cache / 2));
  }
}

static struct place_counts run(const char *system, gboolean direct, guint32 seed)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
  struct small_world *w = small_world_new(system);
  struct happenings h = {0};
  w->config.gpudirect = direct;
  draw_world(rand, w);
  draw_requests(rand, w, 80);
  struct place_check *check = place_check_new(&w->config);
  w->options.watch = place_check_watch(check);
  gboolean quiet = draw(rand, 0, 2) == 0;
  if (!quiet)
    place_check_host_grows(check);
  small_world_start(w);
  int64_t last = w->request[w->requests - 1].at_ns, at = 0;
  while (w->answered < w->requests && at < last + 600 * NS_PER_S) {
    at += at < last ? (int64_t)draw(rand, 1, 150) * NS_PER_MS : 100 * NS_PER_S;
    sim_run(w->sim, at);
    if (!quiet && at < last)
      happen(rand, w, &h);
    cr_assert_null(place_check_problem(check), "%s, seed %u, %.6f s: %s", system, seed,
                   (double)sim_now(w->sim) / 1e9, place_check_problem(check));
  }
  cr_assert_eq(w->answered, w->requests, "%s, seed %u: %u of %u answered", system, seed, w->answered,
               w->requests);
  struct place_counts counts = place_check_counts(check);
  place_check_free(check);
  small_world_free(w);
  return counts;
}

static struct place_counts runs(const char *system, gboolean direct, guint32 seeds)
{
  struct place_counts sum = {0};
  for (guint32 seed = 1; seed <= seeds; seed++) {
    struct place_counts one = run(system, direct, seed);
    sum.fetches += one.fetches;
    sum.copies += one.copies;
    sum.computes += one.computes;
    sum.fills += one.fills;
    sum.served += one.served;
    sum.unserved += one.unserved;
    sum.rings += one.rings;
    sum.broken += one.broken;
    sum.direct += one.direct;
  }
  return sum;
}

Test(places, of_distmind)
{
  struct place_counts c = runs("distmind", FALSE, 300);
  cr_expect(c.rings > 500 && c.broken > 500 && c.served > c.fills / 2 && c.unserved > 500,
            "%lu rings, %lu broken, %lu served, %lu unserved", c.rings, c.broken, c.served, c.unserved);
}

Test(places, of_loads_that_land_in_gpu_memory)
{
  struct place_counts c = runs("distmind", TRUE, 200);
  cr_expect(c.direct > 1000 && c.copies > 500 && c.broken > 500,
            "%lu fetches, %lu of them direct, %lu copies, %lu broken", c.fetches, c.direct, c.copies,
            c.broken);
}

Test(places, of_the_baselines)
{
  static const char *const systems[] = {"pipeswitch", "ray", "mps", "serverlessllm", "ideal"};
  for (size_t i = 0; i < G_N_ELEMENTS(systems); i++) {
    struct place_counts c = runs(systems[i], FALSE, 150);
    cr_expect(c.computes > 2000 && (c.copies > 500 || i == 4), "%s: %lu computations, %lu copies", systems[i],
              c.computes, c.copies);
  }
}
