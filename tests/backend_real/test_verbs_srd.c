/* SRD queues on a fake EFA, whose work requests end in random order: the same over RDMA READ and over
 * datagrams (srd_lab.h). */
#include <criterion/criterion.h>
#include <string.h>

#include "srd_lab.h"

/* A test that holds for every kind of devices. */
#define SRD_TEST(NAME)                                                                                       \
  static void NAME(const struct srd_devices *kind);                                                          \
  Test(verbs_srd, NAME)                                                                                      \
  {                                                                                                          \
    for (guint i = 0; i < SRD_DEVICES; i++)                                                                  \
      NAME(&srd_devices_tried[i]);                                                                           \
  }                                                                                                          \
  static void NAME(const struct srd_devices *kind)

SRD_TEST(reads_land)
{
  struct srd_lab *lab = srd_lab_new(kind, 1);
  for (uint32_t i = 0; i < 300; i++) {
    srd_lab_ask_any(lab, i % READERS, (uint32_t)g_rand_int_range(lab->random, 0, SHELVES), 13000);
    if (i % 7 == 0)
      srd_lab_poll(lab);
  }
  srd_lab_ask(lab, 0, 1, 0, 50000);
  srd_lab_ask(lab, 0, 1, IMAGE - 1, 1);
  srd_lab_wait(lab, lab->asked);
  cr_expect_eq(lab->good, lab->asked);
  srd_lab_check_beside(lab);
  srd_lab_check_fabric();
  struct srd_fake_counts counts;
  srd_fake_counts(&counts);
  cr_expect_eq(counts.reads == 0, srd_by_datagram(kind));
  cr_expect_eq(counts.datagrams == 0, !srd_by_datagram(kind));
  srd_lab_free(lab);
}

/* More than the device's queue takes, of the largest reads. */
Test(verbs_srd, waits_for_room_in_the_queue)
{
  for (guint i = 0; i < SRD_DEVICES; i++) {
    struct srd_lab *lab = srd_lab_memory(2);
    GError *error = NULL;
    srd_fake_depths(64, SRD_SERVE_RECEIVES, 5000);
    cr_assert(srd_lab_open(lab, &srd_devices_tried[i], &error), "%s", error ? error->message : "");
    srd_lab_ask(lab, 0, 0, 0, READ_BYTES_MAX);
    for (uint32_t n = 0; n < 200; n++)
      srd_lab_ask_any(lab, 1, n % SHELVES, 9000);
    srd_lab_wait(lab, lab->asked);
    cr_expect_eq(lab->good, lab->asked);
    struct srd_fake_counts counts;
    srd_fake_counts(&counts);
    cr_expect_leq(counts.sends_most, 64);
    srd_lab_check_fabric();
    srd_lab_free(lab);
  }
}

/* A forged key, an address before or past the region: refused, one by one; the line goes on. */
SRD_TEST(forged_reads_are_refused_alone)
{
  struct srd_lab *lab = srd_lab_new(kind, 3);
  struct verbs_read read[4];
  uint64_t first = srd_lab_ask_as(lab, 0, 1, 0, 5000, &read[0]);
  srd_lab_ask_as(lab, 0, 1, 0, 5000, &read[1]);
  srd_lab_ask_as(lab, 0, 1, 0, 5000, &read[2]);
  srd_lab_ask_as(lab, 0, 1, 0, 5000, &read[3]);
  read[0].key ^= 0x5a5a5a;
  read[1].address -= 1;
  read[2].address += IMAGE - 4999;
  read[3].address = UINT64_MAX - 10000;
  verbs_srd.post(lab->pair[0][1].reader, read, 4);
  uint64_t good = srd_lab_ask(lab, 0, 1, 100, 9000);
  srd_lab_wait(lab, lab->asked);
  for (uint32_t i = 0; i < 4; i++)
    cr_expect_not(lab->wanted[first + i].good, "%u (by datagram: %d)", i, srd_by_datagram(kind));
  cr_expect(lab->wanted[good].good);
  cr_expect_null(verbs_srd.broken(lab->pair[0][1].reader));
  srd_lab_check_beside(lab);
  srd_lab_free(lab);
}

