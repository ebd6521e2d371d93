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
  const flow_id *changed;
  cr_expect_eq(fair_share_solve(fair, &changed), 2);
  cr_expect(changed[0] == a && changed[1] == b);
  /* a + b = 10, a = b */
  expect_rate(fair, a, 5);
  expect_rate(fair, b, 5);
  cr_expect_eq(fair_share_solve(fair, &changed), 0);
  fair_share_remove_flow(fair, a);
  cr_expect_eq(fair_share_solve(fair, &changed), 1);
  expect_rate(fair, b, 10);
  cr_expect_eq(fair_share_bottleneck(fair, b), l);
  fair_share_set_capacity(fair, l, 0);
  cr_expect_eq(fair_share_solve(fair, &changed), 1);
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
  const flow_id *changed;
  fair_share_solve(fair, &changed);
  expect_rate(fair, whole, 1.5);
  expect_rate(fair, each[0], 1.5);
  expect_rate(fair, each[1], 8.5);
  expect_rate(fair, each[2], 2.5);
  /* capacity of the first rises to 6: long + a = 6 -> 3 each, but long + c = 4 -> 2 each, so a = 4, b = 8 */
  fair_share_set_capacity(fair, l[0], 6);
  cr_expect_eq(fair_share_solve(fair, &changed), 4);
  expect_rate(fair, whole, 2);
  expect_rate(fair, each[0], 4);
  expect_rate(fair, each[1], 8);
  expect_rate(fair, each[2], 2);
  cr_expect(near(fair_share_link_rate(fair, l[1]), 10));
  /* what only c can feel: c leaves, long = min(6/2, 10/2, 4/1) = 3 */
  fair_share_remove_flow(fair, each[2]);
  fair_share_solve(fair, &changed);
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
  const flow_id *changed;
  cr_expect_eq(fair_share_solve(fair, &changed), 5);
  /* capped = 1, a + b = 8, a = b */
  expect_rate(fair, capped, 1);
  expect_rate(fair, a, 4);
  expect_rate(fair, b, 4);
  expect_rate(fair, nowhere, 7);
  cr_expect(isinf(fair_share_rate(fair, free_flow)));
  /* the unlimited link gets a capacity: capped = 1, a = free = (4 - 1) / 2, b = 9 - 1 - 1.5 */
  fair_share_set_capacity(fair, l[1], 4);
  fair_share_solve(fair, &changed);
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
  double told[FLOWS_MAX];
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
  plain->told[f] = 0;
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

/* All rates equal, and every flow whose rate changed is told, once, in order. */
static gboolean plain_agrees(struct plain *plain, struct fair_share *fair)
{
  const flow_id *changed;
  uint32_t count = fair_share_solve(fair, &changed);
  plain_fill(plain->capacity, plain->link_count, plain->flows, FLOWS_MAX);
  gboolean good = TRUE;
  for (uint32_t i = 1; i < count; i++)
    good = good && changed[i - 1] < changed[i];
  for (uint32_t f = 0; f < FLOWS_MAX; f++) {
    const struct plain_flow *flow = &plain->flows[f];
    if (!flow->active)
      continue;
    double rate = fair_share_rate(fair, plain->ids[f]);
    gboolean told = FALSE;
    for (uint32_t i = 0; i < count; i++)
      told = told || changed[i] == plain->ids[f];
    link_id bottleneck = fair_share_bottleneck(fair, plain->ids[f]);
    double alone = flow->cap > 0 ? flow->cap : INFINITY;
    good = good && near(rate, (double)flow->rate) && told == (rate != plain->told[f]) &&
           rate == (bottleneck != LINK_NONE ? fair_share_level(fair, bottleneck) : alone);
    plain->told[f] = rate;
  }
  for (link_id l = 0; l < plain->link_count && good; l++)
    good = plain->capacity[l] == 0 || fair_share_link_rate(fair, l) <= plain->capacity[l] * (1 + TOLERANCE);
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
