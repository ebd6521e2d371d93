/* Loads over a paced transport, and what they are cut into. */
#include <criterion/criterion.h>

#include "backend_real/transport.h"
#include "backend_real/transport_tcp.h"
#include "transport_lab.h"

#define MIB (1U << 20)

enum { BURSTS = 4, READS = 4, PAUSE_US = 20000 };

static double seconds_of_burst(struct lab *lab, uint32_t burst)
{
  gint64 start = g_get_monotonic_time();
  for (uint32_t i = 0; i < READS; i++)
    lab_read(lab, 1, 0, (uint64_t)i * MIB, MIB, burst * READS + i);
  lab_wait(lab, (burst + 1) * READS);
  return (double)(g_get_monotonic_time() - start) * 1e-6;
}

/* Bursts with pauses between, at a shelf and a reader of which one or both have the rate: none is faster than
 * the rate allows, for nothing is saved up. A shelf lets go of the last read when its turn on the link
 * begins: it is the reader that knows when it would have come. */
static void bursts(const struct transport_ops *ops, double rate, gboolean at_reader, gboolean at_shelf)
{
  const struct transport_options limit = {.pace_bytes_s = rate}, *none = NULL;
  struct lab *lab = lab_new_reader(ops, 4 * MIB, READS * MIB, at_reader ? &limit : none);
  lab_open_shelf(lab, "127.0.0.1:0", at_shelf ? &limit : none);
  struct ranges place = lab_serve(lab, 1, 0, MIB, MIB);
  double least = (at_reader ? READS : READS - 1) * (double)MIB / rate;
  for (uint32_t i = 0; i < BURSTS; i++) {
    double seconds = seconds_of_burst(lab, i);
    cr_expect_gt(seconds, least, "burst %u: %.4f s, at the rate %.4f s", i, seconds, least);
#ifndef __SANITIZE_THREAD__ /* where threads take their time */
    cr_expect_lt(seconds, 10 * least + 1, "burst %u: %.4f s, at the rate %.4f s", i, seconds, least);
#endif
    g_usleep(PAUSE_US);
  }
  cr_expect_eq(lab->good, BURSTS * READS);
  for (uint64_t i = 0; i < READS; i++)
    cr_expect(lab_has(lab, 1, 0, i * MIB, MIB));
  g_free(place.range);
  transport_lab_free(lab);
}

Test(transport_paced, pauses_are_not_saved_up)
{
  bursts(&transport_tcp, 0.125e9, TRUE, TRUE);
  bursts(&transport_tcp, 0.125e9, TRUE, FALSE);
  bursts(&transport_tcp, 0.125e9, FALSE, TRUE);
}

/* The link carries reads in the order in which they were asked for, over however many connections they come:
 * none ends before it has carried all that precede it. */
Test(transport_paced, reads_come_in_the_order_of_asking)
{
  enum { MANY = 40 };
  const double rate = 0.25e9;
  const struct transport_options limit = {.pace_bytes_s = rate};
  struct lab *lab = transport_lab_new(&transport_tcp, 4 * MIB, MANY * MIB, &limit);
  struct ranges place = lab_serve(lab, 1, 0, MIB, MIB);
  GRand *random = g_rand_new_with_seed(5);
  uint64_t before = 0;
  gint64 start = g_get_monotonic_time();
  uint64_t least_us[MANY];
  for (uint32_t i = 0; i < MANY; i++) {
    uint32_t bytes = 1 + (g_rand_int(random) % MIB >> 4 * g_rand_int_range(random, 0, 4));
    lab_read(lab, 1, 0, (uint64_t)i * MIB, bytes, i);
    before += bytes;
    least_us[i] = (uint64_t)((double)before / rate * 1e6);
  }
  lab_wait(lab, MANY);
  for (uint32_t i = 0; i < MANY; i++)
    cr_expect_geq(lab->ended_us[i] - start, (gint64)least_us[i], "read %u", i);
#ifndef __SANITIZE_THREAD__ /* where threads take their time */
  double seconds = (double)(lab->ended_us[MANY - 1] - start) * 1e-6;
  cr_expect_lt(seconds, 10 * (double)before / rate + 1, "%.4f s", seconds);
#endif
  cr_expect_eq(lab->good, MANY);
  g_rand_free(random);
  g_free(place.range);
  transport_lab_free(lab);
}

/* A load that begins while another is under way shares the link with it from then on. */
Test(transport_paced, loads_share_the_link)
{
  enum { LONG = 40 };
  const struct transport_options limit = {.pace_bytes_s = 0.25e9};
  struct lab *lab = transport_lab_new(&transport_tcp, 8 * MIB, (LONG + 1) * MIB, &limit);
  struct ranges first = lab_serve(lab, 1, 0, MIB, MIB), second = lab_serve(lab, 2, 0, MIB, MIB);
  for (uint32_t i = 0; i < LONG; i++)
    lab_read(lab, 1, 0, (uint64_t)i * MIB, MIB, i);
  lab_read(lab, 2, 0, LONG * (uint64_t)MIB, MIB, LONG);
  lab_wait(lab, LONG + 1);
  cr_expect_lt(lab->ended_us[LONG], lab->ended_us[LONG / 2], "it waited for half of the other");
  cr_expect_eq(lab->good, LONG + 1);
  g_free(first.range);
  g_free(second.range);
  transport_lab_free(lab);
}

/* Any length is cut into equal reads and a rest, none over the limit; as many for each connection where they
 * are not at their least. */
Test(transport_paced, reads_fill_the_connections)
{
  GRand *random = g_rand_new_with_seed(11);
  for (int i = 0; i < 200000; i++) {
    uint64_t length = 1 + (((uint64_t)g_rand_int(random) << 8) >> g_rand_int_range(random, 0, 40));
    uint64_t bytes = transport_read_bytes(length), reads = (length - 1) / bytes + 1;
    cr_assert_geq(bytes, 64 << 10);
    cr_assert_leq(bytes, READ_BYTES_MAX);
    if (bytes == 64 << 10)
      continue;
    uint64_t rounds = (reads - 1) / TCP_CONNECTIONS + 1, most = rounds * TCP_CONNECTIONS;
    cr_assert_geq(most * bytes, length);
    /* Rounded up to pages, a long row may need a few reads less. */
    cr_assert_lt(most * bytes - length, bytes + most * 4096, "%" G_GUINT64_FORMAT, length);
  }
  g_rand_free(random);
}
