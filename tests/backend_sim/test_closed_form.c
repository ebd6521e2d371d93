/* One request on an idle cluster against the formulas of the design's section 3, worked out here and not by
 * the code under test, to the nanosecond: every grouping, sharding, order and source, overheads zero and not.
 */
#include "small_world.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#define LAYERS  9
#define CONTROL 25000.0

/* Uneven on purpose; a layer without parameters among them. */
static const uint64_t layer_bytes[LAYERS] = {1000003, 7000001, 0,       12000007, 333,
                                             5000011, 9000013, 2000003, 777777};
static const double layer_ns[LAYERS] = {100000, 250000, 40000, 310000, 20000, 123456, 400000, 90000, 50000};

static void overheads_set(struct hardware *hw)
{
  hw->control_ns = CONTROL;
  hw->net_stream_ns = 20000.25;
  hw->net_group_ns = 5000.5;
  hw->pcie_transfer_ns = 2600.75;
  hw->group_sync_ns = 4100;
  hw->launch_ns = 700.125;
}

static struct small_world *world_new(const char *system, const char *grouping, gboolean overheads)
{
  struct small_world *w = small_world_new(system);
  small_world_model(w, LAYERS, layer_bytes, layer_ns, 1);
  GError *error = NULL;
  cr_assert(grouping_policy_parse(grouping, &w->grouping, &error));
  if (overheads)
    overheads_set(&w->config.hardware[0]);
  small_world_request(w, 1000000000, 0); /* everybody has joined by then */
  return w;
}

static double max(double a, double b)
{
  return a > b ? a : b;
}

/* The pipeline's last stages, from the arrival of each group. */
static double pipeline(const struct hardware *hw, const struct grouping *g, const double *net)
{
  double pcie = 0, comp = 0;
  for (uint32_t j = 0; j < g->groups; j++) {
    double compute = 0;
    for (uint32_t i = g->first_layer[j]; i < g->first_layer[j + 1]; i++)
      compute += layer_ns[i] + hw->launch_ns;
    pcie = max(pcie, net[j]) + hw->pcie_transfer_ns + (double)g->bytes[j] / hw->pcie_bytes_s * 1e9;
    comp = max(comp, pcie) + hw->group_sync_ns + compute;
  }
  return comp;
}

/* Hybrid shards (or any that are read at one rate): net(j) = net(j-1) + N_j. */
static void arrivals_even(const struct hardware *hw, const struct grouping *g, double rate, double *net)
{
  double at = hw->net_stream_ns;
  for (uint32_t j = 0; j < g->groups; j++) {
    at += hw->net_group_ns + (double)g->bytes[j] / rate * 1e9;
    net[j] = at;
  }
}

static void expect_latency(struct small_world *w, double ns, const char *what)
{
  uint32_t request = 0;
  small_world_run(w, 100 * NS_PER_S);
  double expected = ns + 4 * w->config.hardware[0].control_ns;
  double found = (double)small_world_latency(w, request);
  cr_expect(fabs(found - expected) <= 1, "%s: expected %.3f ns, found %.0f", what, expected, found);
  cr_expect_eq(w->request[request].answers, 1);
  small_world_free(w);
}

static const char *const groupings[] = {"per-layer", "fixed:9000000", "count:4", "per-app", "optimal"};

Test(closed_form, remote_load_hybrid)
{
  for (size_t i = 0; i < G_N_ELEMENTS(groupings); i++)
    for (int overheads = 0; overheads < 2; overheads++) {
      struct small_world *w = world_new("distmind", groupings[i], overheads);
      small_world_start(w);
      const struct hardware *hw = &w->config.hardware[0];
      const struct grouping *g = small_world_grouping(w, 0, SOURCE_REMOTE);
      double net[LAYERS], rate = MIN(hw->nic_bytes_s, 4 * w->config.memory_hardware.memory_nic_bytes_s);
      /* Slices differ by a byte where four do not divide a group: each stream has its own bytes at a quarter
       * of the rate. */
      uint64_t most = 0;
      for (uint32_t j = 0; j < g->groups; j++) {
        most += (g->bytes[j] + 3) / 4;
        net[j] = hw->net_stream_ns + (j + 1) * hw->net_group_ns + (double)most * 4 / rate * 1e9;
      }
      expect_latency(w, pipeline(hw, g, net), groupings[i]);
    }
}