/* A shelf that dies in the middle: its reads fail, all of them; those of the others land. */
SRD_TEST(a_lost_shelf_fails_its_reads_alone)
{
  struct srd_lab *lab = srd_lab_new(kind, 4);
  for (uint32_t i = 0; i < 60; i++)
    for (uint32_t s = 0; s < SHELVES; s++)
      srd_lab_ask_any(lab, i % READERS, s, 10000);
  srd_lab_wait(lab, 20);
  srd_fake_kill(1);
  /* Of datagrams alone, none may be under way to it, and its silence tells nothing: the next request does. */
  for (uint32_t i = 0; i < 40; i++)
    for (uint32_t s = 0; s < SHELVES; s++)
      srd_lab_ask_any(lab, i % READERS, s, 1000);
  for (gint64 deadline = g_get_monotonic_time() + WAIT_US / 100;
       lab->ended < lab->asked && g_get_monotonic_time() < deadline;)
    srd_lab_poll(lab);
  for (uint32_t r = 0; r < READERS; r++)
    verbs_srd.line_break(lab->pair[r][0].reader);
  srd_lab_wait(lab, lab->asked);
  for (uint32_t i = 0; i < lab->asked; i++)
    cr_assert(lab->wanted[i].good || lab->wanted[i].shelf == 0, "a read of another shelf failed");
  for (uint32_t r = 0; r < READERS; r++) {
    cr_expect_not_null(verbs_srd.broken(lab->pair[r][0].reader));
    uint64_t late = srd_lab_ask(lab, r, 0, 0, 100);
    srd_lab_wait(lab, lab->asked);
    cr_expect_not(lab->wanted[late].good);
    cr_expect_eq(lab->pair[r][0].under_way, 0);
  }
  srd_lab_check_beside(lab);
  srd_lab_free(lab);
}

/* A reader that dies holds up nothing: the others' reads land, and memory can be concealed. */
SRD_TEST(a_lost_reader_holds_up_nobody)
{
  struct srd_lab *lab = srd_lab_new(kind, 5);
  for (uint32_t i = 0; i < 40; i++)
    srd_lab_ask_any(lab, 0, i % SHELVES, 20000);
  srd_fake_kill(101);
  for (uint32_t i = 0; i < 60; i++)
    srd_lab_ask_any(lab, 1, i % SHELVES, 10000);
  gint64 deadline = g_get_monotonic_time() + WAIT_US;
  while (lab->pair[1][0].under_way + lab->pair[1][1].under_way + lab->pair[1][2].under_way > 0) {
    srd_lab_turn(lab, deadline);
    cr_assert_lt(g_get_monotonic_time(), deadline);
  }
  for (uint32_t i = 40; i < lab->asked; i++)
    cr_assert(lab->wanted[i].good);
  for (uint32_t s = 0; s < SHELVES; s++)
    verbs_srd.conceal(lab->shelf[s], &lab->exposed[s]);
  srd_lab_free(lab);
}

/* A shelf shuts one reader out: that one's reads fail, the other's land. */
SRD_TEST(a_shelf_shuts_a_reader_out)
{
  struct srd_lab *lab = srd_lab_new(kind, 6);
  for (uint32_t i = 0; i < 50; i++)
    srd_lab_ask_any(lab, i % READERS, 0, 10000);
  verbs_srd.line_break(lab->pair[0][0].shelf);
  uint32_t before = lab->asked;
  for (uint32_t i = 0; i < 50; i++)
    srd_lab_ask_any(lab, i % READERS, 0, 10000);
  gint64 deadline = g_get_monotonic_time() + WAIT_US;
  while (!verbs_srd.broken(lab->pair[0][0].reader)) {
    srd_lab_turn(lab, deadline);
    cr_assert_lt(g_get_monotonic_time(), deadline);
  }
  srd_lab_wait(lab, lab->asked);
  for (uint32_t i = 0; i < lab->asked; i++)
    cr_assert(lab->wanted[i].reader == 0 ? i < before || !lab->wanted[i].good : lab->wanted[i].good);
  srd_lab_check_beside(lab);
  srd_lab_free(lab);
}

