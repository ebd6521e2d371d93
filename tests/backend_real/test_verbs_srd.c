/* SRD queues on a fake EFA (srd_fake.h), whose work requests end in random order: the same over RDMA READ and
 * over datagrams. Every byte that lands is checked, and what is beside it. */
#include <criterion/criterion.h>
#include <poll.h>
#include <string.h>

#include "backend_real/srd_end.h"
#include "srd_fake.h"

enum {
  IMAGE = 1 << 20, /* a shelf's memory */
  ARENA = 2 << 20, /* a reader's */
  SHELVES = 3,
  READERS = 2,
  READS = 4000, /* of a lab */
  BLANK = 0xEE,
  WAIT_US = 30000000,
};

struct pair {
  struct verbs_line *reader, *shelf;
  uint32_t under_way;
  uint64_t bytes;
};

struct wanted {
  uint32_t reader, shelf, at, to, bytes;
  gboolean open, good;
};

/* Shelves have GIDs from 1, readers from 101. */
struct lab {
  GRand *random;
  struct verbs_end *shelf[SHELVES], *reader[READERS];
  struct verbs_exposed exposed[SHELVES];
  uint8_t *image[SHELVES], *arena[READERS];
  uint32_t used[READERS]; /* of the arena */
  struct pair pair[READERS][SHELVES];
  struct wanted wanted[READS];
  uint32_t asked, ended, good;
};

/* What the devices are like. */
struct kind {
  gboolean reader_reads, shelf_reads;
  uint32_t read_max, mtu;
};

static const struct kind kinds[] = {
    {TRUE, TRUE, 1 << 30, 8928},  /* RDMA READ */
    {TRUE, TRUE, 3000, 8928},     /* in small pieces */
    {FALSE, FALSE, 0, 8928},      /* datagrams */
    {FALSE, TRUE, 1 << 20, 1000}, /* one end has RDMA READ: datagrams, small ones */
    {TRUE, FALSE, 1 << 20, 4096}, /* the other has */
};

static gboolean by_datagram(const struct kind *kind)
{
  return !kind->reader_reads || !kind->shelf_reads;
}

static uint8_t image_byte(uint32_t shelf, uint64_t at)
{
  return (uint8_t)(at * 7 + at / 253 + shelf * 101 + 1);
}

/* As it is unless a test writes to a shelf's. */
static const uint8_t *whole_image(uint32_t shelf)
{
  static uint8_t image[SHELVES][IMAGE];
  if (image[shelf][1] != image_byte(shelf, 1))
    for (uint32_t i = 0; i < IMAGE; i++)
      image[shelf][i] = image_byte(shelf, i);
  return image[shelf];
}

static struct nic_gid gid_of(uint8_t last)
{
  return (struct nic_gid){.raw = {[15] = last}, .type = "IB"};
}

static struct verbs_end *open_end(struct lab *lab, const struct kind *kind, gboolean serves, uint32_t index,
                                  GError **error)
{
  struct nic nic = {.device = "efa_0",
                    .port = 1,
                    .kind = NIC_SRD,
                    .mtu = kind->mtu,
                    .srd_reads = serves ? kind->shelf_reads : kind->reader_reads,
                    .srd_read_max = kind->read_max};
  struct memory memory = {.base = serves ? NULL : lab->arena[index], .bytes = ARENA, .dmabuf = -1};
  struct verbs_end_config config = {.nic = &nic,
                                    .gid = gid_of((uint8_t)(index + (serves ? 1 : 101))),
                                    .serves = serves,
                                    .memory = serves ? NULL : &memory,
                                    .memories = serves ? 0 : 1};
  return srd_end_open(&srd_fake, &config, error);
}

static gboolean introduce(struct lab *lab, uint32_t r, uint32_t s, GError **error)
{
  struct pair *pair = &lab->pair[r][s];
  const struct verbs_queue_ops *ops = &verbs_srd;
  uint8_t offer[VERBS_OFFER_BYTES];
  *pair = (struct pair){0};
  if (!(pair->reader = ops->line_new(lab->reader[r], pair, error)) ||
      !(pair->shelf = ops->line_new(lab->shelf[s], pair, error)))
    return FALSE;
  size_t size = ops->offer(pair->reader, offer);
  if (!ops->connect(pair->shelf, offer, size, error))
    return FALSE;
  size = ops->offer(pair->shelf, offer);
  return ops->connect(pair->reader, offer, size, error);
}

