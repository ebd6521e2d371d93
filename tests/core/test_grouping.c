/* Groupings: each cut by its definition, the latency formula worked by hand, and `optimal` against every
 * possible cut. */
#include <criterion/criterion.h>

#include "core/cost.h"
#include "core/error.h"
#include "core/grouping.h"
#include "core/grouping_optimal.h"

typedef struct profile Profile;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Profile, profile_free)
typedef struct grouping Grouping;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Grouping, grouping_free)

static Profile *profile_of(uint32_t layers, const uint64_t *bytes, const double *compute_ns)
{
  Profile *profile = profile_new("net", layers);
  for (uint32_t i = 0; i < layers; i++) {
    profile->layer_bytes[i] = bytes[i];
    profile->timing[0].layer_ns[i] = compute_ns[i];
    profile->timing[0].warm_ns += compute_ns[i];
  }
  profile_sum(profile);
  return profile;
}

static Grouping *cut(const Profile *profile, enum grouping_kind kind, uint64_t argument,
                     const struct load_path *path)
{
  struct grouping_policy policy = {.kind = kind, .argument = argument};
  return grouping_new(profile, 0, &policy, path);
}

/* A grouping is whole: layers, bytes and compute all there, once. */
static void expect_whole(const Grouping *grouping, const Profile *profile)
{
  uint64_t bytes = 0;
  cr_assert_eq(grouping->first_layer[0], 0);
  cr_assert_eq(grouping->first_layer[grouping->groups], profile->layers);
  for (uint32_t j = 0; j < grouping->groups; j++) {
    double compute = 0;
    uint64_t group_bytes = 0;
    cr_assert_lt(grouping->first_layer[j], grouping->first_layer[j + 1]);
    for (uint32_t i = grouping->first_layer[j]; i < grouping->first_layer[j + 1]; i++) {
      compute += profile->timing[0].layer_ns[i];
      group_bytes += profile->layer_bytes[i];
    }
    cr_assert_eq(grouping->bytes[j], group_bytes);
    cr_assert_float_eq(grouping->compute_ns[j], compute, 1e-9 * compute);
    bytes += group_bytes;
  }
  cr_assert_eq(bytes, profile->param_bytes);
}

static void expect_firsts(const Grouping *grouping, uint32_t groups, const uint32_t *firsts)
{
  cr_assert_eq(grouping->groups, groups, "%u groups, expected %u", grouping->groups, groups);
  for (uint32_t j = 0; j < groups; j++)
    cr_assert_eq(grouping->first_layer[j], firsts[j], "group %u starts at %u, expected %u", j,
                 grouping->first_layer[j], firsts[j]);
}

Test(grouping, cuts_follow_their_definition)
{
  g_autoptr(Profile) profile = profile_of(6, (uint64_t[]){10, 0, 30, 5, 5, 50}, (double[]){1, 2, 3, 4, 5, 6});
  g_autoptr(Grouping) layers = cut(profile, GROUPING_PER_LAYER, 0, NULL);
  expect_firsts(layers, 6, (uint32_t[]){0, 1, 2, 3, 4, 5});
  g_autoptr(Grouping) app = cut(profile, GROUPING_PER_APP, 0, NULL);
  expect_firsts(app, 1, (uint32_t[]){0});
  g_autoptr(Grouping) fixed = cut(profile, GROUPING_FIXED, 40, NULL);
  expect_firsts(fixed, 3, (uint32_t[]){0, 3, 5}); /* 10+0+30 fills it; 5+5; 50 is larger and alone */
  g_autoptr(Grouping) tiny = cut(profile, GROUPING_FIXED, 1, NULL);
  expect_firsts(tiny, 6, (uint32_t[]){0, 1, 2, 3, 4, 5});
  g_autoptr(Grouping) half = cut(profile, GROUPING_COUNT, 2, NULL);
  expect_firsts(half, 2, (uint32_t[]){0, 5}); /* boundaries at 40, 45, 50: ideal 50 */
  g_autoptr(Grouping) third = cut(profile, GROUPING_COUNT, 3, NULL);
  expect_firsts(third, 3, (uint32_t[]){0, 3, 5}); /* ideals 33.3 and 66.7: boundary 40, then 50 as nearest */
  g_autoptr(Grouping) many = cut(profile, GROUPING_COUNT, 99, NULL);
  expect_firsts(many, 6, (uint32_t[]){0, 1, 2, 3, 4, 5});
}