/* What is concealed in the middle of reads is not read any more: new bytes there are seen by nobody. */
SRD_TEST(concealed_memory_is_read_no_more)
{
  struct srd_lab *lab = srd_lab_new(kind, 7);
  for (uint32_t i = 0; i < 60; i++)
    srd_lab_ask_any(lab, i % READERS, i % SHELVES, 20000);
  srd_lab_wait(lab, 10);
  verbs_srd.conceal(lab->shelf[1], &lab->exposed[1]);
  memset(lab->image[1], 0x55, IMAGE);
  struct verbs_read read;
  uint64_t late = srd_lab_ask_as(lab, 0, 1, 0, 100, &read);
  verbs_srd.post(lab->pair[0][1].reader, &read, 1);
  srd_lab_wait(lab, lab->asked);
  cr_expect_not(lab->wanted[late].good);
  for (uint32_t i = 0; i < late; i++)
    cr_assert(lab->wanted[i].good || lab->wanted[i].shelf == 1);
  srd_lab_check_beside(lab);
  srd_lab_free(lab);
}

/* Segments that are on their way and do not get there do not hold up who conceals their memory: their lines
 * are broken, and not one is read after that. */
Test(verbs_srd, stuck_segments_are_taken_back)
{
  struct srd_lab *lab = srd_lab_new(&srd_devices_tried[2], 13);
  struct srd_fake_counts counts = {0};
  for (uint32_t i = 0; i < 50; i++)
    srd_lab_ask_any(lab, i % READERS, 1, 20000);
  gint64 deadline = g_get_monotonic_time() + WAIT_US;
  while (counts.segments == 0) {
    if (lab->ended == lab->asked) /* all came before one could be held */
      for (uint32_t i = 0; i < 20; i++)
        srd_lab_ask_any(lab, i % READERS, 1, 20000);
    srd_fake_hold(FALSE);
    srd_lab_poll(lab);
    srd_fake_hold(TRUE);
    srd_fake_counts(&counts);
    cr_assert_lt(g_get_monotonic_time(), deadline);
  }
  verbs_srd.conceal(lab->shelf[1], &lab->exposed[1]);
  memset(lab->image[1], 0x55, IMAGE);
  cr_expect(verbs_srd.broken(lab->pair[0][1].shelf) || verbs_srd.broken(lab->pair[1][1].shelf));
  srd_fake_counts(&counts);
  cr_expect_eq(counts.segments, 0);
  srd_fake_hold(FALSE);
  for (uint32_t r = 0; r < READERS; r++)
    verbs_srd.line_break(lab->pair[r][1].reader);
  srd_lab_wait(lab, lab->asked);
  srd_lab_check_beside(lab);
  srd_lab_free(lab);
}

/* A reader that takes more credit than it has buffers for fills its own line's queue and loses that line; the
 * shelf goes on to answer others meanwhile. */
Test(verbs_srd, a_false_share_harms_its_reader_alone)
{
  struct srd_lab *lab = srd_lab_new(&srd_devices_tried[3], 14);
  struct srd_pair *pair = &lab->pair[0][0], first = *pair;
  struct srd_fake_counts counts = {0};
  struct srd_offer lie;
  uint8_t offer[VERBS_OFFER_BYTES];
  pair->reader = verbs_srd.line_new(lab->reader[0], pair, NULL);
  pair->shelf = verbs_srd.line_new(lab->shelf[0], pair, NULL);
  cr_assert(srd_offer_parse(offer, verbs_srd.offer(pair->reader, offer), FALSE, &lie));
  lie.share = 100000;
  srd_offer_put(&lie, offer);
  cr_assert(verbs_srd.connect(pair->shelf, offer, SRD_OFFER_BYTES, NULL));
  cr_assert(verbs_srd.connect(pair->reader, offer, verbs_srd.offer(pair->shelf, offer), NULL));
  for (uint32_t i = 0; i < 15; i++)
    srd_lab_ask(lab, 0, 0, i, 100000);
  gint64 deadline = g_get_monotonic_time() + WAIT_US;
  while (counts.overruns < SRD_SERVE_SENDS) {
    srd_fake_counts(&counts);
    cr_assert_lt(g_get_monotonic_time(), deadline);
  }
  uint64_t good = srd_lab_ask(lab, 1, 0, 0, 100000);
  while (lab->wanted[good].open) {
    struct verbs_done done;
    gboolean more;
    if (verbs_srd.poll(lab->reader[1], &done, 1, &more) == 1)
      srd_lab_end(lab, &done);
    cr_assert_lt(g_get_monotonic_time(), deadline);
  }
  cr_expect(lab->wanted[good].good);
  srd_lab_wait(lab, lab->asked);
  cr_expect_eq(lab->good, 1);
  cr_expect_not_null(verbs_srd.broken(pair->reader));
  verbs_srd.line_free(first.reader);
  verbs_srd.line_free(first.shelf);
  srd_lab_free(lab);
}

