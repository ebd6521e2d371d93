/* What several GPUs and several streams share, worked by hand: a PCIe switch, an oversubscribed spine, a
 * window of bytes that wait for PCIe; and clusters of two kinds of GPU server. */
#include "oracle.h"
#include "small_world.h"

#include <criterion/criterion.h>
#include <math.h>

#include "core/balancer.h"

#define MB 1000000ULL
#define AT NS_PER_S /* everybody has joined by then */

static void expect_ms(const struct small_world *w, uint32_t request, double ms, const char *what)
{
  double found = (double)small_world_latency(w, request);
  cr_expect(w->request[request].answers == 1 && fabs(found - ms * 1e6) <= 2,
            "%s: request %u took %.6f ms, by hand %.6f", what, request, found / 1e6, ms);
}

static uint32_t whole_model(struct small_world *w, uint64_t bytes, double compute_ns)
{
  return small_world_model(w, 1, &bytes, &compute_ns, 1);
}

/* --- PCIe switches: PCIe alone moves 8 GB/s
 * ---------------------------------------------------------------------------------------------------------*/

/* Models of these sizes are loaded from host memory, each onto the next GPU of one server. */
static struct small_world *switches_new(uint32_t width, const uint64_t *mb, uint32_t models)
{
  struct small_world *w = small_world_new("pipeswitch");
  w->grouping = (struct grouping_policy){.kind = GROUPING_PER_APP};
  w->gpus_per_server = models;
  w->config.hardware[0].gpus_per_pcie_switch = width;
  w->config.balancer = &balancer_round_robin;
  for (uint32_t i = 0; i < models; i++)
    whole_model(w, mb[i] * MB, 1e6);
  return w;
}

/* 80 and 40 MB behind one switch: 4 GB/s each until the 40 are over at 10 ms, then 40 more at 8 GB/s; 60 and
 * 32 MB behind another: 8 ms, then 28 MB in 3.5 ms. One millisecond of compute each. */
Test(topology, gpus_of_a_switch_share_its_link)
{
  static const uint64_t mb[] = {80, 40, 60, 32};
  static const double shared_ms[] = {16, 11, 12.5, 9}, alone_ms[] = {11, 6, 8.5, 5};
  for (uint32_t width = 1; width <= 2; width++) {
    struct small_world *w = switches_new(width, mb, 4);
    for (uint32_t i = 0; i < 4; i++)
      small_world_request(w, AT, i);
    small_world_run(w, TIME_NEVER);
    for (uint32_t i = 0; i < 4; i++)
      expect_ms(w, i, width == 2 ? shared_ms[i] : alone_ms[i], width == 2 ? "two a switch" : "one a switch");
    small_world_free(w);
  }
}

/* An overhead delays and occupies no link. 80 MB from 0.5 ms on; 40 MB, 5 ms later, from 5.5: by then 40 of
 * the 80 have gone, and 40 and 40 share until 15.5. */
Test(topology, overheads_of_copies_occupy_no_switch)
{
  static const uint64_t mb[] = {80, 40, 80};
  struct small_world *w = switches_new(2, mb, 3);
  w->config.hardware[0].pcie_transfer_ns = 500000;
  small_world_request(w, AT, 0);
  small_world_request(w, AT + 5 * NS_PER_MS, 1);
  small_world_request(w, AT + 5 * NS_PER_MS, 2);
  small_world_run(w, TIME_NEVER);
  expect_ms(w, 0, 15.5 + 1, "first");
  expect_ms(w, 1, 10.5 + 1, "second");
  expect_ms(w, 2, 10.5 + 1, "behind another switch");
  small_world_free(w);
}

/* A switch of four with three GPUs: a third each of 8 GB/s while all three load, to their own hosts' memory
 * too. */
Test(topology, three_gpus_of_a_wide_switch)
{
  static const uint64_t mb[] = {8, 16, 24};
  struct small_world *w = switches_new(4, mb, 3);
  for (uint32_t i = 0; i < 3; i++)
    small_world_request(w, AT, i);
  small_world_run(w, TIME_NEVER);
  expect_ms(w, 0, 3 + 1, "8 MB");  /* 3 x 8 MB */
  expect_ms(w, 1, 5 + 1, "16 MB"); /* 2 x 8 MB more */
  expect_ms(w, 2, 6 + 1, "24 MB"); /* 8 MB more */
  small_world_free(w);
}

/* --- the spine: 2 servers of 10 GB/s, 4 memory servers of 4: 16 GB/s, the smaller side, over the
 * oversubscription
 * ---------------------------------------------------------------------------------------------------------*/

