/* The clock of a link, beside exact arithmetic and on threads. */
#include <criterion/criterion.h>

#include "backend_real/pace.h"

static const double rates[] = {0.0125e9, 0.125e9, 1.25e9, 12.5e9}; /* 0.1 to 100 Gbit/s */

/* Bursts of any sizes with pauses between: each slot where sums of exact fractions put it, within 1 ns. */
Test(pace, slots_are_those_of_a_link)
{
  GRand *random = g_rand_new_with_seed(3);
  for (guint r = 0; r < G_N_ELEMENTS(rates); r++) {
    struct pace *pace = pace_new(rates[r]);
    const int64_t start = 1000000007;
    int64_t ready = start;
    long double free_ns = start;
    for (int i = 0; i < 100000; i++) {
      uint64_t bytes = (uint64_t)g_rand_int_range(random, 0, g_rand_boolean(random) ? 100 : 1 << 20);
      if (g_rand_int_range(random, 0, 50) == 0)
        ready = (int64_t)free_ns + g_rand_int_range(random, -2000000, 2000000);
      free_ns = MAX(free_ns, (long double)ready);
      struct pace_slot slot = pace_put(pace, bytes, ready);
      cr_assert_float_eq((double)((long double)slot.begin_ns - free_ns), 0, 1.01);
      free_ns += bytes * 1e9L / (long double)rates[r];
      cr_assert_float_eq((double)((long double)slot.end_ns - free_ns), 0, 1.01);
      cr_assert_geq(slot.begin_ns, ready);
    }
    pace_free(pace);
  }
  g_rand_free(random);
}

Test(pace, pauses_are_not_saved_up)
{
  struct pace *pace = pace_new(1e9);
  cr_expect_eq(pace_put(pace, 1000, 0).end_ns, 1000);
  struct pace_slot slot = pace_put(pace, 1000, 3600000000000);
  cr_expect_eq(slot.begin_ns, 3600000000000);
  cr_expect_eq(slot.end_ns, 3600000001000);
  cr_expect_eq(pace_put(pace, 0, 0).begin_ns, 3600000001000,
               "what was there long ago waits for what came before");
  pace_free(pace);
}

/* A byte an hour, and less than anybody will wait for. */
Test(pace, an_idle_link_waits_for_what_comes_first)
{
  struct pace *pace = pace_new(1e9);
  struct pace_slot first = pace_put(pace, 1000, 0), second = pace_put(pace, 500, 0);
  cr_expect_eq(second.end_ns, 1500);
  cr_expect_eq(pace_came(pace, &second, 300), 1800, "whichever of them it is");
  cr_expect_eq(pace_came(pace, &first, 900), 1300, "who comes later delays nobody");
  struct pace_slot third = pace_put(pace, 200, 1000);
  cr_expect_eq(third.begin_ns, 1800);
  cr_expect_eq(pace_came(pace, &third, 2500), 2000, "nor once the link has begun");
  struct pace_slot fourth = pace_put(pace, 100, 2500);
  cr_expect_eq(fourth.begin_ns, 2500, "idle since 2000");
  cr_expect_eq(pace_came(pace, &third, 2600), 2000, "a slot of before tells nothing of the present");
  cr_expect_eq(pace_came(pace, &fourth, 2700), 2800);
  cr_expect_eq(pace_put(pace, 100, 2700).end_ns, 2900);
  cr_expect_eq(pace_came(pace, &first, 2900), 1000, "nor the present of a slot of before");
  pace_free(pace);
}

Test(pace, slow_links_do_not_overflow)
{
  struct pace *pace = pace_new(1e-9);
  int64_t before = 0;
  for (int i = 0; i < 100000; i++) {
    struct pace_slot slot = pace_put(pace, 1 << 20, 1000);
    cr_assert_geq(slot.begin_ns, before);
    cr_assert_geq(slot.end_ns, slot.begin_ns);
    before = slot.end_ns;
  }
  pace_free(pace);
}

enum { CROWD = 4, PUTS = 20000, PUT_BYTES = 999 };

struct member {
  struct pace *pace;
  struct pace_slot slot[PUTS];
};

static void *put_all(void *data)
{
  struct member *member = data;
  for (int i = 0; i < PUTS; i++)
    member->slot[i] = pace_put(member->pace, PUT_BYTES, 0);
  return NULL;
}

static int by_begin(const void *a, const void *b)
{
  int64_t x = ((const struct pace_slot *)a)->begin_ns, y = ((const struct pace_slot *)b)->begin_ns;
  return (x > y) - (x < y);
}

/* Slots of several threads lie one after the other, without a gap and without an overlap. */
Test(pace, threads_share_it)
{
  struct pace *pace = pace_new(0.125e9);
  struct member *member = g_new0(struct member, CROWD);
  GThread *thread[CROWD];
  for (int i = 0; i < CROWD; i++) {
    member[i].pace = pace;
    thread[i] = g_thread_new("crowd", put_all, &member[i]);
  }
  struct pace_slot *all = g_new(struct pace_slot, CROWD * PUTS);
  for (int i = 0; i < CROWD; i++) {
    g_thread_join(thread[i]);
    for (int k = 0; k < PUTS; k++)
      all[i * PUTS + k] = member[i].slot[k];
  }
  qsort(all, CROWD * PUTS, sizeof *all, by_begin);
  cr_expect_eq(all[0].begin_ns, 0);
  for (int i = 1; i < CROWD * PUTS; i++)
    cr_assert_eq(all[i].begin_ns, all[i - 1].end_ns);
  cr_expect_eq(all[CROWD * PUTS - 1].end_ns, (int64_t)CROWD * PUTS * PUT_BYTES * 8);
  g_free(all);
  g_free(member);
  pace_free(pace);
}
