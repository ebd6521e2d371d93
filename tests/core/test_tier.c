/* Tiers: 100,000 random operations of each policy against a plain reference, and the contract by hand. */
#include <criterion/criterion.h>

#include "core/popularity.h"
#include "core/tier.h"

typedef struct tier Tier;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Tier, tier_free)

#define MODELS 40

/* The reference: one row a model, everything found by looking at all rows. */
struct row {
  struct tier_entry entry;
  enum tier_state state;
  uint32_t pins;
};

struct reference {
  struct row row[MODELS];
  struct popularity *popularity;
  const struct tier_policy *policy;
  uint64_t capacity, held;
  uint32_t models_max;
  int64_t now_ns;
  int64_t told_ns; /* latest time that a call named: what calls without a time go by */
  GString *log;    /* victims in order */
};

struct pair {
  Tier *tier;
  gboolean places;
  struct reference *reference;
  GString *log;
};

static void log_victim(GString *log, const struct tier_entry *victim, double value)
{
  g_string_append_printf(log, "%u:%" G_GUINT64_FORMAT ":%" G_GUINT64_FORMAT ":%.17g ", victim->model,
                         victim->bytes, victim->uses, value);
}

/* After each victim the account is in order again. */
static void on_evicted(void *context, const struct tier_entry *victim, double value)
{
  struct pair *pair = (struct pair *)context;
  cr_assert_eq(tier_state(pair->tier, victim->model), TIER_ABSENT);
  if (pair->places)
    cr_assert_eq(ranges_bytes(tier_victim_place(pair->tier)), victim->bytes);
  log_victim(pair->log, victim, value);
}

static uint64_t reference_used(const struct reference *r)
{
  uint64_t used = r->held;
  for (uint32_t m = 0; m < MODELS; m++)
    used += r->row[m].state == TIER_ABSENT ? 0 : r->row[m].entry.bytes;
  return used;
}

static uint32_t reference_count(const struct reference *r)
{
  uint32_t count = 0;
  for (uint32_t m = 0; m < MODELS; m++)
    count += r->row[m].state != TIER_ABSENT;
  return count;
}

static double reference_value(const struct reference *r, uint32_t m)
{
  struct tier_entry entry = r->row[m].entry;
  entry.popularity = r->policy->counts ? popularity_count(r->popularity, m, r->told_ns) : 0;
  return r->policy->value(&entry, r->told_ns);
}

static uint32_t reference_victim(const struct reference *r)
{
  uint32_t best = UINT32_MAX;
  for (uint32_t m = 0; m < MODELS; m++) {
    if (r->row[m].state != TIER_READY || r->row[m].pins)
      continue;
    double order = best == UINT32_MAX ? -1 : reference_value(r, m) - reference_value(r, best);
    if (order < 0 || (order == 0 && r->row[m].entry.last_use_ns < r->row[best].entry.last_use_ns))
      best = m;
  }
  return best;
}

static gboolean reference_fits(const struct reference *r, uint64_t bytes, uint32_t entries)
{
  uint64_t used = reference_used(r);
  return used <= r->capacity && bytes <= r->capacity - used &&
         (!entries || !r->models_max || reference_count(r) + entries <= r->models_max);
}

/* Evicts in order until it fits; if it cannot be and not `shrink`, undoes everything. */
static gboolean reference_room(struct reference *r, uint64_t bytes, uint32_t entries, gboolean shrink)
{
  struct row before[MODELS];
  gsize log = r->log->len;
  memcpy(before, r->row, sizeof before);
  while (!reference_fits(r, bytes, entries)) {
    uint32_t victim = reference_victim(r);
    if (victim == UINT32_MAX) {
      if (!shrink) {
        memcpy(r->row, before, sizeof before);
        g_string_truncate(r->log, log);
      }
      return FALSE;
    }
    log_victim(r->log, &r->row[victim].entry, reference_value(r, victim));
    r->row[victim].state = TIER_ABSENT;
  }
  return TRUE;
}

static void step_reserve(struct pair *p, GRand *rand, uint32_t m)
{
  struct reference *r = p->reference;
  uint64_t bytes = (uint64_t)g_rand_int_range(rand, 0, 300), evicts = 0, used = reference_used(r);
  double reload = g_rand_int_range(rand, 0, 4);
  gboolean can = tier_can_reserve(p->tier, bytes, &evicts);
  gboolean absent = r->row[m].state == TIER_ABSENT;
  r->told_ns = r->now_ns;
  gboolean expected = absent && reference_room(r, bytes, 1, FALSE);
  cr_assert_eq(tier_reserve(p->tier, m, bytes, reload, r->now_ns), expected);
  if (absent)
    cr_assert_eq(can, expected);
  if (!expected)
    return;
  cr_assert_eq(evicts, used - reference_used(r));
  r->row[m] =
      (struct row){.entry = {.model = m, .bytes = bytes, .last_use_ns = r->now_ns, .reload_ns = reload},
                   .state = TIER_FILLING};
}