static void check_spine(double oversubscription, double alone_gb_s, double both_gb_s)
{
  struct small_world *w = small_world_new("distmind");
  w->grouping = (struct grouping_policy){.kind = GROUPING_PER_APP};
  w->servers = 2;
  w->config.gpu_models_max = 1;
  w->config.hardware[0].spine_oversubscription = oversubscription;
  w->config.balancer = &balancer_round_robin;
  for (uint32_t i = 0; i < 3; i++)
    whole_model(w, 80 * MB, 0);
  small_world_request(w, AT, 0);
  small_world_request(w, 2 * AT, 1);
  small_world_request(w, 2 * AT, 2);
  small_world_run(w, TIME_NEVER);
  g_autofree char *what = g_strdup_printf("oversubscription %g", oversubscription);
  expect_ms(w, 0, 80 / alone_gb_s + 10, what);
  expect_ms(w, 1, 80 / both_gb_s + 10, what);
  expect_ms(w, 2, 80 / both_gb_s + 10, what);
  small_world_free(w);
}

Test(topology, an_oversubscribed_spine_is_shared_by_all)
{
  check_spine(1, 10, 8);
  check_spine(2, 8, 4);
  check_spine(4, 4, 2);
  check_spine(16, 1, 0.5);
}

/* --- a window over several streams
 * ---------------------------------------------------------------------------------------------------------*/

/* Groups of 40, 60, 24 and 60 MB lie in turn on two memory servers of 4 GB/s each; PCIe moves 2 GB/s. */
static double windowed_ms(uint64_t window_mb)
{
  static const uint64_t bytes[] = {40 * MB, 60 * MB, 24 * MB, 60 * MB};
  static const double compute[] = {0, 0, 0, 1e6};
  struct small_world *w = small_world_new("distmind");
  w->grouping = (struct grouping_policy){.kind = GROUPING_PER_LAYER};
  w->memory_servers = 2;
  w->config.sharding = SHARDING_HORIZONTAL;
  w->config.window_bytes = window_mb * MB;
  w->config.hardware[0].pcie_bytes_s = 2e9;
  small_world_model(w, 4, bytes, compute, 1);
  small_world_request(w, AT, 0);
  small_world_run(w, TIME_NEVER);
  double ms = (double)small_world_latency(w, 0) / 1e6;
  small_world_free(w);
  return ms;
}

Test(topology, a_window_over_two_streams)
{
  /* None: groups arrive at 10, 15, 16, 30 and are copied in 20, 30, 12, 30 ms, one after the other from 10
   * on. */
  cr_expect_float_eq(windowed_ms(0), 102 + 1, 1e-5);
  /* 50 MB: at 15 there wait 100, so the second stream pauses; the first ends at 16 (124 wait). At 30 84 wait,
   * at 60 24: the second goes on, and its 60 MB are here at 75. The third group has been copied by 72. */
  cr_expect_float_eq(windowed_ms(50), 75 + 30 + 1, 1e-5);
  /* Next to nothing: both pause, at 10 and at 15, until the second group has been copied at 60; then the
   * third arrives at 66 and the fourth at 75, and they are copied from 66 and 78 on. */
  cr_expect_float_eq(windowed_ms(1), 78 + 30 + 1, 1e-5);
  /* 90 MB: the second stream pauses at 15 (100 wait) until 30 (84 wait), and its group comes at 45. */
  cr_expect_float_eq(windowed_ms(90), 102 + 1, 1e-5);
}

/* --- two kinds of GPU server
 * ---------------------------------------------------------------------------------------------------------*/

static const uint64_t layer_bytes[] = {9000001, 4000000, 30000007, 0, 6000000};
static const double layer_ns[] = {700000, 300000, 2000000, 50000, 900000};

/* Two servers of each kind, unlike in every rate and cost. */
static struct small_world *two_kinds_new(const char *system)
{
  struct small_world *w = small_world_new(system);
  small_world_kinds(w, 2);
  struct hardware *a = &w->config.hardware[0], *b = &w->config.hardware[1];
  *b = (struct hardware){.gpu_memory_bytes = 200 * MB,
                         .host_memory_bytes = 1000 * BYTES_PER_GB,
                         .nic_bytes_s = 2.5e9,
                         .spine_oversubscription = 1,
                         .pcie_bytes_s = 3e9,
                         .gpus_per_pcie_switch = 1,
                         .pageable_bytes_s = 1.5e9,
                         .pageable_to_host_bytes_s = 0.5e9,
                         .ssd_bytes = 1000 * BYTES_PER_GB,
                         .ssd_bytes_s = 1e9,
                         .compute_scale = 2.5,
                         .mps_process_start_ns = 3e8,
                         .mps_train_share = 0.5,
                         .control_ns = 90000,
                         .net_stream_ns = 70000,
                         .net_group_ns = 9000,
                         .pcie_transfer_ns = 4000,
                         .group_sync_ns = 6000,
                         .launch_ns = 800};
  a->control_ns = 20000;
  a->net_stream_ns = 15000;
  a->net_group_ns = 2000;
  a->mps_process_start_ns = 2e8;
  w->config.memory_hardware.control_ns = 55000;
  w->servers = 4;
  w->kind[2] = w->kind[3] = 1;
  w->config.balancer = &balancer_round_robin;
  return w;
}

