/* Max-min rates: small systems as the equations they are, and a brute-force filler on random topologies. */
#include <criterion/criterion.h>
#include <math.h>

#include "backend_sim/fair_share.h"
#include "plain_fill.h"

#define TOLERANCE 1e-9

static gboolean near(double a, double b)
{
  return a == b || fabs(a - b) <= TOLERANCE * fmax(fabs(a), fabs(b));
}

/* How many links have another level now, and how many flows another bottleneck. */
static void expect_changes(struct fair_share *fair, uint32_t levels, uint32_t moved)
{
  struct fair_changes changes;
  fair_share_update(fair, &changes);
  cr_expect_eq(changes.level_count, levels);
  cr_expect_eq(changes.moved_count, moved);
}

static void expect_rate(struct fair_share *fair, flow_id flow, double rate)
{
  cr_expect(near(fair_share_rate(fair, flow), rate), "flow %u: rate %.17g, expected %.17g", flow,
            fair_share_rate(fair, flow), rate);
}

Test(fair_share, two_flows_share_one_link)
{
  struct fair_share *fair = fair_share_new();
  link_id l = fair_share_add_link(fair, 10);
  flow_id a = fair_share_add_flow(fair, &l, 1, 0), b = fair_share_add_flow(fair, &l, 1, 0);
  expect_rate(fair, a, 0); /* not solved yet */
  expect_changes(fair, 1, 2);
  /* a + b = 10, a = b */
  expect_rate(fair, a, 5);
  expect_rate(fair, b, 5);
  expect_changes(fair, 0, 0);
  fair_share_remove_flow(fair, a);
  expect_changes(fair, 1, 0);
  expect_rate(fair, b, 10);
  cr_expect_eq(fair_share_bottleneck(fair, b), l);
  fair_share_set_capacity(fair, l, 0);
  expect_changes(fair, 1, 1);
  cr_expect(isinf(fair_share_rate(fair, b)));
  cr_expect_eq(fair_share_bottleneck(fair, b), LINK_NONE);
  fair_share_free(fair);
}

Test(fair_share, line_of_three_links)
{
  /* The textbook line: one flow over all of capacities 3, 10, 4, and one more flow on each.
   *   long + a = 3 -> 1.5 each;  long + b = 10 -> b = 8.5;  long + c = 4 -> c = 2.5 */
  struct fair_share *fair = fair_share_new();
  link_id l[3] = {fair_share_add_link(fair, 3), fair_share_add_link(fair, 10), fair_share_add_link(fair, 4)};
  flow_id whole = fair_share_add_flow(fair, l, 3, 0);
  flow_id each[3];
  for (int i = 0; i < 3; i++)
    each[i] = fair_share_add_flow(fair, &l[i], 1, 0);
  expect_changes(fair, 3, 4);
  expect_rate(fair, whole, 1.5);
  expect_rate(fair, each[0], 1.5);
  expect_rate(fair, each[1], 8.5);
  expect_rate(fair, each[2], 2.5);
  /* capacity of the first rises to 6: long + a = 6 -> 3 each, but long + c = 4 -> 2 each, so a = 4, b = 8 */
  fair_share_set_capacity(fair, l[0], 6);
  expect_changes(fair, 3, 1);
  expect_rate(fair, whole, 2);
  expect_rate(fair, each[0], 4);
  expect_rate(fair, each[1], 8);
  expect_rate(fair, each[2], 2);
  /* what only c can feel: c leaves, long = min(6/2, 10/2, 4/1) = 3 */
  fair_share_remove_flow(fair, each[2]);
  expect_changes(fair, 3, 1);
  expect_rate(fair, whole, 3);
  expect_rate(fair, each[0], 3);
  expect_rate(fair, each[1], 7);
  fair_share_free(fair);
}

Test(fair_share, caps_and_infinite_links)
{
  struct fair_share *fair = fair_share_new();
  link_id l[2] = {fair_share_add_link(fair, 9), fair_share_add_link(fair, 0)};
  flow_id capped = fair_share_add_flow(fair, l, 2, 1), a = fair_share_add_flow(fair, l, 2, 0);
  flow_id b = fair_share_add_flow(fair, l, 1, 100), free_flow = fair_share_add_flow(fair, l + 1, 1, 0);
  flow_id nowhere = fair_share_add_flow(fair, NULL, 0, 7);
  expect_changes(fair, 1, 5);
  /* capped = 1, a + b = 8, a = b */
  expect_rate(fair, capped, 1);
  expect_rate(fair, a, 4);
  expect_rate(fair, b, 4);
  expect_rate(fair, nowhere, 7);
  cr_expect(isinf(fair_share_rate(fair, free_flow)));
  /* the unlimited link gets a capacity: capped = 1, a = free = (4 - 1) / 2, b = 9 - 1 - 1.5 */
  fair_share_set_capacity(fair, l[1], 4);
  expect_changes(fair, 2, 2);
  expect_rate(fair, a, 1.5);
  expect_rate(fair, free_flow, 1.5);
  expect_rate(fair, b, 6.5);
  fair_share_free(fair);
}

/* --- Random topologies against the brute force --- */

#define LINKS_MAX 24
#define FLOWS_MAX 48

struct plain {
  double capacity[LINKS_MAX];
  uint32_t link_count;
  struct plain_flow flows[FLOWS_MAX];
  flow_id ids[FLOWS_MAX];
  /* As last told. */
  double rate[FLOWS_MAX], level[LINKS_MAX];
  link_id bottleneck[FLOWS_MAX];
};

static double random_capacity(GRand *random)
{
  switch (g_rand_int_range(random, 0, 4)) {
  case 0:
    return g_rand_int_range(random, 0, 4); /* ties, and infinite links */
  case 1:
    return g_rand_double_range(random, 1e-3, 1e3);
  default:
    return g_rand_double_range(random, 1, 10);
  }
}

