/* One request on an idle cluster, held to the design's formulas: every grouping, sharding, order and source.
 */
#include <criterion/criterion.h>
#include <math.h>
#include "oracle.h"
#include "small_world.h"

#define AT NS_PER_S /* requests are sent at whole seconds: long after the actors have met */

static const uint64_t layer_bytes[] = {1000003, 0, 52000001, 7000000, 7000000, 0, 0, 120000007, 4000001, 9};
static const double layer_ns[] = {300000, 20000, 4000000,  900000.5, 900000.25,
                                  10000,  10000, 12000000, 50000,    400000};
#define LAYERS G_N_ELEMENTS(layer_bytes)

static const struct grouping_policy groupings[] = {{GROUPING_PER_LAYER, 0},
                                                   {GROUPING_FIXED, 20000000},
                                                   {GROUPING_COUNT, 3},
                                                   {GROUPING_PER_APP, 0},
                                                   {GROUPING_OPTIMAL, 0}};

static void overheads(struct small_world *w)
{
  struct hardware *hw = &w->config.hardware[0];
  hw->control_ns = 21000;
  hw->net_stream_ns = 33000;
  hw->net_group_ns = 5100;
  hw->pcie_transfer_ns = 7300;
  hw->group_sync_ns = 11000;
  hw->launch_ns = 4500;
  hw->ray_proxy_ns = 1500000;
  hw->ray_tensor_ns = 8100;
}

static void expect_ns(const struct small_world *w, uint32_t request, long double formula, double tolerance,
                      const char *what)
{
  double expected = (double)(4 * w->config.hardware[0].control_ns + formula);
  int64_t found = small_world_latency(w, request);
  cr_expect(w->request[request].answers == 1 && fabs((double)found - expected) <= tolerance,
            "%s: request %u took %" G_GINT64_FORMAT " ns, the formula says %.2f", what, request, found,
            expected);
}

/* Rates that make another stage the slowest each time; 0 is infinitely fast. */
static const struct {
  double nic, memory_nic, pcie;
} rates[] = {{10e9, 4e9, 8e9}, {5e9, 4e9, 50e9}, {40e9, 3e9, 20e9}, {0, 2e9, 0}};

/* Two rates one after the other; 0 is infinitely fast. */
static double slower(double a, double b)
{
  return a > 0 && b > 0 ? MIN(a, b) : MAX(a, b);
}

/* A model never seen, the same from the GPU, another one that takes its place, and it again from the host
 * cache; with gpudirect, which no host cache sees, from the pool. */
static void check_distmind(uint32_t g, enum sharding_kind sharding, gboolean sequential, uint32_t r,
                           gboolean costs, gboolean direct)
{
  struct small_world *w = small_world_new("distmind");
  struct hardware *hw = &w->config.hardware[0];
  w->grouping = groupings[g];
  w->config.sharding = sharding;
  w->config.sequential = sequential;
  w->config.gpudirect = direct;
  w->config.window_bytes = direct; /* holds nothing back */
  w->config.gpu_models_max = 1;
  w->config.host_cache_bytes = costs ? 1000 * BYTES_PER_GB : 0;
  hw->nic_bytes_s = rates[r].nic;
  hw->pcie_bytes_s = rates[r].pcie;
  w->config.memory_hardware.memory_nic_bytes_s = rates[r].memory_nic;
  if (costs)
    overheads(w);
  uint32_t model = small_world_model(w, LAYERS, layer_bytes, layer_ns, 2);
  static const uint32_t order[] = {0, 0, 1, 0};
  for (uint32_t i = 0; i < G_N_ELEMENTS(order); i++)
    small_world_request(w, AT * (i + 1), model + order[i]);
  small_world_run(w, TIME_NEVER);
  const struct profile *p = small_world_profile(w, model);
  const struct grouping *remote = small_world_grouping(w, model, SOURCE_REMOTE);
  uint64_t cut[ORACLE_GROUPS_MAX][ORACLE_SLOTS_MAX];
  long double net[ORACLE_GROUPS_MAX];
  oracle_cut(remote, sharding, w->memory_servers, 0, cut);
  double ingress = direct ? slower(rates[r].nic, rates[r].pcie) : rates[r].nic;
  oracle_net(cut, remote->groups, w->memory_servers, sequential, rates[r].memory_nic, ingress,
             hw->net_stream_ns, hw->net_group_ns, net);
  g_autofree char *what =
      g_strdup_printf("grouping %u, %s, %s, rates %u, overheads %d, gpudirect %d", g, sharding_name(sharding),
                      sequential ? "sequential" : "parallel", r, costs, direct);
  long double load = direct ? oracle_two_stages(remote, p, hw, net) : oracle_pipeline(remote, p, hw, net, 0);
  expect_ns(w, 0, load, 1, what);
  expect_ns(w, 1, oracle_resident(p, hw), 1, what);
  expect_ns(w, 2, load, 1, what);
  gboolean cached = costs && !direct;
  long double again =
      cached ? oracle_pipeline(small_world_grouping(w, model, SOURCE_HOST), p, hw, NULL, 0) : load;
  expect_ns(w, 3, again, 1, what);
  struct usage usage;
  sim_usage(w->sim, &usage);
  uint64_t loads = cached ? 2 : 3;
  cr_expect(usage.loads[SOURCE_REMOTE] == loads && usage.loads[SOURCE_HOST] == 3 - loads, "%s", what);
  cr_expect(usage.net_bytes == loads * p->param_bytes && usage.pcie_bytes == 3 * p->param_bytes,
            "%s: %" G_GUINT64_FORMAT " bytes over the network, %" G_GUINT64_FORMAT
            " over PCIe, model %" G_GUINT64_FORMAT,
            what, usage.net_bytes, usage.pcie_bytes, p->param_bytes);
  small_world_free(w);
}

