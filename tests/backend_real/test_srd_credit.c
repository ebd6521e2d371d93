/* Credit for datagrams, against a count of everything that is under way, in random orders. */
#include <criterion/criterion.h>

#include "backend_real/srd_credit.h"

enum { FLIGHT = 4096 };

/* Both ends and what flies between them: the brute-force model. */
struct flight {
  struct credit_grant grant;
  struct credit_line line;
  uint32_t share;
  uint32_t data[FLIGHT]; /* `taken` of each datagram under way */
  uint32_t datas;
  uint32_t credit[FLIGHT]; /* `limit` of each credit under way */
  uint32_t credits;
  uint64_t sent, arrived;
};

static void check(const struct flight *f)
{
  cr_assert_leq(f->datas, f->share, "more under way than buffers");
  cr_assert_leq(f->credits, CREDITS_UNDER_WAY);
  cr_assert_leq(credit_line_left(&f->line) + f->datas, f->share, "it may send more than there are buffers");
  cr_assert_eq(f->sent, f->arrived + f->datas);
}

static void send_datagram(struct flight *f)
{
  credit_line_use(&f->line);
  f->data[f->datas++] = f->line.taken;
  f->sent++;
}

static void send_credit(struct flight *f)
{
  f->credit[f->credits++] = credit_grant_send(&f->grant);
}

static void land_datagram(struct flight *f, uint32_t which)
{
  uint32_t taken = f->data[which];
  f->data[which] = f->data[--f->datas];
  f->arrived++;
  cr_assert(credit_grant_arrived(&f->grant, taken));
}

static void land_credit(struct flight *f, uint32_t which)
{
  uint32_t limit = f->credit[which];
  f->credit[which] = f->credit[--f->credits];
  cr_assert(credit_line_take(&f->line, limit));
}

/* One thing that can happen does; FALSE: nothing can. wishes: datagrams that the shelf has to send. */
static gboolean step(struct flight *f, GRand *random, uint64_t wishes)
{
  gboolean can[] = {f->sent < wishes && credit_line_left(&f->line) > 0, credit_grant_due(&f->grant),
                    f->datas > 0, f->credits > 0};
  if (!can[0] && !can[1] && !can[2] && !can[3])
    return FALSE;
  uint32_t what;
  do
    what = g_rand_int_range(random, 0, 4);
  while (!can[what]);
  switch (what) {
  case 0:
    send_datagram(f);
    break;
  case 1:
    send_credit(f);
    break;
  case 2:
    land_datagram(f, g_rand_int_range(random, 0, f->datas));
    break;
  default:
    land_credit(f, g_rand_int_range(random, 0, f->credits));
  }
  check(f);
  return TRUE;
}

/* In whichever order things arrive, all is sent in the end: no state lets both ends wait. Counts begin
 * shortly before they wrap. */
Test(srd_credit, never_overruns_and_never_ends_in_waiting)
{
  static const uint32_t shares[] = {1, 2, 3, 4, 5, 7, 16, 64, 1000};
  GRand *random = g_rand_new_with_seed(2);
  static struct flight f;
  for (uint32_t round = 0; round < 300; round++) {
    f = (struct flight){.share = shares[round % G_N_ELEMENTS(shares)]};
    credit_grant_init(&f.grant, f.share);
    credit_line_init(&f.line, f.share);
    uint32_t begin = round % 2 ? 0 : (uint32_t)-50;
    f.grant.granted += begin;
    f.grant.arrived = f.line.used = begin;
    f.line.limit += begin;
    f.grant.credits = f.grant.taken = f.line.taken = begin;
    uint64_t wishes = 0;
    for (uint32_t burst = 0; burst < 20; burst++) {
      wishes += g_rand_int_range(random, 0, 5 * f.share + 2) % 500;
      while (step(&f, random, wishes))
        ;
      cr_assert_eq(f.sent, wishes, "both ends wait: share %u, sent %" G_GUINT64_FORMAT, f.share, f.sent);
      cr_assert_eq(f.arrived, wishes);
    }
  }
  g_rand_free(random);
}

Test(srd_credit, goes_back_in_batches)
{
  struct credit_grant grant;
  struct credit_line line;
  credit_grant_init(&grant, 64);
  credit_line_init(&line, 64);
  uint32_t credits = 0;
  for (uint32_t i = 0; i < 6400; i++) {
    credit_line_use(&line);
    cr_assert(credit_grant_arrived(&grant, line.taken));
    if (credit_grant_due(&grant)) {
      cr_assert(credit_line_take(&line, credit_grant_send(&grant)));
      credits++;
    }
  }
  cr_expect_eq(credits, 400, "%u", credits);
}

Test(srd_credit, refuses_what_was_not_granted)
{
  struct credit_grant grant;
  credit_grant_init(&grant, 2);
  cr_expect_not(credit_grant_arrived(&grant, 1), "tells of a credit that was never sent");
  cr_expect(credit_grant_arrived(&grant, 0) && credit_grant_arrived(&grant, 0), "that changed nothing");
  cr_expect_not(credit_grant_arrived(&grant, 0), "a third of two");
  credit_grant_send(&grant);
  cr_expect_not(credit_grant_arrived(&grant, 2));
  cr_expect_not(credit_grant_arrived(&grant, 0x7fffffff));
  cr_expect(credit_grant_arrived(&grant, 1));
  cr_expect(credit_grant_arrived(&grant, 0), "an older one, overtaken");

  struct credit_line line;
  credit_line_init(&line, 10);
  cr_expect_not(credit_line_take(&line, 11), "more than the share");
  cr_expect_not(credit_line_take(&line, 0x7fffffff));
  cr_expect_eq(line.taken, 0);
  credit_line_use(&line);
  cr_expect(credit_line_take(&line, 11));
  cr_expect(credit_line_take(&line, 3), "an older one, overtaken");
  cr_expect_eq(credit_line_left(&line), 10);
}
