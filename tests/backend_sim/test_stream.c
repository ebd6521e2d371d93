/* Streams worked by hand: the equations stand beside the figures. Capacities are in bytes a nanosecond for
 * short (x GB/s), so 10 bytes/ns moves 1,000 bytes in 100 ns. */
#include <criterion/criterion.h>
#include <math.h>

#include "backend_sim/stream.h"
#include "core/units.h"

#define PER_NS  1e9
#define REPORTS 64

struct report {
  uint64_t user;
  uint32_t milestone;
  double exact_ns;
  gboolean last;
};

struct bed {
  struct event_queue *queue;
  struct stream_net *net;
  struct report reports[REPORTS];
  uint32_t count;
  gboolean inside; /* of stream_start: no report may come */
  int64_t now;
};

static void on_milestone(void *context, stream_id stream, uint64_t user, uint32_t milestone, double exact_ns,
                         gboolean last)
{
  (void)stream;
  struct bed *bed = context;
  cr_assert_not(bed->inside);
  cr_assert_lt(bed->count, REPORTS);
  cr_expect(fabs(exact_ns - (double)bed->now) <= 0.5);
  bed->reports[bed->count++] = (struct report){user, milestone, exact_ns, last};
}

static struct bed *bed_new(void)
{
  struct bed *bed = g_new0(struct bed, 1);
  bed->queue = event_queue_new();
  bed->net = stream_net_new(bed->queue, 5, on_milestone, bed);
  return bed;
}

static void bed_free(struct bed *bed)
{
  stream_net_free(bed->net);
  event_queue_free(bed->queue);
  g_free(bed);
}

static void bed_settle(struct bed *bed)
{
  while (stream_net_settle(bed->net, bed->now))
    ;
}

/* Runs all events up to and with those of time until. */
static void bed_run(struct bed *bed, int64_t until)
{
  bed_settle(bed);
  while (event_queue_next(bed->queue) <= until) {
    uint32_t kind;
    uint64_t payload;
    int64_t before = bed->now;
    cr_assert(event_queue_pop(bed->queue, &bed->now, &kind, &payload));
    cr_assert(bed->now >= before && kind == 5);
    stream_net_event(bed->net, bed->now, payload);
    if (event_queue_next(bed->queue) != bed->now)
      bed_settle(bed);
  }
  bed->now = until;
}

static stream_id bed_start(struct bed *bed, double at_ns, const link_id *links, uint32_t count, double cap,
                           const uint64_t *ends, uint32_t milestones, uint64_t user)
{
  bed->inside = TRUE;
  stream_id id = stream_start(bed->net, at_ns, links, count, cap, ends, milestones, user);
  bed->inside = FALSE;
  return id;
}

static double bed_time(const struct bed *bed, uint64_t user, uint32_t milestone)
{
  for (uint32_t i = 0; i < bed->count; i++)
    if (bed->reports[i].user == user && bed->reports[i].milestone == milestone)
      return bed->reports[i].exact_ns;
  return NAN;
}

static void expect_time(const struct bed *bed, uint64_t user, uint32_t milestone, double ns)
{
  double got = bed_time(bed, user, milestone);
  cr_expect(fabs(got - ns) <= 1e-9 * fmax(1, ns), "stream %d milestone %u: %.12g ns, expected %.12g",
            (int)user, milestone, got, ns);
}

Test(stream, milestones_of_one_stream_are_analytic)
{
  /* 3 bytes/ns: byte k passes at 0.25 + k / 3 ns, to the last bit, however many milestones lie between. */
  struct bed *bed = bed_new();
  link_id l = stream_net_add_link(bed->net, 3 * PER_NS);
  uint64_t ends[50];
  for (uint64_t i = 0; i < 50; i++)
    ends[i] = 7 * i + 1;
  bed_start(bed, 0.25, &l, 1, 0, ends, 50, 1);
  bed_run(bed, 1000);
  cr_assert_eq(bed->count, 50);
  for (uint32_t i = 0; i < 50; i++) {
    cr_expect_eq(bed->reports[i].exact_ns, 0.25 + (double)ends[i] * 1e9 / (3 * PER_NS));
    cr_expect(bed->reports[i].milestone == i && bed->reports[i].last == (i == 49));
  }
  bed_free(bed);
}

