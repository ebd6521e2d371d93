/* The limiter, on a clock of the test's own and on threads. */
#include <criterion/criterion.h>
#include <time.h>

#include "backend_real/pace.h"

static const double rates[] = {0.0125e9, 0.125e9, 1.25e9, 12.5e9}; /* 0.1 to 100 Gbit/s */

/* A second of takes by a sender that wakes up late by up to 1.4 ms: within 1% of the rate, and in no stretch
 * of time more than rate x T + depth. */
Test(pace, within_a_percent_at_every_rate)
{
  GRand *random = g_rand_new_with_seed(3);
  for (guint r = 0; r < G_N_ELEMENTS(rates); r++) {
    const int64_t start = 1000000007;
    struct pace *pace = pace_new(rates[r], start);
    double depth = rates[r] * PACE_DEPTH_NS * 1e-9, least_slack = G_MAXDOUBLE, sum = 0;
    for (int64_t now = start; now < start + 1000000000;) {
      int64_t again = 0;
      uint64_t want = g_rand_boolean(random) ? 1 << 20 : g_rand_int_range(random, 1, 5000);
      uint64_t given = pace_take(pace, want, now, &again);
      cr_assert_leq(given, want);
      if (!given) {
        cr_assert_gt(again, now);
        now = again + g_rand_int_range(random, 0, 1400000);
        continue;
      }
      /* Both ends of the stretch that gave most are takes: the worst start has the greatest slack before it.
       */
      double allowed = rates[r] * (double)(now - start) * 1e-9;
      least_slack = MIN(least_slack, sum - allowed);
      sum += (double)given;
      cr_assert_leq(sum - allowed, least_slack + depth + 1);
    }
    cr_expect_geq(sum, rates[r] * 0.99, "%g", rates[r]);
    cr_expect_leq(sum, rates[r] * 1.002 + 1, "%g", rates[r]);
    pace_free(pace);
  }
  g_rand_free(random);
}

Test(pace, what_was_not_used_is_there_again)
{
  struct pace *pace = pace_new(1e9, 0);
  int64_t again = 0;
  cr_assert_eq(pace_take(pace, 1000000, 1000000, &again), 1000000);
  cr_assert_eq(pace_take(pace, 1, 1000000, &again), 0);
  pace_return(pace, 400000);
  cr_assert_eq(pace_take(pace, 1000000, 1000000, &again), 0); /* not worth it: below a quarter of the depth */
  cr_assert_eq(again, 1500002);                               /* after the one byte that was told first */
  cr_assert_eq(pace_take(pace, 400000, 1000000, &again), 400000);
  /* A clock that stands still, or was read before another's, gives nothing and takes nothing. */
  cr_assert_eq(pace_take(pace, 1, 500000, &again), 0);
  cr_assert_eq(pace_take(pace, 1000, 1001000, &again), 1000);
  pace_free(pace);
}

/* After an hour's pause: no more than the depth at once. */
Test(pace, pauses_are_not_saved_up)
{
  struct pace *pace = pace_new(1e9, 0);
  int64_t again;
  cr_assert_eq(pace_take(pace, 1 << 30, 3600000000000, &again), 2000000);
  pace_free(pace);
}

static int64_t clock_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct crowd {
  struct pace *pace;
  int64_t until_ns;
  gint64 taken; /* atomic */
};

static void *take_until(void *data)
{
  struct crowd *crowd = data;
  for (int64_t now; (now = clock_ns()) < crowd->until_ns;) {
    int64_t again;
    uint64_t given = pace_take(crowd->pace, 1 << 20, now, &again);
    __atomic_fetch_add(&crowd->taken, given, __ATOMIC_RELAXED);
    struct timespec when = {again / 1000000000, again % 1000000000};
    if (!given)
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
  }
  return NULL;
}

/* Never over the limit by more than the depth; how far below is the machine's affair. */
Test(pace, threads_share_it)
{
  for (guint r = 1; r < 3; r++) {
    int64_t start = clock_ns();
    struct crowd crowd = {pace_new(rates[r], start), start + 300000000, 0};
    GThread *thread[4];
    for (int i = 0; i < 4; i++)
      thread[i] = g_thread_new("crowd", take_until, &crowd);
    for (int i = 0; i < 4; i++)
      g_thread_join(thread[i]);
    double seconds = (clock_ns() - start) * 1e-9, rate = crowd.taken / seconds;
    cr_expect_leq(rate, rates[r] * 1.05, "%g of %g", rate, rates[r]);
    cr_expect_geq(rate, rates[r] * 0.3, "%g of %g", rate, rates[r]);
    pace_free(crowd.pace);
  }
}

/* Four who wait are told four times, one after the other; each then gets its part, and one who comes early is
 * told the time that it knows. */
Test(pace, those_who_wait_come_one_by_one)
{
  struct pace *pace = pace_new(1e9, 0);
  int64_t again[4];
  for (int i = 0; i < 4; i++) {
    cr_assert_eq(pace_take(pace, 1 << 20, 0, &again[i]), 0);
    cr_expect_eq(again[i], 500001 + i * 500000);
  }
  for (int i = 0; i < 4; i++)
    cr_expect_eq(pace_take(pace, 500000, again[i], &again[i]), 500000);
  struct pace_share share = {pace, G_MAXINT64}, free_share = {0};
  int64_t told = 0;
  cr_expect_eq(pace_share_take(&share, 1, &told), 0);
  cr_expect_eq(told, G_MAXINT64);
  cr_expect_eq(pace_share_take(&free_share, 1 << 30, &told), 1 << 30);
  pace_free(pace);
}
