/* Reassembly of reads, against a map of every byte and every segment. */
#include <criterion/criterion.h>

#include "backend_real/srd_reassembly.h"
#include "backend_real/transport.h"

enum { READS = 7, PEERS = 3, ROOM = 3000, MARGIN = 64, BLANK = 0xEE };

/* What the test knows of a read. */
struct known {
  struct reassembly_read read;
  uint64_t id;     /* 0: none */
  uint8_t *memory; /* with a margin on both sides */
  gboolean came[ROOM];
  uint32_t missing;
};

struct lab {
  struct reassembly *reassembly;
  struct known known[READS];
  uint64_t past[64]; /* ids that are over */
  uint32_t pasts;
  GRand *random;
};

static uint8_t content(uint64_t tag, uint32_t at)
{
  return (uint8_t)((tag * 31 + at * 7 + at / 251) % 237);
}

static void open_one(struct lab *lab, struct known *k, uint64_t tag)
{
  memset(k->came, 0, sizeof k->came);
  memset(k->memory, BLANK, ROOM + 2 * MARGIN);
  k->read = (struct reassembly_read){
      .peer = g_rand_int_range(lab->random, 0, PEERS),
      .segment = g_rand_int_range(lab->random, 1, 5) * g_rand_int_range(lab->random, 16, 200),
      .bytes = g_rand_int_range(lab->random, 1, ROOM + 1),
      .place = k->memory + MARGIN,
      .tag = tag,
  };
  k->missing = (k->read.bytes + k->read.segment - 1) / k->read.segment;
  k->id = reassembly_open(lab->reassembly, &k->read);
}

/* The memory is exactly what came, and nothing beside it. */
static void check_memory(const struct known *k)
{
  for (uint32_t i = 0; i < ROOM + 2 * MARGIN; i++) {
    uint32_t at = i - MARGIN;
    gboolean here = i >= MARGIN && at < k->read.bytes && k->came[at / k->read.segment];
    cr_assert_eq(k->memory[i], here ? content(k->read.tag, at) : BLANK);
  }
}

static void close_one(struct lab *lab, struct known *k)
{
  check_memory(k);
  lab->past[lab->pasts++ % G_N_ELEMENTS(lab->past)] = k->id;
  k->id = 0;
}

/* A segment, right in all but what the test chose otherwise; the payload is exactly as long as it says. */
static enum segment_fate give(struct lab *lab, const struct known *k, uint32_t peer, uint64_t id, uint32_t at,
                              uint32_t bytes, uint64_t *tag)
{
  g_autofree uint8_t *payload = g_malloc(MAX(bytes, 1));
  for (uint32_t i = 0; i < bytes; i++)
    payload[i] = content(k->read.tag, at + i);
  return reassembly_take(lab->reassembly, peer, id, at, payload, bytes, tag);
}

static void give_good(struct lab *lab, struct known *k)
{
  uint32_t segments = (k->read.bytes - 1) / k->read.segment + 1;
  uint32_t number = g_rand_int_range(lab->random, 0, segments), at = number * k->read.segment;
  uint64_t tag = 0;
  enum segment_fate fate =
      give(lab, k, k->read.peer, k->id, at, MIN(k->read.segment, k->read.bytes - at), &tag);
  if (k->came[number]) {
    cr_assert_eq(fate, SEGMENT_TWICE);
    return;
  }
  k->came[number] = TRUE;
  cr_assert_eq(fate, --k->missing ? SEGMENT_STORED : SEGMENT_LAST);
  if (fate == SEGMENT_LAST) {
    cr_assert_eq(tag, k->read.tag);
    close_one(lab, k);
  }
}