static gboolean open_ends(struct lab *lab, const struct kind *kind, GError **error)
{
  for (uint32_t s = 0; s < SHELVES; s++)
    if (!(lab->shelf[s] = open_end(lab, kind, TRUE, s, error)) ||
        !verbs_srd.expose(lab->shelf[s], lab->image[s], IMAGE, &lab->exposed[s], error))
      return FALSE;
  for (uint32_t r = 0; r < READERS; r++)
    if (!(lab->reader[r] = open_end(lab, kind, FALSE, r, error)))
      return FALSE;
  for (uint32_t r = 0; r < READERS; r++)
    for (uint32_t s = 0; s < SHELVES; s++)
      if (!introduce(lab, r, s, error))
        return FALSE;
  return TRUE;
}

static struct lab *lab_memory(uint32_t seed)
{
  struct lab *lab = g_new0(struct lab, 1);
  srd_fake_begin(seed);
  lab->random = g_rand_new_with_seed(seed);
  for (uint32_t s = 0; s < SHELVES; s++)
    lab->image[s] = g_memdup2(whole_image(s), IMAGE);
  for (uint32_t r = 0; r < READERS; r++) {
    lab->arena[r] = g_malloc(ARENA);
    memset(lab->arena[r], BLANK, ARENA);
  }
  return lab;
}

static struct lab *lab_new(const struct kind *kind, uint32_t seed)
{
  struct lab *lab = lab_memory(seed);
  GError *error = NULL;
  cr_assert(open_ends(lab, kind, &error), "%s", error ? error->message : "no error told");
  return lab;
}

static void lab_close_ends(struct lab *lab)
{
  for (uint32_t r = 0; r < READERS; r++)
    for (uint32_t s = 0; s < SHELVES; s++) {
      struct pair *pair = &lab->pair[r][s];
      if (pair->reader)
        verbs_srd.line_free(pair->reader);
      if (pair->shelf)
        verbs_srd.line_free(pair->shelf);
      *pair = (struct pair){0};
    }
  for (uint32_t r = 0; r < READERS; r++)
    if (lab->reader[r])
      verbs_srd.close(lab->reader[r]);
  for (uint32_t s = 0; s < SHELVES; s++)
    if (lab->shelf[s]) {
      verbs_srd.conceal(lab->shelf[s], &lab->exposed[s]);
      verbs_srd.close(lab->shelf[s]);
    }
  memset(lab->reader, 0, sizeof lab->reader);
  memset(lab->shelf, 0, sizeof lab->shelf);
  memset(lab->exposed, 0, sizeof lab->exposed);
}

static void lab_free(struct lab *lab)
{
  lab_close_ends(lab);
  srd_fake_end();
  for (uint32_t s = 0; s < SHELVES; s++)
    g_free(lab->image[s]);
  for (uint32_t r = 0; r < READERS; r++)
    g_free(lab->arena[r]);
  g_rand_free(lab->random);
  g_free(lab);
}

/* --- reads */

static uint64_t ask_as(struct lab *lab, uint32_t r, uint32_t s, uint32_t at, uint32_t bytes,
                       struct verbs_read *read)
{
  struct wanted *w = &lab->wanted[lab->asked];
  cr_assert(lab->asked < READS && lab->used[r] + bytes + 16 <= ARENA);
  *w = (struct wanted){r, s, at, lab->used[r] + 8, bytes, TRUE, FALSE};
  lab->used[r] += bytes + 16;
  *read = (struct verbs_read){.address = lab->exposed[s].address + at,
                              .to = w->to,
                              .key = lab->exposed[s].key,
                              .bytes = bytes,
                              .tag = lab->asked};
  lab->pair[r][s].under_way++;
  return lab->asked++;
}

static uint64_t ask(struct lab *lab, uint32_t r, uint32_t s, uint32_t at, uint32_t bytes)
{
  struct verbs_read read;
  uint64_t tag = ask_as(lab, r, s, at, bytes, &read);
  verbs_srd.post(lab->pair[r][s].reader, &read, 1);
  return tag;
}

static void ask_any(struct lab *lab, uint32_t r, uint32_t s, uint32_t bytes_max)
{
  uint32_t bytes = (uint32_t)g_rand_int_range(lab->random, 1, (gint32)bytes_max + 1);
  ask(lab, r, s, (uint32_t)g_rand_int_range(lab->random, 0, (gint32)(IMAGE - bytes + 1)), bytes);
}