static void random_add(struct plain *plain, struct fair_share *fair, GRand *random)
{
  uint32_t f = (uint32_t)g_rand_int_range(random, 0, FLOWS_MAX);
  struct plain_flow *flow = &plain->flows[f];
  if (flow->active)
    return;
  *flow = (struct plain_flow){.active = TRUE};
  uint32_t count = (uint32_t)g_rand_int_range(random, 1, FLOW_LINKS_MAX + 1);
  for (uint32_t i = 0; i < MIN(count, plain->link_count); i++) {
    link_id l = (link_id)g_rand_int_range(random, 0, (gint32)plain->link_count);
    if (!plain_crosses(flow, l))
      flow->links[flow->count++] = l;
  }
  flow->cap = g_rand_int_range(random, 0, 3) ? 0 : random_capacity(random);
  plain->ids[f] = fair_share_add_flow(fair, flow->links, flow->count, flow->cap);
  plain->rate[f] = 0;
  plain->bottleneck[f] = LINK_NONE;
}

static void random_change(struct plain *plain, struct fair_share *fair, GRand *random)
{
  uint32_t f = (uint32_t)g_rand_int_range(random, 0, FLOWS_MAX);
  switch (g_rand_int_range(random, 0, 7)) {
  case 0: {
    link_id l = (link_id)g_rand_int_range(random, 0, (gint32)plain->link_count);
    plain->capacity[l] = random_capacity(random);
    fair_share_set_capacity(fair, l, plain->capacity[l]);
    break;
  }
  case 1:
  case 2:
  case 3:
    if (plain->flows[f].active)
      fair_share_remove_flow(fair, plain->ids[f]);
    plain->flows[f].active = FALSE;
    break;
  default:
    random_add(plain, fair, random);
  }
}

static uint32_t times_in(const uint32_t *ids, uint32_t count, uint32_t id)
{
  uint32_t times = 0;
  for (uint32_t i = 0; i < count; i++)
    times += ids[i] == id;
  return times;
}

/* Links with another level are told, once, and no others. */
static gboolean levels_told(struct plain *plain, const struct fair_share *fair,
                            const struct fair_changes *changes)
{
  gboolean good = TRUE;
  for (link_id l = 0; l < plain->link_count; l++) {
    double level = fair_share_level(fair, l);
    good = good && times_in(changes->levels, changes->level_count, l) == (level != plain->level[l]);
    plain->level[l] = level;
  }
  return good;
}

/* A flow that is not told as moved, which is done once, has the bottleneck that it had, and another rate only
 * with that link's level. */
static gboolean flow_told(struct plain *plain, const struct fair_share *fair,
                          const struct fair_changes *changes, uint32_t f)
{
  const struct plain_flow *flow = &plain->flows[f];
  double rate = fair_share_rate(fair, plain->ids[f]), alone = flow->cap > 0 ? flow->cap : INFINITY;
  link_id bottleneck = fair_share_bottleneck(fair, plain->ids[f]);
  uint32_t moved = times_in(changes->moved, changes->moved_count, plain->ids[f]);
  gboolean slid = bottleneck != LINK_NONE && times_in(changes->levels, changes->level_count, bottleneck) == 1;
  gboolean good =
      moved == 1 || (moved == 0 && bottleneck == plain->bottleneck[f] && (slid || rate == plain->rate[f]));
  plain->rate[f] = rate;
  plain->bottleneck[f] = bottleneck;
  return good && rate == (bottleneck != LINK_NONE ? fair_share_level(fair, bottleneck) : alone);
}

/* All rates equal, and what changed is told. */
static gboolean plain_agrees(struct plain *plain, struct fair_share *fair)
{
  struct fair_changes changes;
  double sum[LINKS_MAX] = {0};
  fair_share_update(fair, &changes);
  plain_fill(plain->capacity, plain->link_count, plain->flows, FLOWS_MAX);
  gboolean good = levels_told(plain, fair, &changes);
  for (uint32_t f = 0; f < FLOWS_MAX && good; f++) {
    const struct plain_flow *flow = &plain->flows[f];
    if (!flow->active)
      continue;
    good = flow_told(plain, fair, &changes, f) && near(plain->rate[f], (double)flow->rate);
    for (uint32_t i = 0; i < flow->count; i++)
      sum[flow->links[i]] += plain->rate[f];
  }
  for (link_id l = 0; l < plain->link_count && good; l++)
    good = plain->capacity[l] == 0 || sum[l] <= plain->capacity[l] * (1 + TOLERANCE);
  return good;
}

Test(fair_share, equals_brute_force_on_10000_random_topologies, .timeout = 60)
{
  g_autoptr(GRand) random = g_rand_new_with_seed(20240607);
  for (int topology = 0; topology < 10000; topology++) {
    struct plain plain = {.link_count = (uint32_t)g_rand_int_range(random, 1, LINKS_MAX + 1)};
    struct fair_share *fair = fair_share_new();
    for (link_id l = 0; l < plain.link_count; l++) {
      plain.capacity[l] = random_capacity(random);
      fair_share_add_link(fair, plain.capacity[l]);
      plain.level[l] = INFINITY;
    }
    int batches = g_rand_int_range(random, 1, 7);
    for (int batch = 0; batch < batches; batch++) {
      int changes = batch ? g_rand_int_range(random, 1, 6) : g_rand_int_range(random, 1, FLOWS_MAX);
      for (int i = 0; i < changes; i++)
        random_change(&plain, fair, random);
      cr_assert(plain_agrees(&plain, fair), "topology %d, batch %d", topology, batch);
    }
    fair_share_free(fair);
  }
}
