/* Sharding: every byte of a model lies on one server, evenly as promised, and a fetch plan reads each byte
 * once. */
#include <criterion/criterion.h>

#include "core/cost.h"
#include "core/error.h"
#include "core/sharding.h"

typedef struct profile Profile;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Profile, profile_free)
typedef struct grouping Grouping;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Grouping, grouping_free)
typedef struct placement Placement;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Placement, placement_free)
typedef struct fetch_plan FetchPlan;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FetchPlan, fetch_plan_free)

static const enum sharding_kind kinds[] = {SHARDING_PER_APP, SHARDING_HORIZONTAL, SHARDING_VERTICAL,
                                           SHARDING_HYBRID};

/* Layers of 0 bytes, of a few and of very many: sums stay below 2^64. */
static Profile *draw_profile(GRand *rand, uint32_t layers)
{
  Profile *profile = profile_new("net", layers);
  for (uint32_t i = 0; i < layers; i++) {
    uint64_t huge = ((uint64_t)g_rand_int(rand) << 26) | g_rand_int(rand);
    const uint64_t choice[] = {0, (uint64_t)g_rand_int_range(rand, 0, 10), (uint64_t)g_rand_int(rand), huge};
    profile->layer_bytes[i] = choice[g_rand_int_range(rand, 0, 4)];
  }
  profile_sum(profile);
  return profile;
}

static Grouping *cut(const Profile *profile, uint64_t groups)
{
  struct grouping_policy policy = {.kind = GROUPING_COUNT, .argument = groups};
  return grouping_new(profile, 0, &policy, NULL);
}

static void expect_even(uint64_t bytes, uint64_t total, uint32_t slots, uint32_t slot)
{
  cr_assert_eq(bytes, total / slots + (slot < total % slots), "slot %u of %u", slot, slots);
}

/* Covers [0, param_bytes) once, in order, without empty extents; extents of one server do not touch. */
static void expect_covered(const Placement *placement, const Profile *profile)
{
  uint64_t offset = 0, sum = 0;
  for (uint32_t i = 0; i < placement->extents; i++) {
    const struct extent *extent = &placement->extent[i];
    cr_assert_eq(extent->offset, offset);
    cr_assert_gt(extent->length, 0);
    cr_assert_lt(extent->slot, placement->slots);
    cr_assert(i == 0 || extent->slot != extent[-1].slot);
    offset += extent->length;
  }
  cr_assert_eq(offset, profile->param_bytes);
  for (uint32_t slot = 0; slot < placement->slots; slot++)
    sum += placement_slot_bytes(placement, slot);
  cr_assert_eq(sum, profile->param_bytes);
}

/* Bytes of slot in [from, from + length) of the image, counted from the extents alone. */
static uint64_t bytes_within(const Placement *placement, uint32_t slot, uint64_t from, uint64_t length)
{
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < placement->extents; i++) {
    const struct extent *extent = &placement->extent[i];
    uint64_t begin = MAX(extent->offset, from), end = MIN(extent->offset + extent->length, from + length);
    if (extent->slot == slot && end > begin)
      bytes += end - begin;
  }
  return bytes;
}

static void expect_kind(const Placement *placement, enum sharding_kind kind, const Grouping *home,
                        const Profile *profile, uint32_t rotation)
{
  uint32_t slots = placement->slots;
  uint64_t offset = 0;
  for (uint32_t slot = 0; slot < slots && kind == SHARDING_VERTICAL; slot++)
    expect_even(placement_slot_bytes(placement, slot), profile->param_bytes, slots, slot);
  for (uint32_t i = 1; i < placement->extents && kind == SHARDING_VERTICAL; i++)
    cr_assert_gt(placement->extent[i].slot, placement->extent[i - 1].slot);
  if (kind == SHARDING_PER_APP)
    cr_assert_eq(placement_slot_bytes(placement, rotation % slots), profile->param_bytes);
  for (uint32_t j = 0; j < home->groups; j++) {
    for (uint32_t slot = 0; slot < slots; slot++) {
      uint64_t bytes = bytes_within(placement, slot, offset, home->bytes[j]);
      if (kind == SHARDING_HORIZONTAL)
        cr_assert_eq(bytes, slot == j % slots ? home->bytes[j] : 0);
      if (kind == SHARDING_HYBRID)
        expect_even(bytes, home->bytes[j], slots, slot);
    }
    offset += home->bytes[j];
  }
}