Test(grouping, count_cuts_at_the_nearest_boundary)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(7);
  for (int round = 0; round < 2000; round++) {
    uint32_t layers = (uint32_t)g_rand_int_range(rand, 1, 40);
    uint32_t count = (uint32_t)g_rand_int_range(rand, 1, 45), groups = MIN(count, layers);
    uint64_t bytes[40], before[41] = {0};
    double compute[40] = {0};
    for (uint32_t i = 0; i < layers; i++) {
      bytes[i] = g_rand_boolean(rand) ? 0 : (uint64_t)g_rand_int_range(rand, 0, 1000);
      before[i + 1] = before[i] + bytes[i];
    }
    g_autoptr(Profile) profile = profile_of(layers, bytes, compute);
    g_autoptr(Grouping) grouping = cut(profile, GROUPING_COUNT, count, NULL);
    expect_whole(grouping, profile);
    cr_assert_eq(grouping->groups, groups);
    for (uint32_t i = 1; i < groups; i++) { /* in units of 1 / groups of a byte, so that ideals are whole */
      int64_t ideal = (int64_t)(before[layers] * i),
              chosen = ABS((int64_t)before[grouping->first_layer[i]] * groups - ideal);
      for (uint32_t e = grouping->first_layer[i - 1] + 1; e <= layers - (groups - i); e++)
        cr_assert_leq(chosen, ABS((int64_t)before[e] * groups - ideal) + (int64_t)groups,
                      "boundary %u is not nearest", grouping->first_layer[i]);
    }
  }
}

Test(grouping, huge_models_do_not_overflow)
{
  uint64_t bytes[3] = {UINT64_MAX / 4, UINT64_MAX / 4, UINT64_MAX / 4};
  g_autoptr(Profile) profile = profile_of(3, bytes, (double[]){1e9, 1e9, 1e9});
  struct load_path path = {.remote = TRUE, .net_bytes_s = 1, .pcie_bytes_s = 1e9};
  for (enum grouping_kind kind = GROUPING_PER_LAYER; kind <= GROUPING_OPTIMAL; kind++) {
    g_autoptr(Grouping) grouping = cut(profile, kind, 2, &path);
    expect_whole(grouping, profile);
  }
}

Test(grouping, latency_by_hand)
{
  /* Two groups: 100 and 300 bytes at 1 and 2 bytes a ns; the second waits for the network, its compute for
   * PCIe. */
  g_autoptr(Profile) profile = profile_of(3, (uint64_t[]){100, 200, 100}, (double[]){70, 20, 30});
  g_autoptr(Grouping) grouping = cut(profile, GROUPING_FIXED, 300, NULL);
  struct load_path path = {.net_bytes_s = 1e9,
                           .pcie_bytes_s = 2e9,
                           .net_stream_ns = 11,
                           .net_group_ns = 3,
                           .pcie_transfer_ns = 5,
                           .group_sync_ns = 7,
                           .launch_ns = 2,
                           .remote = TRUE};
  double stages[2][3];
  cr_assert_eq(grouping->groups, 2); /* {100, 200}, {100} */
  double latency = grouping_latency_ns(grouping, &path, stages);
  cr_assert_eq(stages[0][0], 11 + 3 + 300);
  cr_assert_eq(stages[0][1], 314 + 5 + 150);
  cr_assert_eq(stages[0][2], 469 + 7 + 90 + 4);
  cr_assert_eq(stages[1][0], 314 + 3 + 100);
  cr_assert_eq(stages[1][1], 469 + 5 + 50);
  cr_assert_eq(stages[1][2], 570 + 7 + 30 + 2);
  cr_assert_eq(latency, 609);
  path.remote = FALSE;
  cr_assert_eq(grouping_latency_ns(grouping, &path, stages), 155 + 7 + 90 + 4 + 7 + 30 + 2);
  cr_assert_eq(stages[1][0], 0);
  cr_assert_eq(grouping_resident_ns(grouping, 2), 120 + 6);
}

