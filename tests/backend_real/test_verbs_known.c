/* What a verbs reader knows of a shelf's regions, beside a map of bytes. */
#include <criterion/criterion.h>
#include <string.h>

#include "backend_real/transport_verbs_known.h"

#define MODELS 3
#define BYTES  200 /* of each model, around an offset of its own */

static uint64_t base_of(uint32_t model)
{
  return model == 0 ? 0 : model == 1 ? 1ULL << 40 : UINT64_MAX - BYTES - 1;
}

/* Which entry told of each byte last; 0: none. */
struct oracle {
  uint32_t told[MODELS][BYTES];
};

/* A region goes whole when a part of it does. */
static void oracle_take(struct oracle *o, uint32_t model, uint32_t first, uint32_t count)
{
  for (uint32_t i = first; i < first + count; i++) {
    uint32_t number = o->told[model][i];
    for (uint32_t b = 0; number && b < BYTES; b++)
      if (o->told[model][b] == number)
        o->told[model][b] = 0;
  }
}

static struct verbs_region apply(GRand *random, struct known_table *table, struct oracle *o, uint32_t number)
{
  uint32_t model = (uint32_t)g_rand_int_range(random, 0, MODELS);
  uint32_t first = (uint32_t)g_rand_int_range(random, 0, BYTES);
  uint32_t count = (uint32_t)g_rand_int_range(random, 1, MIN(40, BYTES - first) + 1);
  struct verbs_region region = {.model = model,
                                .add = g_rand_int_range(random, 0, 3) > 0,
                                .offset = base_of(model) + first,
                                .bytes = count};
  region.rail[1].key = number;
  oracle_take(o, model, first, count);
  for (uint32_t i = first; region.add && i < first + count; i++)
    o->told[model][i] = number;
  cr_assert(known_apply(table, &region));
  return region;
}

static void compare(const struct known_table *table, const struct oracle *o)
{
  for (uint32_t m = 0; m < MODELS; m++) {
    uint32_t run = 0; /* bytes up to here that are known without a hole */
    for (uint32_t i = 0; i < BYTES; i++) {
      const struct known *known = known_find(table, m, base_of(m) + i);
      cr_assert_eq(known ? known->rail[1].key : 0, o->told[m][i], "model %u byte %u", m, i);
      run = known ? run + 1 : 0;
      cr_assert_eq(known_covers(table, m, base_of(m) + (i < 30 ? 0 : i - 30), i < 30 ? i + 1 : 31),
                   run >= (i < 30 ? i + 1 : 31));
    }
  }
}

Test(verbs_known, equals_a_map_of_bytes)
{
  g_autoptr(GRand) random = g_rand_new_with_seed(21);
  struct known_table *table = known_table_new(2);
  struct oracle oracle = {0};
  for (uint32_t n = 1; n <= 2000; n++) {
    apply(random, table, &oracle, n);
    if (n % 10 == 0)
      compare(table, &oracle);
  }
  cr_assert_null(known_find(table, MODELS, 0));
  cr_assert_eq(known_leaving(table), 0);
  known_table_close(table);
}

/* What is used stays as it was, and counts as leaving, until it is used no more; also past the end of the
 * table. */
Test(verbs_known, used_regions_outlive_their_place)
{
  enum { REGIONS = 10 };
  struct known_table *table = known_table_new(1);
  struct known *used[REGIONS];
  for (uint32_t i = 0; i < REGIONS; i++) {
    struct verbs_region region = {
        .model = i, .add = TRUE, .offset = 100, .bytes = 50, .rail = {{i * 4096, i}}};
    cr_assert(known_apply(table, &region));
    used[i] = known_find(table, i, 149);
    known_use(used[i]);
    known_use(used[i]);
  }
  for (uint32_t i = 0; i < REGIONS / 2; i++) {
    cr_assert(known_apply(table, &(struct verbs_region){.model = i, .offset = 149, .bytes = 1}));
    cr_assert_null(known_find(table, i, 100));
  }
  cr_assert_eq(known_leaving(table), REGIONS / 2);
  known_done(used[0]);
  known_done(used[0]);
  cr_assert_eq(known_leaving(table), REGIONS / 2 - 1);
  known_table_close(table);
  for (uint32_t i = 1; i < REGIONS; i++) {
    cr_assert(used[i]->rail[0].key == i && used[i]->rail[0].address == i * 4096);
    known_done(used[i]);
    known_done(used[i]);
  }
}