Test(every_path, distmind_in_every_grouping_sharding_and_order)
{
  for (uint32_t g = 0; g < G_N_ELEMENTS(groupings); g++)
    for (int sharding = SHARDING_PER_APP; sharding <= SHARDING_HYBRID; sharding++)
      for (int sequential = 0; sequential < 2; sequential++)
        for (uint32_t r = 0; r < G_N_ELEMENTS(rates); r++)
          for (int costs = 0; costs < 2; costs++)
            for (int direct = 0; direct < 2; direct++)
              check_distmind(g, (enum sharding_kind)sharding, sequential, r, costs, direct);
}

static void check_local(const char *system, uint32_t g, gboolean costs)
{
  struct small_world *w = small_world_new(system);
  const struct hardware *hw = &w->config.hardware[0];
  w->grouping = groupings[g];
  if (costs)
    overheads(w);
  uint32_t model = small_world_model(w, LAYERS, layer_bytes, layer_ns, 1);
  small_world_request(w, AT, model);
  small_world_request(w, 2 * AT, model);
  small_world_run(w, TIME_NEVER);
  const struct profile *p = small_world_profile(w, model);
  gboolean ssd = w->config.system->residence == RESIDENCE_SSD;
  const struct grouping *grouping = small_world_grouping(w, model, ssd ? SOURCE_SSD : SOURCE_HOST);
  uint64_t cut[ORACLE_GROUPS_MAX][ORACLE_SLOTS_MAX];
  long double net[ORACLE_GROUPS_MAX];
  oracle_cut(grouping, SHARDING_PER_APP, 1, 0, cut);
  oracle_net(cut, grouping->groups, 1, FALSE, hw->ssd_bytes_s, 0, 0, 0, net);
  expect_ns(w, 0, oracle_pipeline(grouping, p, hw, ssd ? net : NULL, 0), 1, system);
  expect_ns(w, 1, oracle_resident(p, hw), 1, system);
  small_world_free(w);
}

Test(every_path, pipeswitch_from_host_and_serverlessllm_from_ssd)
{
  for (uint32_t g = 0; g < G_N_ELEMENTS(groupings); g++)
    for (int costs = 0; costs < 2; costs++) {
      check_local("pipeswitch", g, costs);
      check_local("serverlessllm", g, costs);
    }
}

Test(every_path, ideal_computes_alone)
{
  struct small_world *w = small_world_new("ideal");
  overheads(w);
  uint32_t model = small_world_model(w, LAYERS, layer_bytes, layer_ns, 1);
  small_world_request(w, AT, model);
  small_world_run(w, TIME_NEVER);
  expect_ns(w, 0, oracle_resident(small_world_profile(w, model), &w->config.hardware[0]), 1, "ideal");
  small_world_free(w);
}

/* Copy back with what a switch takes beyond that, copy, tensors, proxy; nothing overlaps. Two nanoseconds:
 * its stages begin at completions, which are whole. */
Test(every_path, ray_stops_and_goes)
{
  struct small_world *w = small_world_new("ray");
  const struct hardware *hw = &w->config.hardware[0];
  overheads(w);
  w->config.gpu_models_max = 1;
  uint32_t model = small_world_model(w, LAYERS, layer_bytes, layer_ns, 2);
  struct profile *p = small_world_profile(w, model);
  p->tensors = 161;
  p->timing[0].swap_extra_ns = 88370001;
  for (uint32_t i = 0; i < 2; i++)
    small_world_request(w, AT * (i + 1), model + i);
  small_world_run(w, TIME_NEVER);
  long double tensors = 161 * hw->ray_tensor_ns + hw->pcie_transfer_ns;
  long double in = tensors + oracle_transfer(p->param_bytes, hw->pageable_bytes_s);
  long double back = tensors + oracle_transfer(p->param_bytes, hw->pageable_to_host_bytes_s) + 88370001;
  long double rest = hw->ray_proxy_ns + oracle_resident(p, hw);
  expect_ns(w, 0, rest + in, 2, "first model");
  expect_ns(w, 1, rest + back + in, 2, "the old one leaves");
  small_world_free(w);
}