/* A shelf that is lost while nothing is on its way to it: a probe tells. */
Test(verbs_srd, silence_is_looked_into)
{
  struct srd_lab *lab = srd_lab_new(&srd_devices_tried[2], 15);
  struct srd_fake_counts counts = {0};
  gint64 deadline = g_get_monotonic_time() + WAIT_US;
  srd_fake_mute(1);
  for (uint32_t i = 0; i < 4; i++)
    srd_lab_ask(lab, 0, 0, 0, 9000);
  while (counts.datagrams < 4) {
    srd_fake_counts(&counts);
    cr_assert_lt(g_get_monotonic_time(), deadline);
  }
  srd_fake_kill(1);
  srd_lab_wait(lab, lab->asked);
  cr_expect_eq(lab->good, 0);
  cr_expect_not_null(verbs_srd.broken(lab->pair[0][0].reader));
  cr_expect_null(verbs_srd.broken(lab->pair[0][1].reader));
  srd_lab_free(lab);
}

/* One address for a device, however many lines; it goes with the last of them. */
SRD_TEST(lines_share_addresses)
{
  struct srd_lab *lab = srd_lab_new(kind, 8);
  struct srd_fake_counts counts;
  struct srd_pair first = lab->pair[0][0];
  srd_fake_counts(&counts);
  cr_expect_eq(counts.addresses, READERS * SHELVES * 2);
  cr_assert(srd_lab_introduce(lab, 0, 0, NULL));
  srd_fake_counts(&counts);
  cr_expect_eq(counts.addresses, READERS * SHELVES * 2);
  verbs_srd.line_free(first.reader);
  verbs_srd.line_free(first.shelf);
  srd_lab_ask(lab, 0, 0, 5, 5000);
  srd_lab_wait(lab, 1);
  cr_expect_eq(lab->good, 1);
  srd_lab_free(lab);
}

/* A reader's queue pair that broke takes its lines with it; those that are made then work. */
SRD_TEST(a_broken_queue_pair_is_made_anew)
{
  for (int by_event = 0; by_event < 2; by_event++) {
    struct srd_lab *lab = srd_lab_new(kind, 9);
    for (uint32_t i = 0; i < 60; i++)
      srd_lab_ask_any(lab, i % READERS, i % SHELVES, 9000);
    srd_lab_wait(lab, 5);
    srd_fake_break(101, by_event);
    for (uint32_t i = 0; i < 60; i++)
      srd_lab_ask_any(lab, i % READERS, i % SHELVES, 3000);
    srd_lab_wait(lab, lab->asked);
    for (uint32_t i = 0; i < lab->asked; i++)
      cr_assert(lab->wanted[i].good || lab->wanted[i].reader == 0);
    for (uint32_t s = 0; s < SHELVES; s++) {
      cr_expect_not_null(verbs_srd.broken(lab->pair[0][s].reader));
      verbs_srd.line_free(lab->pair[0][s].reader);
      verbs_srd.line_free(lab->pair[0][s].shelf);
      cr_assert(srd_lab_introduce(lab, 0, s, NULL));
    }
    uint32_t good = lab->good;
    for (uint32_t i = 0; i < 30; i++)
      srd_lab_ask_any(lab, 0, i % SHELVES, 9000);
    srd_lab_wait(lab, lab->asked);
    cr_expect_eq(lab->good, good + 30);
    srd_lab_check_beside(lab);
    srd_lab_free(lab);
  }
}