static void step_touch(struct pair *p, uint32_t m)
{
  struct reference *r = p->reference;
  r->told_ns = r->now_ns;
  tier_touch(p->tier, m, r->now_ns);
  popularity_use(r->popularity, m, r->now_ns);
  if (r->row[m].state == TIER_ABSENT)
    return;
  r->row[m].entry.uses++;
  r->row[m].entry.last_use_ns = r->now_ns;
}

static void step_present(struct pair *p, GRand *rand, uint32_t m)
{
  struct reference *r = p->reference;
  struct row *row = &r->row[m];
  int what = g_rand_int_range(rand, 0, 10);
  if (row->state == TIER_ABSENT)
    return;
  if (what < 4) {
    tier_ready(p->tier, m);
    row->state = TIER_READY;
    reference_room(r, 0, 0, TRUE);
  } else if (what < 6 || (what < 8 && row->pins == 0)) {
    tier_pin(p->tier, m);
    row->pins++;
  } else if (row->pins == 0) {
    tier_remove(p->tier, m);
    row->state = TIER_ABSENT;
  } else {
    tier_unpin(p->tier, m);
    row->pins--;
    reference_room(r, 0, 0, TRUE);
  }
}

static void step_space(struct pair *p, GRand *rand)
{
  struct reference *r = p->reference;
  uint64_t bytes = (uint64_t)g_rand_int_range(rand, 0, 400);
  if (g_rand_int_range(rand, 0, 3) == 0) {
    r->capacity = 300 + 4 * bytes;
    r->told_ns = r->now_ns;
    tier_set_capacity(p->tier, r->capacity, r->now_ns);
    reference_room(r, 0, 0, TRUE);
  } else if (r->held) {
    uint64_t part = p->places ? r->held : r->held / 2 + r->held % 2;
    tier_release(p->tier, part);
    r->held -= part;
  } else {
    r->told_ns = r->now_ns;
    gboolean expected = reference_room(r, bytes, 0, FALSE);
    cr_assert_eq(tier_hold(p->tier, bytes, r->now_ns), expected);
    r->held += expected ? bytes : 0;
  }
}

static void expect_equal(const struct pair *p, int step)
{
  const struct reference *r = p->reference;
  uint64_t used = tier_used(p->tier), unevictable = r->held;
  cr_assert_eq(used, reference_used(r), "step %d", step);
  cr_assert_eq(tier_count(p->tier), reference_count(r));
  cr_assert_eq(tier_capacity(p->tier), r->capacity);
  cr_assert_eq(tier_victim(p->tier, r->now_ns), reference_victim(r), "step %d", step);
  cr_assert(!r->models_max || tier_count(p->tier) <= r->models_max);
  for (uint32_t m = 0; m < MODELS; m++) {
    cr_assert_eq(tier_state(p->tier, m), r->row[m].state, "step %d model %u", step, m);
    cr_assert_eq(tier_pins(p->tier, m), r->row[m].state == TIER_ABSENT ? 0 : r->row[m].pins);
    if (r->row[m].state == TIER_FILLING || (r->row[m].state == TIER_READY && r->row[m].pins))
      unevictable += r->row[m].entry.bytes;
  }
  /* Over the limit only by what a lowered limit found pinned. */
  cr_assert(used <= r->capacity || used == unevictable, "step %d", step);
  cr_assert_str_eq(p->log->str, r->log->str, "step %d", step);
}

#define PLACES_FROM (5 * (uint64_t)ARENA_ALIGN)
#define PAGES_MOST  256

static void note_place(const struct ranges *place, uint64_t bytes, gboolean taken[PAGES_MOST])
{
  cr_assert_eq(ranges_bytes(place), bytes);
  for (uint32_t i = 0; i < place->count; i++)
    for (uint64_t at = 0; at < place->range[i].length; at += ARENA_ALIGN) {
      uint64_t page = (place->range[i].offset - PLACES_FROM + at) / ARENA_ALIGN;
      cr_assert(page < PAGES_MOST && !taken[page]);
      taken[page] = TRUE;
    }
}