static void end_one(struct lab *lab, const struct verbs_done *done)
{
  struct wanted *w = &lab->wanted[done->tag];
  struct pair *pair = done->line->context;
  cr_assert(done->tag < lab->asked && w->open, "a read ended twice");
  cr_assert(pair == &lab->pair[w->reader][w->shelf] && done->line == pair->reader);
  w->open = FALSE;
  w->good = done->good;
  lab->ended++;
  lab->good += done->good;
  pair->under_way--;
  cr_assert(!w->good || memcmp(lab->arena[w->reader] + w->to, whole_image(w->shelf) + w->at, w->bytes) == 0,
            "a wrong byte");
}

static gboolean poll_all(struct lab *lab)
{
  struct verbs_done done[5];
  uint32_t count, total = 0;
  for (uint32_t r = 0; r < READERS; r++)
    while ((count = verbs_srd.poll(lab->reader[r], done, G_N_ELEMENTS(done))) > 0) {
      total += count;
      for (uint32_t i = 0; i < count; i++)
        end_one(lab, &done[i]);
    }
  return total > 0;
}

/* As the transport sleeps: what no descriptor tells of would never end. */
static void sleep_on(struct lab *lab, gint64 deadline)
{
  struct pollfd fd[READERS * VERBS_FDS];
  uint32_t of[READERS * VERBS_FDS], fds = 0;
  for (uint32_t r = 0; r < READERS; r++)
    verbs_srd.arm(lab->reader[r]);
  if (poll_all(lab))
    return;
  for (uint32_t r = 0; r < READERS; r++) {
    int own[VERBS_FDS];
    uint32_t count = verbs_srd.fds(lab->reader[r], own);
    for (uint32_t i = 0; i < count; i++, fds++) {
      fd[fds] = (struct pollfd){.fd = own[i], .events = POLLIN};
      of[fds] = r;
    }
  }
  cr_assert_gt(poll(fd, fds, (int)MAX((deadline - g_get_monotonic_time()) / 1000, 0)), 0,
               "%u of %u reads never ended", lab->asked - lab->ended, lab->asked);
  for (uint32_t i = 0; i < fds; i++)
    if (fd[i].revents)
      verbs_srd.woken(lab->reader[of[i]]);
}

static void wait_for(struct lab *lab, uint32_t ended)
{
  gint64 deadline = g_get_monotonic_time() + WAIT_US;
  while (lab->ended < ended)
    if (!poll_all(lab))
      sleep_on(lab, deadline);
}

/* What did not land, or not to the end, may have written in its place, and nowhere else. */
static void check_beside(struct lab *lab)
{
  g_autofree uint8_t *blank = g_malloc(ARENA);
  memset(blank, BLANK, ARENA);
  for (uint32_t i = 0; i < lab->asked; i++)
    memset(lab->arena[lab->wanted[i].reader] + lab->wanted[i].to, BLANK, lab->wanted[i].bytes);
  for (uint32_t r = 0; r < READERS; r++)
    cr_assert_eq(memcmp(lab->arena[r], blank, ARENA), 0, "written beside its place");
}

static void check_fabric(void)
{
  struct srd_fake_counts counts;
  srd_fake_counts(&counts);
  cr_expect_eq(counts.overruns, 0, "datagrams that found no buffer");
}

/* A test that holds for every kind of devices. */
#define SRD_TEST(NAME)                                                                                       \
  static void NAME(const struct kind *kind);                                                                 \
  Test(verbs_srd, NAME)                                                                                      \
  {                                                                                                          \
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)                                                          \
      NAME(&kinds[i]);                                                                                       \
  }                                                                                                          \
  static void NAME(const struct kind *kind)

SRD_TEST(reads_land)
{
  struct lab *lab = lab_new(kind, 1);
  for (uint32_t i = 0; i < 300; i++) {
    ask_any(lab, i % READERS, (uint32_t)g_rand_int_range(lab->random, 0, SHELVES), 13000);
    if (i % 7 == 0)
      poll_all(lab);
  }
  ask(lab, 0, 1, 0, 50000);
  ask(lab, 0, 1, IMAGE - 1, 1);
  wait_for(lab, lab->asked);
  cr_expect_eq(lab->good, lab->asked);
  check_beside(lab);
  check_fabric();
  struct srd_fake_counts counts;
  srd_fake_counts(&counts);
  cr_expect_eq(counts.reads == 0, by_datagram(kind));
  cr_expect_eq(counts.datagrams == 0, !by_datagram(kind));
  lab_free(lab);
}

