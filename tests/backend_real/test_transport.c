/* What every transport holds to, over loopback: right bytes in the right place, for those alone who may read
 * them, at the pace that is asked for. Ends that go: test_transport_gone.c. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/error.h"
#include "core/units.h"
#include "transport_lab.h"

#define MIB (1U << 20)

/* Reads of random sizes of several models, many under way, each to a place of its own with blank around. */
TRANSPORT_TEST(random_reads_are_right_and_touch_nothing_else)
{
  enum { MODELS = 5, READS = 600, IMAGE = 3 * MIB + 4321, GAP = 13 };
  struct lab *lab = transport_lab_new(ops, 64 * MIB, 96 * MIB, NULL);
  for (uint32_t m = 0; m < MODELS; m++) {
    struct ranges place = lab_serve(lab, m, m * 1000, IMAGE, m == 0 ? 4096 : 4096U << 2 * m);
    g_free(place.range);
  }
  struct {
    uint32_t model, bytes;
    uint64_t offset, to;
  } read[READS];
  uint64_t to = GAP, bytes = 0;
  for (uint32_t i = 0; i < READS; i++) {
    read[i].model = g_rand_int_range(lab->random, 0, MODELS);
    uint32_t most = i % 4 == 0 ? MIB : i % 4 == 1 ? 100 : 100000;
    read[i].bytes = i < 4 ? MIB : (uint32_t)g_rand_int_range(lab->random, 1, (gint32)most + 1);
    read[i].offset =
        read[i].model * 1000 + g_rand_int_range(lab->random, 0, IMAGE - (gint32)read[i].bytes + 1);
    read[i].to = to;
    to += read[i].bytes + GAP;
    bytes += read[i].bytes;
    cr_assert(to <= lab->to.bytes);
    lab_read(lab, read[i].model, read[i].offset, read[i].to, read[i].bytes, i);
  }
  lab_wait(lab, READS);
  cr_assert_eq(lab->good, READS);
  for (uint32_t i = 0; i < READS; i++) {
    cr_assert(lab_has(lab, read[i].model, read[i].offset, read[i].to, read[i].bytes), "read %u", i);
    cr_assert(lab_blank(lab, read[i].to - GAP, GAP), "before read %u", i);
  }
  cr_assert(lab_blank(lab, to - GAP, GAP));
  cr_assert_eq(ops->reader_bytes(lab->reader), bytes);
  ops->reader_drop(lab->reader,
                   LAB_SHELF); /* of RDMA the shelf knows what its reader tells, at the latest then */
  lab_pump(lab);
  cr_assert_eq(ops->shelf_bytes(lab->shelf), bytes);
  transport_lab_free(lab);
}

/* More models than a connection holds rights for, in turn, so that rights are lost and asked for again. */
TRANSPORT_TEST(many_models_in_turn)
{
  enum { MODELS = 200, ROUNDS = 4, BYTES = 5000 };
  struct lab *lab = transport_lab_new(ops, 4 * MIB, 8 * MIB, &(struct transport_options){.connections = 3});
  for (uint32_t m = 0; m < MODELS; m++) {
    struct ranges place = lab_serve(lab, m * 77777, 0, BYTES, 8192);
    g_free(place.range);
  }
  for (uint32_t i = 0; i < MODELS * ROUNDS; i++)
    lab_read(lab, i % MODELS * 77777, 1, (uint64_t)i * BYTES, BYTES - 1, i);
  lab_wait(lab, MODELS * ROUNDS);
  cr_assert_eq(lab->good, MODELS * ROUNDS);
  for (uint32_t i = 0; i < MODELS * ROUNDS; i++)
    cr_assert(lab_has(lab, i % MODELS * 77777, 1, (uint64_t)i * BYTES, BYTES - 1));
  transport_lab_free(lab);
}

/* What is not served fails, wholly or in part, and the reads around it do not. */
TRANSPORT_TEST(what_is_not_served_fails_alone)
{
  struct lab *lab = transport_lab_new(ops, 4 * MIB, 4 * MIB, &(struct transport_options){.connections = 1});
  struct ranges place = lab_serve(lab, 1, 0, 100000, 4096);
  ops->shelf_serve(lab->shelf, 1, 30000, 20000, NULL);
  static const struct {
    uint32_t model, offset, bytes;
    enum lab_end end;
  } reads[] = {{1, 0, 30000, LAB_GOOD},       {1, 29999, 2, LAB_FAILED},   {1, 50000, 50000, LAB_GOOD},
               {1, 49999, 2, LAB_FAILED},     {1, 35000, 100, LAB_FAILED}, {2, 0, 100, LAB_FAILED},
               {1, 20000, 60000, LAB_FAILED}, {1, 99999, 1, LAB_GOOD}};
  for (uint32_t i = 0; i < G_N_ELEMENTS(reads); i++)
    lab_read(lab, reads[i].model, reads[i].offset, i * 100000, reads[i].bytes, i);
  lab_wait(lab, G_N_ELEMENTS(reads));
  for (uint32_t i = 0; i < G_N_ELEMENTS(reads); i++) {
    cr_expect_eq(lab->end[i], reads[i].end, "read %u", i);
    if (reads[i].end == LAB_GOOD)
      cr_expect(lab_has(lab, reads[i].model, reads[i].offset, i * 100000, reads[i].bytes));
  }
  /* Served again, elsewhere. */
  struct ranges again = lab_serve(lab, 1, 30000, 20000, 8192);
  lab_read(lab, 1, 0, 2 * MIB, 100000, 100);
  lab_wait(lab, G_N_ELEMENTS(reads) + 1);
  cr_expect_eq(lab->end[100], LAB_GOOD);
  cr_expect(lab_has(lab, 1, 0, 2 * MIB, 100000));
  g_free(place.range);
  g_free(again.range);
  transport_lab_free(lab);
}