/* The best of all 2^(layers - 1) cuts, by the documented order: latency, then groups, then first layers. */
static Grouping *exhaustive(const Profile *profile, const struct load_path *path)
{
  Grouping *best = NULL;
  double least = 0;
  for (uint32_t mask = 0; mask < 1U << (profile->layers - 1); mask++) {
    Grouping *one = cut(profile, GROUPING_PER_LAYER, 0, path);
    one->groups = 0;
    for (uint32_t i = 0; i < profile->layers; i++) {
      if (i == 0 || mask & (1U << (i - 1))) {
        one->first_layer[one->groups] = i;
        one->bytes[one->groups] = 0;
        one->compute_ns[one->groups++] = 0;
      }
      one->bytes[one->groups - 1] += profile->layer_bytes[i];
      one->compute_ns[one->groups - 1] += profile->timing[0].layer_ns[i];
    }
    one->first_layer[one->groups] = profile->layers;
    double latency = grouping_latency_ns(one, path, NULL);
    int order = !best || latency < least ? -1 : latency > least ? 1 : (int)one->groups - (int)best->groups;
    for (uint32_t j = 0; order == 0 && j < one->groups; j++)
      order = (int)one->first_layer[j] - (int)best->first_layer[j];
    grouping_free(order < 0 ? best : one);
    best = order < 0 ? one : best;
    least = order < 0 ? latency : least;
  }
  return best;
}

/* Zero now and then; else spread over orders of magnitude. */
static double draw_cost(GRand *rand, double top)
{
  double u = g_rand_double(rand);
  return g_rand_int_range(rand, 0, 4) == 0 ? 0 : top * u * u * u;
}

static Profile *draw_profile(GRand *rand, uint32_t layers, gboolean whole)
{
  g_autofree uint64_t *bytes = g_new0(uint64_t, layers);
  g_autofree double *compute = g_new0(double, layers);
  double top = g_rand_double_range(rand, 1e3, 1e8);
  for (uint32_t i = 0; i < layers; i++) {
    bytes[i] = (uint64_t)draw_cost(rand, whole ? 12 : top);
    compute[i] = draw_cost(rand, whole ? 12 : 1e6);
    if (whole)
      compute[i] = (double)(int64_t)compute[i];
  }
  return profile_of(layers, bytes, compute);
}

static struct load_path draw_path(GRand *rand)
{
  return (struct load_path){
      .net_bytes_s = draw_cost(rand, 2e10),
      .pcie_bytes_s = draw_cost(rand, 2e10),
      .net_stream_ns = draw_cost(rand, 1e5),
      .net_group_ns = draw_cost(rand, 1e5),
      .pcie_transfer_ns = draw_cost(rand, 1e5),
      .group_sync_ns = draw_cost(rand, 1e5),
      .launch_ns = draw_cost(rand, 1e4),
      .remote = g_rand_boolean(rand),
  };
}

Test(grouping, optimal_equals_exhaustive_search)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(1);
  for (int round = 0; round < 1000; round++) {
    g_autoptr(Profile) profile = draw_profile(rand, (uint32_t)g_rand_int_range(rand, 1, 13), FALSE);
    struct load_path path = draw_path(rand);
    g_autoptr(Grouping) optimal = cut(profile, GROUPING_OPTIMAL, 0, &path);
    g_autoptr(Grouping) best = exhaustive(profile, &path);
    expect_whole(optimal, profile);
    double found = grouping_latency_ns(optimal, &path, NULL), least = grouping_latency_ns(best, &path, NULL);
    cr_assert_leq(found, least * (1 + 1e-12), "round %d: %.17g, least is %.17g", round, found, least);
  }
}