/* More than the device's queue takes, of the largest reads. */
Test(verbs_srd, waits_for_room_in_the_queue)
{
  for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
    struct lab *lab = lab_memory(2);
    GError *error = NULL;
    srd_fake_depths(64, SRD_SERVE_RECEIVES, 5000);
    cr_assert(open_ends(lab, &kinds[i], &error), "%s", error ? error->message : "");
    ask(lab, 0, 0, 0, READ_BYTES_MAX);
    for (uint32_t n = 0; n < 200; n++)
      ask_any(lab, 1, n % SHELVES, 9000);
    wait_for(lab, lab->asked);
    cr_expect_eq(lab->good, lab->asked);
    struct srd_fake_counts counts;
    srd_fake_counts(&counts);
    cr_expect_leq(counts.sends_most, 64);
    check_fabric();
    lab_free(lab);
  }
}

/* A forged key, an address before or past the region: refused, one by one; the line goes on. */
SRD_TEST(forged_reads_are_refused_alone)
{
  struct lab *lab = lab_new(kind, 3);
  struct verbs_read read[4];
  uint64_t first = ask_as(lab, 0, 1, 0, 5000, &read[0]);
  ask_as(lab, 0, 1, 0, 5000, &read[1]);
  ask_as(lab, 0, 1, 0, 5000, &read[2]);
  ask_as(lab, 0, 1, 0, 5000, &read[3]);
  read[0].key ^= 0x5a5a5a;
  read[1].address -= 1;
  read[2].address += IMAGE - 4999;
  read[3].address = UINT64_MAX - 10000;
  verbs_srd.post(lab->pair[0][1].reader, read, 4);
  uint64_t good = ask(lab, 0, 1, 100, 9000);
  wait_for(lab, lab->asked);
  for (uint32_t i = 0; i < 4; i++)
    cr_expect_not(lab->wanted[first + i].good, "%u (by datagram: %d)", i, by_datagram(kind));
  cr_expect(lab->wanted[good].good);
  cr_expect_null(verbs_srd.broken(lab->pair[0][1].reader));
  check_beside(lab);
  lab_free(lab);
}

/* A shelf that dies in the middle: its reads fail, all of them; those of the others land. */
SRD_TEST(a_lost_shelf_fails_its_reads_alone)
{
  struct lab *lab = lab_new(kind, 4);
  for (uint32_t i = 0; i < 60; i++)
    for (uint32_t s = 0; s < SHELVES; s++)
      ask_any(lab, i % READERS, s, 10000);
  wait_for(lab, 20);
  srd_fake_kill(1);
  /* Of datagrams alone, none may be under way to it, and its silence tells nothing: the next request does. */
  for (uint32_t i = 0; i < 40; i++)
    for (uint32_t s = 0; s < SHELVES; s++)
      ask_any(lab, i % READERS, s, 1000);
  for (gint64 deadline = g_get_monotonic_time() + WAIT_US / 100;
       lab->ended < lab->asked && g_get_monotonic_time() < deadline;)
    poll_all(lab);
  for (uint32_t r = 0; r < READERS; r++)
    verbs_srd.line_break(lab->pair[r][0].reader);
  wait_for(lab, lab->asked);
  for (uint32_t i = 0; i < lab->asked; i++)
    cr_assert(lab->wanted[i].good || lab->wanted[i].shelf == 0, "a read of another shelf failed");
  for (uint32_t r = 0; r < READERS; r++) {
    cr_expect_not_null(verbs_srd.broken(lab->pair[r][0].reader));
    uint64_t late = ask(lab, r, 0, 0, 100);
    wait_for(lab, lab->asked);
    cr_expect_not(lab->wanted[late].good);
    cr_expect_eq(lab->pair[r][0].under_way, 0);
  }
  check_beside(lab);
  lab_free(lab);
}

/* A reader that dies holds up nothing: the others' reads land, and memory can be concealed. */
SRD_TEST(a_lost_reader_holds_up_nobody)
{
  struct lab *lab = lab_new(kind, 5);
  for (uint32_t i = 0; i < 40; i++)
    ask_any(lab, 0, i % SHELVES, 20000);
  srd_fake_kill(101);
  for (uint32_t i = 0; i < 60; i++)
    ask_any(lab, 1, i % SHELVES, 10000);
  gint64 deadline = g_get_monotonic_time() + WAIT_US;
  while (lab->pair[1][0].under_way + lab->pair[1][1].under_way + lab->pair[1][2].under_way > 0) {
    poll_all(lab);
    cr_assert_lt(g_get_monotonic_time(), deadline);
  }
  for (uint32_t i = 40; i < lab->asked; i++)
    cr_assert(lab->wanted[i].good);
  for (uint32_t s = 0; s < SHELVES; s++)
    verbs_srd.conceal(lab->shelf[s], &lab->exposed[s]);
  lab_free(lab);
}