/* A read past all that was ever served, or that cannot be, fails; later ones are served. */
TRANSPORT_TEST(reads_out_of_bounds_fail)
{
  struct lab *lab = transport_lab_new(ops, 2 * MIB, 2 * MIB, &(struct transport_options){.connections = 2});
  struct ranges place = lab_serve(lab, 1, 1000, 50000, 4096);
  lab_read(lab, 1, 50000, 0, 1001, 0);
  lab_wait(lab, 1);
  lab_read(lab, 1, 999, 0, 2, 1);
  lab_wait(lab, 2);
  lab_read(lab, 1, 2000, 2 * MIB - 10, 11, 2); /* past the reader's own memory */
  lab_read(lab, 1, 2000, UINT64_MAX - 5, 10, 3);
  lab_read(lab, 1, UINT64_MAX - 5, 0, 10, 4);
  lab_read(lab, 1, 2000, 0, 0, 5);
  lab_read(lab, 1, 2000, 0, READ_BYTES_MAX + 1, 6);
  ops->reader_read(lab->reader, &(struct transport_read){.server = LAB_SHELF + 1, /* which it does not know */
                                                         .model = 1,
                                                         .offset = 2000,
                                                         .gpu = NO_INDEX,
                                                         .bytes = 10,
                                                         .tag = 7});
  lab_wait(lab, 8);
  cr_expect_eq(lab->failed, 8);
  cr_expect(lab_blank(lab, 0, 2 * MIB));
  lab_read(lab, 1, 2000, 0, 10, 8);
  lab_wait(lab, 9);
  cr_expect_eq(lab->good, 1);
  g_free(place.range);
  transport_lab_free(lab);
}

/* Who is not admitted, has another secret or was expelled gets nothing; who is admitted again does. */
TRANSPORT_TEST(only_the_admitted_read)
{
  struct lab *lab = transport_lab_new(ops, MIB, MIB, NULL);
  struct ranges place = lab_serve(lab, 1, 0, 10000, 4096);
  const char *address = ops->shelf_address(lab->shelf);
  struct ticket_secret other = {.key = "another"};
  lab_read(lab, 1, 0, 0, 1000, 0);
  lab_wait(lab, 1);
  ops->reader_peer(lab->reader, LAB_SHELF, address, &other);
  lab_pump(lab);
  lab_read(lab, 1, 0, 0, 1000, 1);
  lab_wait(lab, 2);
  /* Whose right has changed begins anew: other connections than the first may be on their way out. */
  ops->shelf_admit(lab->shelf, LAB_READER, &other);
  ops->reader_drop(lab->reader, LAB_SHELF);
  ops->reader_peer(lab->reader, LAB_SHELF, address, &other);
  lab_pump(lab);
  lab_read(lab, 1, 0, 0, 1000, 2);
  lab_wait(lab, 3);
  ops->shelf_expel(lab->shelf, LAB_READER);
  ops->reader_drop(lab->reader, LAB_SHELF);
  ops->reader_peer(lab->reader, LAB_SHELF, address, &other);
  lab_pump(lab);
  lab_read(lab, 1, 0, 0, 1000, 3);
  lab_wait(lab, 4);
  ops->shelf_admit(lab->shelf, LAB_READER, &other);
  ops->reader_drop(lab->reader, LAB_SHELF);
  ops->reader_peer(lab->reader, LAB_SHELF, address, &other);
  lab_pump(lab);
  ops->shelf_admit(lab->shelf, LAB_READER + 1, &lab->secret);
  lab_read(lab, 1, 0, 0, 1000, 4);
  lab_wait(lab, 5);
  ops->reader_peer(lab->reader, LAB_SHELF, address, &lab->secret);
  lab_pump(lab); /* another reader's */
  lab_read(lab, 1, 0, 0, 1000, 5);
  lab_wait(lab, 6);
  static const enum lab_end expected[] = {LAB_GOOD, LAB_FAILED, LAB_GOOD, LAB_FAILED, LAB_GOOD, LAB_FAILED};
  for (uint32_t i = 0; i < G_N_ELEMENTS(expected); i++)
    cr_expect_eq(lab->end[i], expected[i], "read %u", i);
  g_free(place.range);
  transport_lab_free(lab);
}