/* Loads that land in GPU memory have two stages: groups arrive at the slower of network and PCIe, and are
 * computed on. The latency is that formula's, and `optimal` the best of all cuts by it. */
static double two_stages_ns(const struct grouping *grouping, const struct hardware *hw, double memory_bytes_s)
{
  double rates[] = {hw->nic_bytes_s, hw->pcie_bytes_s, memory_bytes_s}, rate = 0, net = hw->net_stream_ns,
         comp = 0;
  for (size_t i = 0; i < G_N_ELEMENTS(rates); i++)
    if (rates[i] > 0 && (rate == 0 || rates[i] < rate))
      rate = rates[i];
  for (uint32_t j = 0; j < grouping->groups; j++) {
    net += hw->net_group_ns + (rate > 0 ? (double)grouping->bytes[j] / rate * 1e9 : 0);
    comp = MAX(comp, net) + hw->group_sync_ns + grouping->compute_ns[j] +
           hw->launch_ns * (grouping->first_layer[j + 1] - grouping->first_layer[j]);
  }
  return comp;
}

Test(grouping, optimal_equals_exhaustive_search_in_two_stages)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(3);
  for (int round = 0; round < 1000; round++) {
    g_autoptr(Profile) profile = draw_profile(rand, (uint32_t)g_rand_int_range(rand, 1, 13), FALSE);
    struct load_path drawn = draw_path(rand);
    struct hardware memory = {.memory_nic_bytes_s = draw_cost(rand, 1e10)};
    struct hardware hw = {.nic_bytes_s = drawn.net_bytes_s,
                          .pcie_bytes_s = drawn.pcie_bytes_s,
                          .net_stream_ns = drawn.net_stream_ns,
                          .net_group_ns = drawn.net_group_ns,
                          .pcie_transfer_ns = drawn.pcie_transfer_ns,
                          .group_sync_ns = drawn.group_sync_ns,
                          .launch_ns = drawn.launch_ns};
    struct load_path path = cost_load_path(&hw, &memory, 3, SHARDING_HYBRID, FALSE, TRUE, SOURCE_REMOTE);
    g_autoptr(Grouping) optimal = cut(profile, GROUPING_OPTIMAL, 0, &path);
    g_autoptr(Grouping) best = exhaustive(profile, &path);
    expect_whole(optimal, profile);
    double found = two_stages_ns(optimal, &hw, 3 * memory.memory_nic_bytes_s);
    double least = two_stages_ns(best, &hw, 3 * memory.memory_nic_bytes_s);
    cr_assert_leq(found, least * (1 + 1e-12), "round %d: %.17g, least is %.17g", round, found, least);
    double latency = grouping_latency_ns(optimal, &path, NULL);
    cr_assert_float_eq(latency, found, 1e-12 * found, "round %d: %.17g, by the formula %.17g", round, latency,
                       found);
  }
}

/* Whole costs and rates of one byte a ns or so: all sums are exact, so ties are common and must be broken as
 * documented. */
Test(grouping, optimal_breaks_ties_as_documented)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(2);
  for (int round = 0; round < 2000; round++) {
    g_autoptr(Profile) profile = draw_profile(rand, (uint32_t)g_rand_int_range(rand, 1, 11), TRUE);
    const double rates[] = {0, 1e9, 5e8, 2.5e8};
    struct load_path path = {
        .net_bytes_s = rates[g_rand_int_range(rand, 0, 4)],
        .pcie_bytes_s = rates[g_rand_int_range(rand, 0, 4)],
        .net_stream_ns = g_rand_int_range(rand, 0, 3),
        .net_group_ns = g_rand_int_range(rand, 0, 3),
        .pcie_transfer_ns = g_rand_int_range(rand, 0, 3),
        .group_sync_ns = g_rand_int_range(rand, 0, 3),
        .launch_ns = g_rand_int_range(rand, 0, 2),
        .remote = g_rand_boolean(rand),
    };
    g_autoptr(Grouping) optimal = cut(profile, GROUPING_OPTIMAL, 0, &path);
    g_autoptr(Grouping) best = exhaustive(profile, &path);
    if (grouping_latency_ns(best, &path, NULL) > 0)
      expect_firsts(optimal, best->groups, best->first_layer);
  }
}