/* A shelf shuts one reader out: that one's reads fail, the other's land. */
SRD_TEST(a_shelf_shuts_a_reader_out)
{
  struct lab *lab = lab_new(kind, 6);
  for (uint32_t i = 0; i < 50; i++)
    ask_any(lab, i % READERS, 0, 10000);
  verbs_srd.line_break(lab->pair[0][0].shelf);
  uint32_t before = lab->asked;
  for (uint32_t i = 0; i < 50; i++)
    ask_any(lab, i % READERS, 0, 10000);
  gint64 deadline = g_get_monotonic_time() + WAIT_US;
  while (!verbs_srd.broken(lab->pair[0][0].reader)) {
    poll_all(lab);
    cr_assert_lt(g_get_monotonic_time(), deadline);
  }
  wait_for(lab, lab->asked);
  for (uint32_t i = 0; i < lab->asked; i++)
    cr_assert(lab->wanted[i].reader == 0 ? i < before || !lab->wanted[i].good : lab->wanted[i].good);
  check_beside(lab);
  lab_free(lab);
}

/* What is concealed in the middle of reads is not read any more: new bytes there are seen by nobody. */
SRD_TEST(concealed_memory_is_read_no_more)
{
  struct lab *lab = lab_new(kind, 7);
  for (uint32_t i = 0; i < 60; i++)
    ask_any(lab, i % READERS, i % SHELVES, 20000);
  wait_for(lab, 10);
  verbs_srd.conceal(lab->shelf[1], &lab->exposed[1]);
  memset(lab->image[1], 0x55, IMAGE);
  struct verbs_read read;
  uint64_t late = ask_as(lab, 0, 1, 0, 100, &read);
  verbs_srd.post(lab->pair[0][1].reader, &read, 1);
  wait_for(lab, lab->asked);
  cr_expect_not(lab->wanted[late].good);
  for (uint32_t i = 0; i < late; i++)
    cr_assert(lab->wanted[i].good || lab->wanted[i].shelf == 1);
  check_beside(lab);
  lab_free(lab);
}

/* Segments that are on their way and do not get there do not hold up who conceals their memory: their lines
 * are broken, and not one is read after that. */