static void refuses_to_pace(const struct transport_ops *ops, double rate)
{
  g_autoptr(GError) error = NULL;
  struct lab *lab = transport_lab_new(ops, ARENA_ALIGN, ARENA_ALIGN, NULL);
  struct transport_options options = {.pace_bytes_s = rate};
  struct reader_config reader = lab_reader_config(lab, &options);
  struct shelf_config shelf = lab_shelf_config(lab, "127.0.0.1:0", &options);
  cr_expect_null(ops->reader_new(&reader, &error));
  cr_expect(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
  cr_expect_null(ops->shelf_new(&shelf, NULL));
  transport_lab_free(lab);
}

static double seconds_of(const struct transport_ops *ops, uint32_t reads, double rate)
{
  struct lab *lab = transport_lab_new(ops, 4 * MIB, reads * (uint64_t)MIB,
                                      &(struct transport_options){.pace_bytes_s = rate});
  struct ranges place = lab_serve(lab, 1, 0, MIB, MIB);
  gint64 start = g_get_monotonic_time();
  for (uint32_t i = 0; i < reads; i++)
    lab_read(lab, 1, 0, (uint64_t)i * MIB, MIB, i);
  lab_wait(lab, reads);
  double seconds = (double)(g_get_monotonic_time() - start) * 1e-6;
  cr_expect_eq(lab->good, reads);
  g_free(place.range);
  transport_lab_free(lab);
  return seconds;
}

/* Never faster than its pace; not much slower either, than that or than it is without. */
TRANSPORT_TEST(paced)
{
#ifdef __SANITIZE_THREAD__
  cr_skip_test("times say nothing under ThreadSanitizer");
#endif
  const double rate = 0.125e9;
  enum { READS = 36 };
  if (!ops->paces) {
    refuses_to_pace(ops, rate);
    return;
  }
  double free = seconds_of(ops, READS, 0), seconds = seconds_of(ops, READS, rate);
  double ideal = READS * (double)MIB / rate;
  cr_expect_gt(seconds, ideal, "%.4f s, at the rate %.4f s", seconds, ideal);
  cr_expect_lt(seconds, MAX(ideal, free) * 3, "%.4f s, at the rate %.4f s, without %.4f s", seconds, ideal,
               free);
}

TRANSPORT_TEST(addresses)
{
  static const char *const wrong[] = {
      "",        "localhost", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:x",  "::1:80",
      "[::1]80", ":80",       "[]:80",      "[::1:80",         "127.0.0.1:-1", "no.such.host.invalid:1"};
  uint8_t page[ARENA_ALIGN] = {0};
  for (uint32_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
    g_autoptr(GError) error = NULL;
    struct shelf_config config = {.memory = {page, sizeof page}, .address = wrong[i]};
    cr_expect_null(ops->shelf_new(&config, &error), "%s", wrong[i]);
    cr_expect(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT), "%s", wrong[i]);
  }
  struct lab *lab = transport_lab_new(ops, MIB, MIB, NULL);
  g_autoptr(GError) taken = NULL;
  g_autofree char *address = g_strdup(ops->shelf_address(lab->shelf));
  struct shelf_config config = lab_shelf_config(lab, address, NULL);
  cr_expect_null(ops->shelf_new(&config, &taken));
  cr_expect(g_error_matches(taken, DM_ERROR, DM_ERROR_FAILED));
  ops->reader_peer(lab->reader, LAB_SHELF, "nonsense", &lab->secret);
  lab_pump(lab);
  lab_read(lab, 1, 0, 0, 10, 0);
  lab_wait(lab, 1);
  cr_expect_eq(lab->failed, 1);
  ops->shelf_free(lab->shelf);
  config.address = "[::1]:0";
  lab->shelf = ops->shelf_new(&config, NULL);
  if (!lab->shelf) {
    cr_log_info("no IPv6 here");
  } else {
    cr_expect(g_str_has_prefix(ops->shelf_address(lab->shelf), "[::1]:"));
    struct ranges place = lab_serve(lab, 1, 0, 1000, 4096);
    ops->shelf_admit(lab->shelf, LAB_READER, &lab->secret);
    ops->reader_peer(lab->reader, config.index, ops->shelf_address(lab->shelf), &lab->secret);
    lab_pump(lab);
    lab_read(lab, 1, 0, 0, 1000, 1);
    lab_wait(lab, 2);
    cr_expect(lab_has(lab, 1, 0, 0, 1000));
    g_free(place.range);
  }
  transport_lab_free(lab);
}

Test(transport, by_name)
{
  g_autoptr(GError) error = NULL;
  const struct transport_ops *tcp = transport_by_name("tcp", &error);
  cr_assert(tcp && strcmp(tcp->name, "tcp") == 0);
  cr_assert(transport_by_name("auto", &error));
  cr_assert_null(transport_by_name("carrier pigeon", &error));
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
}