Test(closed_form, remote_load_per_app)
{
  for (size_t i = 0; i < G_N_ELEMENTS(groupings); i++)
    for (int overheads = 0; overheads < 2; overheads++) {
      struct small_world *w = world_new("distmind", groupings[i], overheads);
      w->config.sharding = SHARDING_PER_APP;
      small_world_start(w);
      const struct hardware *hw = &w->config.hardware[0];
      const struct grouping *g = small_world_grouping(w, 0, SOURCE_REMOTE);
      double net[LAYERS];
      arrivals_even(hw, g, MIN(hw->nic_bytes_s, w->config.memory_hardware.memory_nic_bytes_s), net);
      expect_latency(w, pipeline(hw, g, net), groupings[i]);
    }
}

/* Group after group: each from one server alone. */
Test(closed_form, remote_load_horizontal_sequential)
{
  for (int overheads = 0; overheads < 2; overheads++) {
    struct small_world *w = world_new("distmind", "count:4", overheads);
    w->config.sharding = SHARDING_HORIZONTAL;
    w->config.sequential = TRUE;
    small_world_start(w);
    const struct hardware *hw = &w->config.hardware[0];
    const struct grouping *g = small_world_grouping(w, 0, SOURCE_REMOTE);
    double net[LAYERS];
    arrivals_even(hw, g, MIN(hw->nic_bytes_s, w->config.memory_hardware.memory_nic_bytes_s), net);
    expect_latency(w, pipeline(hw, g, net), "horizontal, sequential");
  }
}

Test(closed_form, host_load)
{
  for (size_t i = 0; i < G_N_ELEMENTS(groupings); i++)
    for (int overheads = 0; overheads < 2; overheads++) {
      struct small_world *w = world_new("pipeswitch", groupings[i], overheads);
      small_world_start(w);
      const struct hardware *hw = &w->config.hardware[0];
      const struct grouping *g = small_world_grouping(w, 0, SOURCE_HOST);
      double net[LAYERS] = {0};
      expect_latency(w, pipeline(hw, g, net), groupings[i]);
    }
}

Test(closed_form, resident)
{
  for (int overheads = 0; overheads < 2; overheads++) {
    struct small_world *w = world_new("ideal", "per-app", overheads);
    small_world_start(w);
    double ns = 0;
    for (uint32_t i = 0; i < LAYERS; i++)
      ns += layer_ns[i] + w->config.hardware[0].launch_ns;
    expect_latency(w, ns, "resident");
  }
}

/* Stop and go on an empty GPU: proxy, pageable copy with its cost per tensor, compute; nothing overlaps. */
Test(closed_form, ray)
{
  struct small_world *w = world_new("ray", "per-app", TRUE);
  struct hardware *hw = &w->config.hardware[0];
  hw->ray_proxy_ns = 1500000;
  hw->ray_tensor_ns = 17400;
  small_world_start(w);
  const struct profile *profile = small_world_profile(w, 0);
  double ns = hw->ray_proxy_ns + hw->pcie_transfer_ns + profile->tensors * hw->ray_tensor_ns +
              (double)profile->param_bytes / hw->pageable_bytes_s * 1e9;
  for (uint32_t i = 0; i < LAYERS; i++)
    ns += layer_ns[i] + hw->launch_ns;
  expect_latency(w, ns, "ray");
}

/* Two loads of one size at once through one ingress take twice as long on the network as one. */
Test(closed_form, two_loads_share_the_ingress)
{
  static const uint64_t bytes[1] = {80000000};
  static const double ns[1] = {0};
  struct small_world *w = small_world_new("distmind");
  small_world_model(w, 1, bytes, ns, 2);
  w->gpus_per_server = 2;
  uint32_t first = small_world_request(w, 1000000000, 0), second = small_world_request(w, 1000000000, 1);
  small_world_run(w, 100 * NS_PER_S);
  const struct hardware *hw = &w->config.hardware[0];
  double net =
      (double)bytes[0] / MIN(hw->nic_bytes_s, 4 * w->config.memory_hardware.memory_nic_bytes_s) * 1e9;
  double expected = 2 * net + (double)bytes[0] / hw->pcie_bytes_s * 1e9;
  cr_expect(fabs((double)small_world_latency(w, first) - expected) <= 1, "%.3f", expected);
  cr_expect(fabs((double)small_world_latency(w, second) - expected) <= 1, "%.3f", expected);
  struct usage usage;
  sim_usage(w->sim, &usage);
  cr_expect_eq(usage.net_bytes, 2 * bytes[0], "net_bytes are the bytes of the groups fetched");
  small_world_free(w);
}