Test(stream, staggered_starts)
{
  /* 10 bytes/ns; A (1,000 bytes) at 0, B (1,000) at 50, C (200) at 60.
   *   to 50: A at 10 -> 500.  to 60: A, B at 5 -> A 550, B 50.  three at 10/3:
   *   C done at 60 + 200 / (10/3) = 120; then A 750, B 250.  two at 5: A done at 120 + 250/5 = 170, B 500.
   *   B alone: 170 + 500/10 = 220. */
  struct bed *bed = bed_new();
  link_id l = stream_net_add_link(bed->net, 10 * PER_NS);
  static const uint64_t large[] = {500, 1000}, small[] = {200};
  bed_start(bed, 0, &l, 1, 0, large, 2, 'A');
  bed_run(bed, 49);
  bed->now = 50;
  bed_start(bed, 50, &l, 1, 0, large, 2, 'B');
  bed_run(bed, 55);
  bed->now = 60;
  bed_start(bed, 60, &l, 1, 0, small, 1, 'C');
  bed_run(bed, 1000);
  expect_time(bed, 'A', 0, 50);
  expect_time(bed, 'C', 0, 120);
  expect_time(bed, 'A', 1, 170);
  expect_time(bed, 'B', 0, 170);
  expect_time(bed, 'B', 1, 220);
  cr_expect_eq(bed->count, 5);
  bed_free(bed);
}

Test(stream, shards_of_two_loads_over_a_spine)
{
  /* Egress e0, e1 of 10, ingress i0, i1 of 10, all through a spine of 12 bytes/ns. Load 0: 600 bytes from
   * each egress to i0; load 1: 300 from e0 to i1.  Three streams: spine 12/3 = 4 each (e0 8 of 10, i0 8 of
   * 10). load 1 done at 300/4 = 75; the others have 300 left and get min(12/2, 10/2) = 5 each: done at 75 +
   * 60 = 135. */
  struct bed *bed = bed_new();
  link_id e0 = stream_net_add_link(bed->net, 10 * PER_NS), e1 = stream_net_add_link(bed->net, 10 * PER_NS);
  link_id i0 = stream_net_add_link(bed->net, 10 * PER_NS), i1 = stream_net_add_link(bed->net, 10 * PER_NS);
  link_id spine = stream_net_add_link(bed->net, 12 * PER_NS);
  static const uint64_t shard[] = {300, 600}, other[] = {300};
  bed_start(bed, 0, (link_id[]){e0, spine, i0}, 3, 0, shard, 2, 0);
  bed_start(bed, 0, (link_id[]){e1, spine, i0}, 3, 0, shard, 2, 1);
  bed_start(bed, 0, (link_id[]){e0, spine, i1}, 3, 0, other, 1, 2);
  bed_run(bed, 1000);
  for (uint64_t user = 0; user < 2; user++) {
    expect_time(bed, user, 0, 75);
    expect_time(bed, user, 1, 135);
  }
  expect_time(bed, 2, 0, 75);
  bed_free(bed);
}

Test(stream, a_cap_leaves_its_share_to_others)
{
  /* 10 bytes/ns; A capped at 2 (200 bytes), B free (1,600): B at 8, A done at 100, B 800; then 10: 100 + 80 =
   * 180. */
  struct bed *bed = bed_new();
  link_id l = stream_net_add_link(bed->net, 10 * PER_NS);
  static const uint64_t a[] = {200}, b[] = {1600};
  bed_start(bed, 0, &l, 1, 2 * PER_NS, a, 1, 'A');
  bed_start(bed, 0, &l, 1, 0, b, 1, 'B');
  bed_run(bed, 1000);
  expect_time(bed, 'A', 0, 100);
  expect_time(bed, 'B', 0, 180);
  bed_free(bed);
}

Test(stream, pause_and_resume)
{
  /* 10 bytes/ns; A and B of 1,000 at 5 each. A pauses at 40 (200 done): B at 10. A resumes at 100: B has 200
   * + 600. both at 5: B done at 100 + 200/5 = 140, A 400.  A alone: 140 + 600/10 = 200. */
  struct bed *bed = bed_new();
  link_id l = stream_net_add_link(bed->net, 10 * PER_NS);
  static const uint64_t ends[] = {1000};
  stream_id a = bed_start(bed, 0, &l, 1, 0, ends, 1, 'A');
  bed_start(bed, 0, &l, 1, 0, ends, 1, 'B');
  bed_run(bed, 40);
  stream_pause(bed->net, a, 40);
  stream_pause(bed->net, a, 40); /* again: nothing */
  bed_run(bed, 70);
  bed_run(bed, 100);
  stream_resume(bed->net, a, 100);
  bed_run(bed, 1000);
  expect_time(bed, 'B', 0, 140);
  expect_time(bed, 'A', 0, 200);
  bed_free(bed);
}