static void expect_plan(const FetchPlan *plan, const Placement *placement, const Grouping *grouping,
                        const Profile *profile)
{
  uint64_t offset = 0;
  cr_assert_eq(plan->groups, grouping->groups);
  cr_assert_eq(plan->total_bytes, profile->param_bytes);
  for (uint32_t s = 0; s < plan->streams; s++) {
    cr_assert(s == 0 || plan->slot[s] > plan->slot[s - 1]);
    cr_assert_gt(placement_slot_bytes(placement, plan->slot[s]), 0);
  }
  for (uint32_t j = 0; j < plan->groups; j++) {
    uint64_t sum = 0;
    for (uint32_t s = 0; s < plan->streams; s++) {
      uint64_t bytes = plan->bytes[(size_t)j * plan->streams + s];
      cr_assert_eq(bytes, bytes_within(placement, plan->slot[s], offset, grouping->bytes[j]));
      sum += bytes;
    }
    cr_assert_eq(sum, grouping->bytes[j]);
    cr_assert_eq(plan->group_bytes[j], sum);
    offset += sum;
  }
}

/* The pieces of all groups, each on the server of its stream, cover [first, first + total) once. */
static void expect_pieces(const FetchPlan *plan, const Placement *placement, uint64_t first)
{
  uint32_t pieces = 0;
  cr_assert_eq(plan->first_piece[0], 0);
  for (uint32_t j = 0; j < plan->groups; j++) {
    uint64_t covered = 0;
    cr_assert_eq(plan->group_offset[j], first);
    for (uint32_t s = 0; s < plan->streams; s++) {
      size_t row = (size_t)j * plan->streams + s;
      uint64_t sum = 0, end = first;
      for (uint32_t i = plan->first_piece[row]; i < plan->first_piece[row + 1]; i++) {
        const struct piece *piece = &plan->piece[i];
        cr_assert(piece->length > 0 && piece->offset >= end &&
                  piece->offset + piece->length <= first + plan->group_bytes[j]);
        cr_assert_eq(bytes_within(placement, plan->slot[s], piece->offset, piece->length), piece->length);
        end = piece->offset + piece->length;
        pieces++;
        sum += piece->length;
      }
      cr_assert_eq(sum, plan->bytes[row]);
      covered += sum;
    }
    cr_assert_eq(covered, plan->group_bytes[j]); /* of bytes that different servers hold: so none twice */
    first += plan->group_bytes[j];
  }
  cr_assert_eq(plan->first_piece[(size_t)plan->groups * plan->streams], pieces);
}

/* A part of the image, as a memory server fetches it. */
static void expect_part(const Placement *placement, GRand *rand)
{
  GArray *cut = g_array_new(FALSE, FALSE, sizeof(struct extent));
  uint64_t total = 0;
  for (uint32_t i = 0; i < placement->extents; i++)
    total += placement->extent[i].length;
  if (total > 0) {
    uint64_t from = (uint64_t)(g_rand_double(rand) * (double)total) % total;
    uint64_t length = 1 + (uint64_t)(g_rand_double(rand) * (double)(total - from)) % (total - from);
    for (uint32_t i = 0; i < placement->extents; i++) {
      struct extent e = placement->extent[i];
      uint64_t begin = MAX(e.offset, from), end = MIN(e.offset + e.length, from + length);
      struct extent part = {.offset = begin, .length = end - begin, .slot = e.slot};
      if (begin < end)
        g_array_append_val(cut, part);
    }
    g_autoptr(FetchPlan) plan = fetch_plan_cut((const struct extent *)(const void *)cut->data, cut->len,
                                               placement->slots, &length, 1);
    cr_assert(plan->groups == 1 && plan->total_bytes == length && plan->group_bytes[0] == length);
    expect_pieces(plan, placement, from);
  }
  g_array_unref(cut);
}

Test(sharding, places_every_byte_once_and_fetches_it_once)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(11);
  for (int round = 0; round < 1500; round++) {
    uint32_t layers = (uint32_t)g_rand_int_range(rand, 1, 25);
    g_autoptr(Profile) profile = draw_profile(rand, layers);
    g_autoptr(Grouping) home = cut(profile, (uint64_t)g_rand_int_range(rand, 1, 12));
    g_autoptr(Grouping) other =
        cut(profile, (uint64_t)g_rand_int_range(rand, 1, 25)); /* of another GPU kind */
    enum sharding_kind kind = kinds[round % 4];
    uint32_t rotation = g_rand_int(rand);
    g_autoptr(Placement) placement =
        placement_new(kind, home, (uint32_t)g_rand_int_range(rand, 1, 9), rotation);
    expect_covered(placement, profile);
    expect_kind(placement, kind, home, profile, rotation);
    g_autoptr(FetchPlan) same = fetch_plan_new(placement, home);
    expect_plan(same, placement, home, profile);
    g_autoptr(FetchPlan) plan = fetch_plan_new(placement, other);
    expect_plan(plan, placement, other, profile);
    expect_pieces(same, placement, 0);
    expect_pieces(plan, placement, 0);
    expect_part(placement, rand);
  }
}