/* Client and controller talk at the first kind's latency, the GPU server at its own. */
static long double hops(const struct small_world *w, uint32_t kind)
{
  return 2 * w->config.hardware[0].control_ns + 2 * w->config.hardware[kind].control_ns;
}

static long double remote_ns(const struct small_world *w, uint32_t model, uint32_t kind)
{
  const struct hardware *hw = &w->config.hardware[kind];
  const struct profile *p = w->catalog->profiles->pdata[catalog_model(w->catalog, model)->profile];
  const struct grouping *g = load_plan(w->plans, 0, kind, SOURCE_REMOTE)->grouping;
  uint64_t cut[ORACLE_GROUPS_MAX][ORACLE_SLOTS_MAX];
  long double net[ORACLE_GROUPS_MAX];
  oracle_cut(g, SHARDING_HYBRID, w->memory_servers, 0, cut);
  oracle_net(cut, g->groups, w->memory_servers, FALSE, w->config.memory_hardware.memory_nic_bytes_s,
             hw->nic_bytes_s, hw->net_stream_ns, hw->net_group_ns, net);
  return oracle_pipeline_on(kind, g, p, hw, net, 0);
}

Test(topology, each_kind_loads_and_computes_at_its_own_rates)
{
  struct small_world *w = two_kinds_new("distmind");
  w->grouping = (struct grouping_policy){.kind = GROUPING_PER_LAYER};
  small_world_model(w, 5, layer_bytes, layer_ns, 1);
  for (uint32_t i = 0; i < 8; i++) /* each server once cold, once with the model */
    small_world_request(w, AT * (i + 1), 0);
  small_world_run(w, TIME_NEVER);
  for (uint32_t i = 0; i < 8; i++) {
    uint32_t kind = i % 4 / 2;
    long double resident = 0;
    for (uint32_t k = 0; k < 5; k++)
      resident += layer_ns[k] * w->config.hardware[kind].compute_scale + w->config.hardware[kind].launch_ns;
    long double expected = hops(w, kind) + (i < 4 ? remote_ns(w, 0, kind) : resident);
    cr_expect(fabs((double)(small_world_latency(w, i) - expected)) <= 2,
              "request %u took %ld ns, by hand %.1f", i, small_world_latency(w, i), (double)expected);
  }
  struct usage usage;
  sim_usage(w->sim, &usage);
  cr_expect_eq(usage.net_bytes, 4 * small_world_profile(w, 0)->param_bytes);
  small_world_free(w);
}

/* What the controller books tells the kinds apart too: an idle GPU is idle when its answer has come back, not
 * sooner. */
Test(topology, ideal_with_two_kinds_queues_where_least_is_outstanding)
{
  struct small_world *w = two_kinds_new("ideal");
  w->config.balancer = balancer_by_name("least_loaded");
  w->servers = 2;
  w->kind[1] = 1;
  static const double ms1[] = {1e6};
  static const uint64_t one[] = {1000};
  small_world_model(w, 1, one, ms1, 1);
  w->config.hardware[1].launch_ns = 0;
  /* 1 ms on GPU 0, 2.5 ms on GPU 1; hops of 20 and 90 us. Sent together: the first to 0, the second to 1.
   * Free again, as the controller sees it, 1.02 and 2.59 ms after it sent them: the third goes to 0 and runs
   * as soon as it is free. */
  for (uint32_t i = 0; i < 3; i++)
    small_world_request(w, AT, 0);
  /* When all is over, as a queue of its own on each: the one idle longest. */
  small_world_request(w, 2 * AT, 0);
  small_world_run(w, TIME_NEVER);
  static const uint32_t gpus[] = {0, 1, 0, 0};
  static const double ms[] = {1.08, 2.72, 2.08, 1.08};
  for (uint32_t i = 0; i < 4; i++) {
    cr_expect_eq(w->request[i].answer.gpu, gpus[i], "request %u ran on GPU %u", i, w->request[i].answer.gpu);
    expect_ms(w, i, ms[i], "two kinds");
  }
  small_world_free(w);
}