Test(stream, capacity_changes_on_the_way)
{
  /* 10 bytes/ns, 1,000 bytes. At 30 the link falls to 1 (300 done), at 130 (400) it rises to 20: 130 + 600/20
   * = 160. */
  struct bed *bed = bed_new();
  link_id l = stream_net_add_link(bed->net, 10 * PER_NS);
  static const uint64_t ends[] = {350, 1000};
  bed_start(bed, 0, &l, 1, 0, ends, 2, 1);
  bed_run(bed, 30);
  stream_net_set_capacity(bed->net, l, 1 * PER_NS, 30);
  bed_run(bed, 130);
  stream_net_set_capacity(bed->net, l, 20 * PER_NS, 130);
  bed_run(bed, 1000);
  expect_time(bed, 1, 0, 80);
  expect_time(bed, 1, 1, 160);
  bed_free(bed);
}

Test(stream, unlimited_and_empty_streams_end_at_once_by_an_event)
{
  struct bed *bed = bed_new();
  link_id unlimited = stream_net_add_link(bed->net, 0), slow = stream_net_add_link(bed->net, 1);
  static const uint64_t ends[] = {0, 5, 5, 1000000000}, nothing[] = {0}, one[] = {1000};
  bed->now = 77;
  bed_start(bed, 77.3, &unlimited, 1, 0, ends, 4, 1);
  bed_start(bed, 77.3, &slow, 1, 0, nothing, 1, 2);
  bed_run(bed, 77);
  cr_expect_eq(bed->count, 5);
  for (uint32_t i = 0; i < 4; i++)
    expect_time(bed, 1, i, 77.3);
  expect_time(bed, 2, 0, 77.3);
  /* a limit that is lifted on the way: ends then */
  bed_start(bed, 77.3, &slow, 1, 0, one, 1, 3);
  bed_run(bed, 90);
  stream_net_set_capacity(bed->net, slow, 0, 90);
  bed_run(bed, 90);
  expect_time(bed, 3, 0, 90);
  bed_free(bed);
}

Test(stream, cancelled_bytes_are_told)
{
  /* 3 bytes/ns, A and B: at 101 each has 151.5; A is cancelled: 151 bytes. B: 101 + (600 - 151.5)/3 = 250.5.
   */
  struct bed *bed = bed_new();
  link_id l = stream_net_add_link(bed->net, 3 * PER_NS);
  static const uint64_t ends[] = {100, 600};
  stream_id a = bed_start(bed, 0, &l, 1, 0, ends, 2, 'A');
  bed_start(bed, 0, &l, 1, 0, ends, 2, 'B');
  bed_run(bed, 101);
  cr_expect_eq(stream_cancel(bed->net, a, 101), 151);
  bed_run(bed, 1000);
  expect_time(bed, 'B', 1, 250.5);
  cr_expect(isnan(bed_time(bed, 'A', 1)));
  /* cancelled before it was ever settled, and while paused */
  stream_id b = bed_start(bed, 1000, &l, 1, 0, ends, 2, 'C');
  cr_expect_eq(stream_cancel(bed->net, b, 1000), 0);
  b = bed_start(bed, 1000, &l, 1, 0, ends, 2, 'D');
  bed_run(bed, 1010);
  stream_pause(bed->net, b, 1010);
  bed_run(bed, 1020);
  cr_expect_eq(stream_cancel(bed->net, b, 1020), 30);
  bed_run(bed, 2000);
  cr_expect_eq(event_queue_next(bed->queue), TIME_NEVER);
  bed_free(bed);
}

Test(stream, a_group_that_never_empties_keeps_its_precision)
{
  /* 20 bytes/ns; A moves 2e13 of 3e13 bytes to 1e12 ns; then B (1,000) at 10 each: 1e12 + 100. A has 1e13 -
   * 1,000 left: 1e12 + 100 + 5e11 - 50. A double tells 1.2e-4 ns there. */
  struct bed *bed = bed_new();
  link_id l = stream_net_add_link(bed->net, 20 * PER_NS);
  static const uint64_t huge[] = {30000000000000}, small[] = {500, 500, 1000};
  bed_start(bed, 0, &l, 1, 0, huge, 1, 'A');
  bed_run(bed, 1000000000000 - 1);
  bed->now = 1000000000000;
  bed_start(bed, 1e12, &l, 1, 0, small, 3, 'B');
  bed_run(bed, 2000000000000);
  cr_expect(fabs(bed_time(bed, 'B', 0) - (1e12 + 50)) < 1e-3);
  cr_expect_eq(bed_time(bed, 'B', 0), bed_time(bed, 'B', 1));
  cr_expect(fabs(bed_time(bed, 'B', 2) - (1e12 + 100)) < 1e-3);
  cr_expect(fabs(bed_time(bed, 'A', 0) - (1.5e12 + 50)) < 1e-3);
  bed_free(bed);
}