Test(verbs_srd, stuck_segments_are_taken_back)
{
  struct lab *lab = lab_new(&kinds[2], 13);
  struct srd_fake_counts counts = {0};
  for (uint32_t i = 0; i < 50; i++)
    ask_any(lab, i % READERS, 1, 20000);
  gint64 deadline = g_get_monotonic_time() + WAIT_US;
  while (counts.segments == 0) {
    srd_fake_hold(FALSE);
    poll_all(lab);
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
  wait_for(lab, lab->asked);
  check_beside(lab);
  lab_free(lab);
}

/* A reader that takes more credit than it has buffers for fills its own line's queue and loses that line; the
 * shelf goes on to answer others meanwhile. */
Test(verbs_srd, a_false_share_harms_its_reader_alone)
{
  struct lab *lab = lab_new(&kinds[3], 14);
  struct pair *pair = &lab->pair[0][0], first = *pair;
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
    ask(lab, 0, 0, i, 100000);
  gint64 deadline = g_get_monotonic_time() + WAIT_US;
  while (counts.overruns < SRD_SERVE_SENDS) {
    srd_fake_counts(&counts);
    cr_assert_lt(g_get_monotonic_time(), deadline);
  }
  uint64_t good = ask(lab, 1, 0, 0, 100000);
  while (lab->wanted[good].open) {
    struct verbs_done done;
    if (verbs_srd.poll(lab->reader[1], &done, 1) == 1)
      end_one(lab, &done);
    cr_assert_lt(g_get_monotonic_time(), deadline);
  }
  cr_expect(lab->wanted[good].good);
  wait_for(lab, lab->asked);
  cr_expect_eq(lab->good, 1);
  cr_expect_not_null(verbs_srd.broken(pair->reader));
  verbs_srd.line_free(first.reader);
  verbs_srd.line_free(first.shelf);
  lab_free(lab);
}

/* A shelf that is lost while nothing is on its way to it: a probe tells. */
Test(verbs_srd, silence_is_looked_into)
{
  struct lab *lab = lab_new(&kinds[2], 15);
  struct srd_fake_counts counts = {0};
  gint64 deadline = g_get_monotonic_time() + WAIT_US;
  srd_fake_mute(1);
  for (uint32_t i = 0; i < 4; i++)
    ask(lab, 0, 0, 0, 9000);
  while (counts.datagrams < 4) {
    srd_fake_counts(&counts);
    cr_assert_lt(g_get_monotonic_time(), deadline);
  }
  srd_fake_kill(1);
  wait_for(lab, lab->asked);
  cr_expect_eq(lab->good, 0);
  cr_expect_not_null(verbs_srd.broken(lab->pair[0][0].reader));
  cr_expect_null(verbs_srd.broken(lab->pair[0][1].reader));
  lab_free(lab);
}

/* One address for a device, however many lines; it goes with the last of them. */
SRD_TEST(lines_share_addresses)
{
  struct lab *lab = lab_new(kind, 8);
  struct srd_fake_counts counts;
  struct pair first = lab->pair[0][0];
  srd_fake_counts(&counts);
  cr_expect_eq(counts.addresses, READERS * SHELVES * 2);
  cr_assert(introduce(lab, 0, 0, NULL));
  srd_fake_counts(&counts);
  cr_expect_eq(counts.addresses, READERS * SHELVES * 2);
  verbs_srd.line_free(first.reader);
  verbs_srd.line_free(first.shelf);
  ask(lab, 0, 0, 5, 5000);
  wait_for(lab, 1);
  cr_expect_eq(lab->good, 1);
  lab_free(lab);
}

/* A reader's queue pair that broke takes its lines with it; those that are made then work. */
SRD_TEST(a_broken_queue_pair_is_made_anew)
{
  for (int by_event = 0; by_event < 2; by_event++) {
    struct lab *lab = lab_new(kind, 9);
    for (uint32_t i = 0; i < 60; i++)
      ask_any(lab, i % READERS, i % SHELVES, 9000);
    wait_for(lab, 5);
    srd_fake_break(101, by_event);
    for (uint32_t i = 0; i < 60; i++)
      ask_any(lab, i % READERS, i % SHELVES, 3000);
    wait_for(lab, lab->asked);
    for (uint32_t i = 0; i < lab->asked; i++)
      cr_assert(lab->wanted[i].good || lab->wanted[i].reader == 0);
    for (uint32_t s = 0; s < SHELVES; s++) {
      cr_expect_not_null(verbs_srd.broken(lab->pair[0][s].reader));
      verbs_srd.line_free(lab->pair[0][s].reader);
      verbs_srd.line_free(lab->pair[0][s].shelf);
      cr_assert(introduce(lab, 0, s, NULL));
    }
    uint32_t good = lab->good;
    for (uint32_t i = 0; i < 30; i++)
      ask_any(lab, 0, i % SHELVES, 9000);
    wait_for(lab, lab->asked);
    cr_expect_eq(lab->good, good + 30);
    check_beside(lab);
    lab_free(lab);
  }
}

/* Whatever cannot be made: one error, and nothing is left. */
Test(verbs_srd, gives_back_what_it_made)
{
  struct lab *lab = lab_memory(10);
  for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
    gboolean good = FALSE;
    for (uint32_t n = 1; !good; n++) {
      g_autoptr(GError) error = NULL;
      srd_fake_fail(n);
      good = open_ends(lab, &kinds[i], &error);
      cr_assert_eq(good, error == NULL, "%u of kind %u", n, i);
      cr_assert(n < 200 && (good || n > 10 || !lab->reader[0]));
      lab_close_ends(lab);
    }
  }
  lab_free(lab);
}

/* Offers from elsewhere: refused by a line, or their peer is just not there. */
SRD_TEST(offers_are_checked)
{
  struct lab *lab = lab_new(kind, 11);
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
  lab_free(lab);
}

/* Nothing can be copied into memory that the processor does not see. */
Test(verbs_srd, gpu_memory_needs_reads_of_both_devices)
{
  struct lab *lab = lab_new(&kinds[3], 12);
  struct nic nic = {.device = "efa_1", .port = 1, .mtu = 8928, .srd_reads = TRUE, .srd_read_max = 1 << 20};
  struct memory memory[] = {{.base = lab->arena[0], .bytes = ARENA}, {.bytes = ARENA, .dmabuf = 3}};
  struct verbs_end_config config = {.nic = &nic, .gid = gid_of(150), .memory = memory, .memories = 2};
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
  lab_free(lab);
}