/* Who is in has a place as large as itself, and no two share a page; who is not has none. */
static void expect_places(const struct pair *p)
{
  const struct reference *r = p->reference;
  gboolean taken[PAGES_MOST] = {FALSE};
  for (uint32_t m = 0; m < MODELS; m++) {
    const struct ranges *place = tier_place(p->tier, m);
    cr_assert_eq(place != NULL, p->places && r->row[m].state != TIER_ABSENT);
    if (place)
      note_place(place, r->row[m].entry.bytes, taken);
  }
  cr_assert_eq(tier_held_place(p->tier) != NULL, p->places && r->held > 0);
  if (tier_held_place(p->tier))
    note_place(tier_held_place(p->tier), r->held, taken);
}

static void compare(const struct tier_policy *policy, uint32_t models_max, gboolean places, guint32 seed)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
  struct reference reference = {.popularity = popularity_new(MODELS),
                                .policy = policy,
                                .capacity = 1000,
                                .models_max = models_max,
                                .now_ns = -7,
                                .log = g_string_new("")};
  struct pair pair = {.places = places, .reference = &reference, .log = g_string_new("")};
  pair.tier = tier_new(1000, FALSE, models_max, MODELS, policy, on_evicted, &pair);
  if (places)
    tier_place_from(pair.tier, PLACES_FROM, 1);
  guint64 victims = 0;
  for (int step = 0; step < 100000; step++) {
    uint32_t m = (uint32_t)g_rand_int_range(rand, 0, models_max ? 3 * (int)models_max : MODELS);
    int what = g_rand_int_range(rand, 0, 100);
    if (g_rand_boolean(rand)) /* often no time passes, so uses tie; now and then much, so popularity decays */
      reference.now_ns += what == 0 ? 20 * NS_PER_S : g_rand_int_range(rand, 0, 1000000000);
    if (what < 30)
      step_touch(&pair, m);
    else if (what < 55)
      step_reserve(&pair, rand, m);
    else if (what < 95)
      step_present(&pair, rand, m);
    else
      step_space(&pair, rand);
    expect_equal(&pair, step);
    expect_places(&pair);
    victims += pair.log->len > 0;
    g_string_truncate(pair.log, 0);
    g_string_truncate(reference.log, 0);
  }
  cr_assert_gt(victims, 1000);
  tier_free(pair.tier);
  popularity_free(reference.popularity);
  g_string_free(pair.log, TRUE);
  g_string_free(reference.log, TRUE);
}

Test(tier, lru_equals_the_reference)
{
  compare(&tier_policy_lru, 0, FALSE, 21);
  compare(&tier_policy_lru, 0, TRUE, 21);
}

Test(tier, weighted_equals_the_reference)
{
  compare(&tier_policy_weighted, 0, FALSE, 22);
  compare(&tier_policy_weighted, 0, TRUE, 22);
}

Test(tier, limited_in_models_equals_the_reference)
{
  compare(&tier_policy_lru, 4, FALSE, 23);
  compare(&tier_policy_lru, 4, TRUE, 23);
  compare(&tier_policy_weighted, 1, FALSE, 24);
  compare(&tier_policy_weighted, 1, TRUE, 24);
}

static void add_ready(Tier *tier, uint32_t model, uint64_t bytes, int64_t now_ns)
{
  cr_assert(tier_reserve(tier, model, bytes, 1, now_ns));
  tier_ready(tier, model);
}

Test(tier, evicts_no_more_than_needed_and_nothing_in_vain)
{
  g_autoptr(Tier) tier = tier_new(100, FALSE, 0, 8, &tier_policy_lru, NULL, NULL);
  for (uint32_t m = 0; m < 4; m++)
    add_ready(tier, m, 25, m);
  tier_touch(tier, 0, 10);
  tier_pin(tier, 2);
  uint64_t evicts;
  cr_assert(tier_can_reserve(tier, 30, &evicts) && evicts == 50);
  cr_assert_not(tier_can_reserve(tier, 76, &evicts));
  cr_assert_not(tier_reserve(tier, 5, 76, 1, 11));
  cr_assert_eq(tier_count(tier), 4);
  cr_assert(tier_reserve(tier, 5, 30, 1, 12)); /* oldest first, past the pinned one */
  cr_assert(tier_state(tier, 1) == TIER_ABSENT && tier_state(tier, 3) == TIER_ABSENT);
  cr_assert(tier_state(tier, 0) == TIER_READY && tier_state(tier, 2) == TIER_READY);
  cr_assert_eq(tier_used(tier), 80);
}