static void give_bad(struct lab *lab, struct known *k)
{
  uint32_t segment = k->read.segment, at = g_rand_int_range(lab->random, 0, 12) * segment;
  uint32_t bytes = g_rand_int_range(lab->random, 0, 2 * segment);
  uint64_t tag = 0, old = lab->past[g_rand_int_range(lab->random, 0, G_N_ELEMENTS(lab->past))];
  switch (g_rand_int_range(lab->random, 0, 5)) {
  case 0: /* another peer's */
    cr_assert_eq(give(lab, k, (k->read.peer + 1) % PEERS, k->id, 0, segment, &tag), SEGMENT_UNKNOWN);
    break;
  case 1: /* of a read that is over, or never was */
    cr_assert_eq(give(lab, k, k->read.peer, old, 0, segment, &tag), SEGMENT_UNKNOWN);
    cr_assert_eq(give(lab, k, k->read.peer, k->id + (1 << 16), 0, segment, &tag), SEGMENT_UNKNOWN);
    cr_assert_eq(give(lab, k, k->read.peer, k->id + READS, 0, segment, &tag), SEGMENT_UNKNOWN);
    break;
  case 2: /* a lying length */
    if (at < k->read.bytes && bytes != MIN(segment, k->read.bytes - at))
      cr_assert_eq(give(lab, k, k->read.peer, k->id, at, bytes, &tag), SEGMENT_WRONG);
    break;
  case 3: /* would overlap */
    cr_assert_eq(give(lab, k, k->read.peer, k->id, 1 + at, segment, &tag), SEGMENT_WRONG);
    break;
  default: /* past the end */
    at = (k->read.bytes + segment - 1) / segment * segment;
    cr_assert_eq(give(lab, k, k->read.peer, k->id, at, segment, &tag), SEGMENT_WRONG);
    at = UINT32_MAX / segment * segment;
    cr_assert_eq(give(lab, k, k->read.peer, k->id, at, segment, &tag), SEGMENT_WRONG);
  }
}

/* The peer is lost, with all of its reads. */
static void lose(struct lab *lab, uint32_t peer)
{
  uint64_t tag;
  while (reassembly_drop(lab->reassembly, peer, &tag)) {
    struct known *k = lab->known;
    while (k < lab->known + READS && (!k->id || k->read.tag != tag))
      k++;
    cr_assert(k < lab->known + READS && k->read.peer == peer);
    close_one(lab, k);
  }
  for (uint32_t i = 0; i < READS; i++)
    cr_assert(!lab->known[i].id || lab->known[i].read.peer != peer);
}

static void refuse(struct lab *lab, struct known *k)
{
  uint64_t tag;
  cr_assert_not(reassembly_refuse(lab->reassembly, (k->read.peer + 1) % PEERS, k->id, &tag));
  cr_assert(reassembly_refuse(lab->reassembly, k->read.peer, k->id, &tag));
  cr_assert_eq(tag, k->read.tag);
  cr_assert_not(reassembly_refuse(lab->reassembly, k->read.peer, k->id, &tag));
  close_one(lab, k);
}

static void act(struct lab *lab, struct known *k, uint64_t step)
{
  uint32_t dice = g_rand_int_range(lab->random, 0, 400);
  if (!k->id)
    open_one(lab, k, step);
  else if (dice == 0)
    lose(lab, k->read.peer);
  else if (dice == 1)
    refuse(lab, k);
  else if (dice < 100)
    give_bad(lab, k);
  else
    give_good(lab, k);
}

Test(srd_reassembly, equals_a_map_of_bytes)
{
  struct lab lab = {.random = g_rand_new_with_seed(3), .reassembly = reassembly_new(READS, 16)};
  uint64_t finished = 0;
  for (uint32_t i = 0; i < READS; i++)
    lab.known[i].memory = g_malloc(ROOM + 2 * MARGIN);
  for (uint64_t step = 1; step < 60000; step++) {
    struct known *k = &lab.known[g_rand_int_range(lab.random, 0, READS)];
    act(&lab, k, step);
    finished = lab.pasts;
  }
  cr_expect_gt(finished, 500);
  for (uint32_t i = 0; i < READS; i++)
    g_free(lab.known[i].memory);
  reassembly_free(lab.reassembly);
  g_rand_free(lab.random);
}

/* The largest read in the smallest segments fits the bits. */
Test(srd_reassembly, takes_the_largest_read)
{
  enum { SEGMENT = 256 };
  struct reassembly *r = reassembly_new(1, SEGMENT);
  g_autofree uint8_t *place = g_malloc(READ_BYTES_MAX);
  uint8_t payload[SEGMENT];
  uint64_t tag = 0;
  uint64_t id = reassembly_open(
      r, &(struct reassembly_read){.segment = SEGMENT, .bytes = READ_BYTES_MAX, .place = place, .tag = 9});
  for (uint32_t at = READ_BYTES_MAX; at > 0; at -= SEGMENT) {
    memset(payload, at / SEGMENT, SEGMENT);
    enum segment_fate fate = reassembly_take(r, 0, id, at - SEGMENT, payload, SEGMENT, &tag);
    cr_assert_eq(fate, at == SEGMENT ? SEGMENT_LAST : SEGMENT_STORED);
  }
  cr_expect_eq(tag, 9);
  for (uint32_t at = 0; at < READ_BYTES_MAX; at++)
    cr_assert_eq(place[at], (uint8_t)(at / SEGMENT + 1));
  reassembly_free(r);
}