Test(sharding, of_the_largest_image_and_of_none)
{
  for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
    g_autoptr(Profile) profile = profile_new("net", 2);
    g_autoptr(Grouping) none = cut(profile, 2);
    g_autoptr(Placement) nowhere = placement_new(kinds[i], none, 3, 1);
    g_autoptr(FetchPlan) nothing = fetch_plan_new(nowhere, none);
    cr_assert_eq(nowhere->extents, 0);
    cr_assert_eq(nothing->streams, 0);
    cr_assert_eq(nothing->total_bytes, 0);
    cr_assert_eq(nothing->first_piece[0], 0);
    profile->layer_bytes[0] = UINT64_MAX - 5;
    profile->layer_bytes[1] = 5;
    profile_sum(profile);
    g_autoptr(Grouping) home = cut(profile, 2);
    g_autoptr(Placement) placement = placement_new(kinds[i], home, 7, UINT32_MAX);
    expect_covered(placement, profile);
    expect_kind(placement, kinds[i], home, profile, UINT32_MAX);
  }
}

Test(sharding, names_are_parsed)
{
  for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
    enum sharding_kind kind;
    cr_assert(sharding_parse(sharding_name(kinds[i]), &kind, NULL));
    cr_assert_eq(kind, kinds[i]);
  }
  enum sharding_kind kind = SHARDING_HYBRID;
  g_autoptr(GError) error = NULL;
  cr_assert_not(sharding_parse("Hybrid", &kind, &error));
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
}

Test(sharding, load_paths_take_the_slower_end)
{
  struct hardware gpu = {.nic_bytes_s = 10,
                         .pcie_bytes_s = 16,
                         .ssd_bytes_s = 3,
                         .net_stream_ns = 1,
                         .net_group_ns = 2,
                         .pcie_transfer_ns = 3,
                         .group_sync_ns = 4,
                         .launch_ns = 5};
  struct hardware memory = {.memory_nic_bytes_s = 4};
  const struct {
    enum sharding_kind sharding;
    gboolean sequential;
    uint32_t servers;
    double rate;
  } cases[] = {
      {SHARDING_HYBRID, FALSE, 2, 8},   {SHARDING_HYBRID, TRUE, 2, 8},      {SHARDING_HYBRID, FALSE, 3, 10},
      {SHARDING_VERTICAL, FALSE, 2, 8}, {SHARDING_HORIZONTAL, FALSE, 2, 8}, {SHARDING_HORIZONTAL, TRUE, 2, 4},
      {SHARDING_PER_APP, FALSE, 2, 4},  {SHARDING_PER_APP, TRUE, 100, 4},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
    struct load_path path = cost_load_path(&gpu, &memory, cases[i].servers, cases[i].sharding,
                                           cases[i].sequential, FALSE, SOURCE_REMOTE);
    cr_assert_eq(path.net_bytes_s, cases[i].rate, "case %zu", i);
    cr_assert(path.remote && path.net_stream_ns == 1 && path.net_group_ns == 2);
  }
  struct load_path ssd = cost_load_path(&gpu, NULL, 0, SHARDING_HYBRID, FALSE, FALSE, SOURCE_SSD);
  cr_assert(ssd.remote && ssd.net_bytes_s == 3 && ssd.net_stream_ns == 0 && ssd.net_group_ns == 0);
  struct load_path host = cost_load_path(&gpu, NULL, 0, SHARDING_HYBRID, FALSE, FALSE, SOURCE_HOST);
  cr_assert(!host.remote && host.net_bytes_s == 0 && host.pcie_bytes_s == 16 && host.launch_ns == 5);
  /* Into GPU memory: the slowest of all three, and no PCIe stage; only what comes over the network. */
  struct load_path direct = cost_load_path(&gpu, &memory, 4, SHARDING_HYBRID, FALSE, TRUE, SOURCE_REMOTE);
  cr_assert(direct.remote && direct.net_bytes_s == 10 && direct.pcie_bytes_s == 0 &&
            direct.pcie_transfer_ns == 0);
  cr_assert(direct.net_stream_ns == 1 && direct.net_group_ns == 2 && direct.group_sync_ns == 4);
  gpu.pcie_bytes_s = 7;
  cr_assert_eq(cost_load_path(&gpu, &memory, 4, SHARDING_HYBRID, FALSE, TRUE, SOURCE_REMOTE).net_bytes_s, 7);
  cr_assert_eq(cost_load_path(&gpu, &memory, 4, SHARDING_PER_APP, FALSE, TRUE, SOURCE_REMOTE).net_bytes_s, 4);
  host = cost_load_path(&gpu, NULL, 0, SHARDING_HYBRID, FALSE, TRUE, SOURCE_HOST);
  cr_assert(!host.remote && host.pcie_bytes_s == 7 && host.pcie_transfer_ns == 3);
  memory.memory_nic_bytes_s = 0; /* infinitely fast */
  cr_assert_eq(cost_load_path(&gpu, &memory, 4, SHARDING_HYBRID, FALSE, FALSE, SOURCE_REMOTE).net_bytes_s,
               10);
  gpu.nic_bytes_s = 0;
  cr_assert_eq(cost_load_path(&gpu, &memory, 4, SHARDING_HYBRID, FALSE, FALSE, SOURCE_REMOTE).net_bytes_s, 0);
}