Test(grouping, optimal_never_loses_to_another_policy)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(3);
  for (int round = 0; round < 60; round++) {
    g_autoptr(Profile) profile = draw_profile(rand, (uint32_t)g_rand_int_range(rand, 1, 300), FALSE);
    struct load_path path = draw_path(rand);
    g_autoptr(Grouping) optimal = cut(profile, GROUPING_OPTIMAL, 0, &path);
    double found = grouping_latency_ns(optimal, &path, NULL);
    for (int i = 0; i < 120; i++) {
      enum grouping_kind kind = i == 0   ? GROUPING_PER_LAYER
                                : i == 1 ? GROUPING_PER_APP
                                : i < 60 ? GROUPING_FIXED
                                         : GROUPING_COUNT;
      uint64_t argument =
          kind == GROUPING_FIXED ? profile->param_bytes / (uint64_t)(i * i) + 1 : (uint64_t)(i - 55);
      g_autoptr(Grouping) other = cut(profile, kind, argument, &path);
      cr_assert_leq(found, grouping_latency_ns(other, &path, NULL) * (1 + 1e-12), "round %d policy %d", round,
                    i);
    }
  }
}

/* Beyond OPTIMAL_LAYERS_MAX the cut is still whole and better than the two trivial ones. */
Test(grouping, optimal_of_very_deep_models)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(4);
  g_autoptr(Profile) profile = draw_profile(rand, OPTIMAL_LAYERS_MAX * 3 + 17, FALSE);
  struct load_path path = {.net_bytes_s = 12e9,
                           .pcie_bytes_s = 12e9,
                           .net_group_ns = 5e3,
                           .pcie_transfer_ns = 9e3,
                           .group_sync_ns = 1e4,
                           .remote = TRUE};
  g_autoptr(Grouping) optimal = cut(profile, GROUPING_OPTIMAL, 0, &path);
  g_autoptr(Grouping) layers = cut(profile, GROUPING_PER_LAYER, 0, &path);
  g_autoptr(Grouping) app = cut(profile, GROUPING_PER_APP, 0, &path);
  expect_whole(optimal, profile);
  double found = grouping_latency_ns(optimal, &path, NULL);
  cr_assert_lt(found, grouping_latency_ns(layers, &path, NULL));
  cr_assert_lt(found, grouping_latency_ns(app, &path, NULL));
}

Test(grouping, policies_are_parsed_and_written)
{
  const char *const good[] = {"per-layer",        "fixed:1", "fixed:18446744073709551615",
                              "count:4294967295", "per-app", "optimal"};
  for (size_t i = 0; i < G_N_ELEMENTS(good); i++) {
    struct grouping_policy policy;
    cr_assert(grouping_policy_parse(good[i], &policy, NULL), "%s", good[i]);
    g_autofree char *text = grouping_policy_format(&policy);
    cr_assert_str_eq(text, good[i]);
  }
  const char *const bad[] = {"",
                             "fixed",
                             "fixed:",
                             "fixed:0",
                             "fixed:-1",
                             "fixed:+1",
                             "fixed: 1",
                             "fixed:1k",
                             "fixed:1.5",
                             "fixed:18446744073709551616",
                             "count:4294967296",
                             "count:x",
                             "per-layer:1",
                             "optimal:2",
                             "Optimal",
                             "per",
                             "per-app "};
  for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
    struct grouping_policy policy = {.argument = 12345};
    g_autoptr(GError) error = NULL;
    cr_assert_not(grouping_policy_parse(bad[i], &policy, &error), "%s", bad[i]);
    cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
    cr_assert_eq(policy.argument, 12345);
  }
}