/* The request that causes the start is answered by the process's first inference, which is not counted
 * twice: it costs what it takes beyond a warm one, then the request computes. */
static void check_process_start(double first_ns)
{
  struct small_world *w = small_world_new("mps");
  struct hardware *hw = &w->config.hardware[0];
  overheads(w);
  hw->mps_process_start_ns = 2e9 + 7;
  uint32_t model = small_world_model(w, LAYERS, layer_bytes, layer_ns, 1);
  struct profile *p = small_world_profile(w, model);
  p->timing[0].unpickle_ns = 333333333;
  p->timing[0].first_inference_ns = first_ns;
  small_world_request(w, AT, model);
  small_world_request(w, 10 * AT, model);
  small_world_run(w, TIME_NEVER);
  long double warm = 0, launches = LAYERS * hw->launch_ns;
  for (uint32_t i = 0; i < LAYERS; i++)
    warm += layer_ns[i];
  long double start = hw->mps_process_start_ns + 333333333 + hw->pcie_transfer_ns +
                      oracle_transfer(p->param_bytes, hw->pageable_bytes_s);
  expect_ns(w, 0, start + (first_ns > 0 ? first_ns : warm) + launches, 2, "process start");
  expect_ns(w, 1, oracle_resident(p, hw), 1, "process there");
  small_world_free(w);
}

Test(every_path, mps_starts_a_process)
{
  check_process_start(777777777);
  check_process_start(0); /* not measured: a warm one */
}

/* One stream with a window of W bytes: after group j it waits until no more than W of what came is still to
 * be uploaded, so group j + 1 begins at max(byte(j), pcie(k)), k the first group with the bytes of k + 1 .. j
 * within W. */
static long double windowed(const struct grouping *g, const struct profile *p, const struct hardware *hw,
                            uint64_t window, double rate)
{
  long double net[ORACLE_GROUPS_MAX], pcie[ORACLE_GROUPS_MAX], byte = hw->net_stream_ns;
  for (uint32_t j = 0; j < g->groups; j++) {
    uint64_t waiting = 0;
    uint32_t k = j; /* groups k .. j - 1 may wait */
    while (k > 0 && waiting + g->bytes[k - 1] <= window)
      waiting += g->bytes[--k];
    if (k > 0 && pcie[k - 1] > byte)
      byte = pcie[k - 1];
    byte += oracle_transfer(g->bytes[j], rate);
    net[j] = byte + (j + 1) * hw->net_group_ns;
    pcie[j] = MAX(net[j], j ? pcie[j - 1] : 0) + hw->pcie_transfer_ns +
              oracle_transfer(g->bytes[j], hw->pcie_bytes_s);
  }
  return oracle_pipeline(g, p, hw, net, 0);
}

Test(every_path, window_holds_the_stream_back)
{
  static const uint64_t bytes[] = {9000000, 4000000,  30000001, 5000000, 6000000,
                                   7000000, 21000000, 1000,     8000000};
  static const double compute[G_N_ELEMENTS(bytes)] = {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000};
  static const uint64_t windows[] = {1, 5000000, 12000000, 40000000, 1000000000};
  static const double pcie_rates[] = {1e9, 3e9, 8e9};
  for (uint32_t i = 0; i < G_N_ELEMENTS(windows) * G_N_ELEMENTS(pcie_rates) * 2; i++) {
    struct small_world *w = small_world_new("distmind");
    struct hardware *hw = &w->config.hardware[0];
    w->grouping = groupings[0];
    w->config.sharding = SHARDING_PER_APP;
    if (i % 2)
      overheads(w);
    w->config.window_bytes = windows[i / 2 % G_N_ELEMENTS(windows)];
    hw->pcie_bytes_s = pcie_rates[i / 2 / G_N_ELEMENTS(windows)];
    uint32_t model = small_world_model(w, G_N_ELEMENTS(bytes), bytes, compute, 1);
    small_world_request(w, AT, model);
    small_world_run(w, TIME_NEVER);
    const struct grouping *g = small_world_grouping(w, model, SOURCE_REMOTE);
    g_autofree char *what =
        g_strdup_printf("window %" G_GUINT64_FORMAT ", PCIe %g", w->config.window_bytes, hw->pcie_bytes_s);
    expect_ns(w, 0, windowed(g, small_world_profile(w, model), hw, w->config.window_bytes, 4e9), 1, what);
    small_world_free(w);
  }
}