Test(tier, of_sizes_near_the_largest_number_does_not_overflow)
{
  g_autoptr(Tier) tier = tier_new(0, TRUE, 0, 3, &tier_policy_lru, NULL, NULL);
  cr_assert_eq(tier_capacity(tier), UINT64_MAX);
  add_ready(tier, 0, UINT64_MAX - 10, 0);
  tier_pin(tier, 0);
  cr_assert_not(tier_reserve(tier, 1, 11, 1, 1));
  cr_assert_not(tier_hold(tier, UINT64_MAX, 1));
  cr_assert(tier_reserve(tier, 1, 10, 1, 1));
  cr_assert_eq(tier_used(tier), UINT64_MAX);
}

Test(tier, weighted_keeps_what_is_asked_for_and_dear_to_reload)
{
  g_autoptr(Tier) tier = tier_new(30, FALSE, 0, 4, &tier_policy_weighted, NULL, NULL);
  for (int64_t t = 0; t < 5; t++)
    tier_touch(tier, 0, t); /* counted while absent */
  for (uint32_t m = 0; m < 3; m++) {
    tier_touch(tier, m, 10 + m);
    cr_assert(tier_reserve(tier, m, 10, m == 1 ? 2 : 1, 10 + m));
    tier_ready(tier, m);
  }
  cr_assert_eq(tier_victim(tier, 20), 2); /* 6 x 1, 1 x 2, 1 x 1 */
  for (int64_t t = 0; t < 3; t++)
    tier_touch(tier, 2, 21 + t);
  cr_assert_eq(tier_victim(tier, 30), 1); /* 6 x 1, 1 x 2, 4 x 1 */
  tier_touch(tier, 1, 12 * POPULARITY_HALF_LIFE_NS);
  cr_assert_eq(tier_victim(tier, 12 * POPULARITY_HALF_LIFE_NS), 2); /* old fame has faded */
}

Test(tier, popularity_halves_each_half_life_and_knows_no_clock)
{
  const int64_t starts[] = {0, -5 * NS_PER_S, INT64_MIN / 2, 1LL << 60};
  for (size_t i = 0; i < G_N_ELEMENTS(starts); i++) {
    struct popularity *popularity = popularity_new(2);
    cr_assert_eq(popularity_count(popularity, 0, starts[i]), 0);
    for (int use = 0; use < 8; use++)
      popularity_use(popularity, 0, starts[i]);
    popularity_use(popularity, 1, starts[i] + POPULARITY_HALF_LIFE_NS / 2);
    cr_assert_eq(popularity_count(popularity, 0, starts[i] + POPULARITY_HALF_LIFE_NS), 4);
    cr_assert_eq(popularity_count(popularity, 0, starts[i] + 3 * POPULARITY_HALF_LIFE_NS), 1);
    cr_assert_float_eq(popularity_count(popularity, 1, starts[i] + POPULARITY_HALF_LIFE_NS), 0.70710678,
                       1e-8);
    cr_assert_eq(popularity_count(popularity, 0, starts[i] + 4000 * NS_PER_S * 60), 0);
    popularity_free(popularity);
  }
}

/* Entries that each take a page more than their bytes say, as many as fit, and again after a raise. */
Test(tier, places_never_lack_room_that_the_account_has)
{
  const uint64_t bytes = ARENA_ALIGN + 1;
  g_autoptr(Tier) tier = tier_new(3 * bytes, FALSE, 0, 1000, &tier_policy_lru, NULL, NULL);
  tier_place_from(tier, 0, bytes);
  for (uint32_t m = 0; m < 3; m++)
    cr_assert(tier_reserve(tier, m, bytes, 1, 0) && ranges_bytes(tier_place(tier, m)) == bytes);
  cr_assert_not(tier_reserve(tier, 3, bytes, 1, 0));
  tier_set_capacity(tier, 9 * bytes + 1, 0);
  for (uint32_t m = 3; m < 9; m++)
    cr_assert(tier_reserve(tier, m, bytes, 1, 0));
  cr_assert(tier_hold(tier, 1, 0) && tier_held_place(tier)->range[0].length == 1);
  cr_assert_eq(tier_memory_bytes(3 * bytes, 0, 1000, bytes), 7 * ARENA_ALIGN);
  cr_assert_eq(tier_memory_bytes(3 * bytes, 1, 1000, bytes), 6 * ARENA_ALIGN);
  cr_assert_eq(tier_memory_bytes(3 * bytes, 0, 1, 0), 6 * ARENA_ALIGN);
}

Test(tier, policies_are_found_by_name)
{
  cr_assert_eq(tier_policy_by_name("lru"), &tier_policy_lru);
  cr_assert_eq(tier_policy_by_name("weighted"), &tier_policy_weighted);
  cr_assert_null(tier_policy_by_name("LRU"));
}