/* Whatever cannot be made: one error, and nothing is left. */
Test(verbs_srd, gives_back_what_it_made)
{
  struct srd_lab *lab = srd_lab_memory(10);
  for (guint i = 0; i < SRD_DEVICES; i++) {
    gboolean good = FALSE;
    for (uint32_t n = 1; !good; n++) {
      g_autoptr(GError) error = NULL;
      srd_fake_fail(n);
      good = srd_lab_open(lab, &srd_devices_tried[i], &error);
      cr_assert_eq(good, error == NULL, "%u of kind %u", n, i);
      cr_assert(n < 200 && (good || n > 10 || !lab->reader[0]));
      srd_lab_close_ends(lab);
    }
  }
  srd_lab_free(lab);
}

/* Offers from elsewhere: refused by a line, or their peer is just not there. */
SRD_TEST(offers_are_checked)
{
  struct srd_lab *lab = srd_lab_new(kind, 11);
  uint8_t offer[VERBS_OFFER_BYTES], odd[VERBS_OFFER_BYTES];
  size_t size = verbs_srd.offer(lab->pair[0][0].shelf, offer);
  cr_expect_not(verbs_srd.connect(lab->pair[0][0].reader, offer, size, NULL), "twice");
  for (uint32_t i = 0; i < 400; i++) {
    GError *error = NULL;
    struct verbs_line *line = verbs_srd.line_new(lab->reader[0], NULL, &error);
    cr_assert_not_null(line, "%s", error ? error->message : "");
    memcpy(odd, offer, size);
    for (int flips = g_rand_int_range(lab->random, 1, 4); flips > 0; flips--)
      odd[g_rand_int_range(lab->random, 0, (gint32)size)] ^=
          (uint8_t)(1 << g_rand_int_range(lab->random, 0, 8));
    size_t cut = i % 4 ? size : (size_t)g_rand_int_range(lab->random, 0, VERBS_OFFER_BYTES + 1);
    gboolean good = verbs_srd.connect(line, odd, cut, &error);
    cr_assert_eq(good, error == NULL);
    cr_assert(!good || cut == size);
    g_clear_error(&error);
    verbs_srd.line_free(line);
  }
  srd_lab_free(lab);
}

/* Nothing can be copied into memory that the processor does not see. */
Test(verbs_srd, gpu_memory_needs_reads_of_both_devices)
{
  struct srd_lab *lab = srd_lab_new(&srd_devices_tried[3], 12);
  struct nic nic = {.device = "efa_1", .port = 1, .mtu = 8928, .srd_reads = TRUE, .srd_read_max = 1 << 20};
  struct memory memory[] = {{.base = lab->arena[0], .bytes = ARENA}, {.bytes = ARENA, .dmabuf = 3}};
  struct verbs_end_config config = {.nic = &nic, .gid = srd_gid_of(150), .memory = memory, .memories = 2};
  GError *error = NULL;
  struct verbs_end *reader = srd_end_open(&srd_fake, &config, &error);
  cr_assert_not_null(reader);
  struct verbs_line *line = verbs_srd.line_new(reader, NULL, NULL);
  struct srd_offer offer = {
      .qp = 5, .qkey = 5, .reads = FALSE, .datagram_max = 8928, .requests = 4, .gid = {[15] = 1}};
  uint8_t wire[SRD_OFFER_BYTES];
  srd_offer_put(&offer, wire);
  cr_expect_not(verbs_srd.connect(line, wire, sizeof wire, &error));
  cr_expect(error && strstr(error->message, "RDMA READ"), "%s", error ? error->message : "");
  g_clear_error(&error);
  verbs_srd.line_free(line);
  verbs_srd.close(reader);
  srd_lab_free(lab);
}
