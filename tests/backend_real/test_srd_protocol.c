/* Both halves of reads by datagram: readers and shelves at the ends of a network that delivers every datagram
 * once, in any order, and loses peers. Every byte is checked, and who has how many buffers, at every step. */
#include <criterion/criterion.h>

#include "backend_real/srd_answers.h"
#include "backend_real/srd_credit.h"
#include "backend_real/srd_reader.h"

enum {
  READERS = 3,
  SHELVES = 4,
  PEERS = 3, /* of a reader; fewer than there are shelves */
  REQUESTS = 4,
  READS = 64, /* of a reader, at once */
  PLACE = 3000,
  IMAGE = 20000,
  FLIGHT = 2000,
  GONE_KEY = 13,
};

struct datagram {
  uint32_t reader, shelf;
  gboolean to_reader;
  uint64_t life; /* of the line that it was sent on; 0: it has ended */
  size_t size;
  uint8_t data[SRD_HEAD_BYTES + 1024];
};

struct read {
  gboolean open;
  uint32_t shelf;
  struct srd_read read;
  uint8_t *memory;
};

/* Between a reader and a shelf. */
struct line {
  uint64_t life; /* 0: there is none */
  uint32_t peer, visitor;
  uint32_t share;
};

struct net {
  GRand *random;
  struct srd_reader *reader[READERS];
  struct srd_answers *shelf[SHELVES];
  struct line line[READERS][SHELVES];
  struct read read[READERS][READS];
  struct datagram *flight;
  uint32_t flying, receives[READERS];
  uint64_t lives, tags, good, refused, lost, stale;
};

static uint8_t image_byte(uint32_t shelf, uint32_t key, uint64_t address)
{
  return (uint8_t)(shelf * 77 + key * 5 + address * 3 + address / 256);
}

static void launch(struct net *net, uint32_t reader, uint32_t shelf, gboolean to_reader, const uint8_t *wire,
                   size_t head, const struct srd_piece *piece)
{
  cr_assert_lt(net->flying, FLIGHT);
  struct datagram *d = &net->flight[net->flying++];
  *d = (struct datagram){reader, shelf, to_reader, net->line[reader][shelf].life, head};
  memcpy(d->data, wire, head);
  for (uint32_t i = 0; piece && i < piece->bytes; i++)
    d->data[d->size++] = image_byte(shelf, piece->key, piece->address + i);
}

/* The invariant that all this is for: whatever is under way finds a buffer. */
static void check_buffers(const struct net *net)
{
  uint32_t to_reader[READERS] = {0}, from[READERS][SHELVES] = {0}, to_shelf[READERS][SHELVES] = {0};
  for (uint32_t i = 0; i < net->flying; i++) {
    const struct datagram *d = &net->flight[i];
    if (!d->life)
      continue;
    if (d->to_reader) {
      to_reader[d->reader]++;
      from[d->reader][d->shelf]++;
    } else {
      to_shelf[d->reader][d->shelf]++;
    }
  }
  for (uint32_t r = 0; r < READERS; r++) {
    cr_assert_leq(to_reader[r], net->receives[r]);
    for (uint32_t s = 0; s < SHELVES; s++) {
      cr_assert_leq(from[r][s], net->line[r][s].share);
      cr_assert_leq(to_shelf[r][s], REQUESTS + CREDITS_UNDER_WAY + 1);
    }
  }
}

static void end_read(struct net *net, uint32_t reader, uint32_t shelf, uint64_t tag, enum srd_outcome how)
{
  struct read *read = net->read[reader];
  while (read < net->read[reader] + READS && (!read->open || read->read.tag != tag))
    read++;
  cr_assert(read < net->read[reader] + READS && read->shelf == shelf, "ended twice, or another's");
  uint32_t wrong = 0;
  for (uint32_t i = 0; how == SRD_DONE && i < read->read.bytes; i++)
    wrong += read->memory[i] != image_byte(shelf, read->read.key, read->read.address + i);
  cr_assert_eq(wrong, 0);
  cr_assert_eq(read->memory[read->read.bytes], 0xEE, "past the end");
  read->open = FALSE;
}

/* Either end may lose the other first; what flies on the line is then no one's. */
static void cut_line(struct net *net, uint32_t r, uint32_t s)
{
  struct line *line = &net->line[r][s];
  uint64_t tag;
  if (!line->life)
    return;
  while (srd_reader_leave(net->reader[r], line->peer, &tag)) {
    end_read(net, r, s, tag, SRD_FAILED);
    net->lost++;
  }
  srd_answers_expel(net->shelf[s], line->visitor);
  for (uint32_t i = 0; i < net->flying; i++)
    if (net->flight[i].life == line->life)
      net->flight[i].life = 0;
  line->life = 0;
}

static void join(struct net *net, uint32_t r, uint32_t s)
{
  struct line *line = &net->line[r][s];
  uint64_t reader_token, shelf_token;
  uint64_t random = (uint64_t)g_rand_int(net->random) << 32 | g_rand_int(net->random);
  uint32_t here = 0, segment = g_rand_int_range(net->random, SRD_SEGMENT_LEAST, 1000);
  for (uint32_t i = 0; i < SHELVES; i++)
    here += net->line[r][i].life != 0;
  gboolean joined = srd_reader_join(net->reader[r], random, &line->peer, &reader_token);
  cr_assert_eq(joined, here < PEERS);
  if (!joined)
    return;
  line->share = srd_reader_share(net->reader[r]);
  struct srd_visitor visitor = {.token = reader_token, .share = line->share, .segment = segment};
  cr_assert(srd_answers_admit(net->shelf[s], ~random, &line->visitor, &shelf_token));
  srd_answers_meet(net->shelf[s], line->visitor, &visitor);
  srd_reader_meet(net->reader[r], line->peer,
                  &(struct srd_shelf_end){.token = shelf_token, .requests = REQUESTS, .segment = segment});
  line->life = ++net->lives;
}

static void ask(struct net *net, uint32_t r, uint32_t s)
{
  struct read *read = net->read[r];
  while (read < net->read[r] + READS && read->open)
    read++;
  if (read == net->read[r] + READS || !net->line[r][s].life)
    return;
  memset(read->memory, 0xEE, PLACE + 1);
  read->open = TRUE;
  read->shelf = s;
  read->read = (struct srd_read){
      .key = g_rand_int_range(net->random, 8, 16),
      .address = g_rand_int_range(net->random, 0, IMAGE),
      .bytes = g_rand_int_range(net->random, 1, PLACE + 1),
      .tag = ++net->tags,
      .place = read->memory,
  };
  srd_reader_read(net->reader[r], net->line[r][s].peer, &read->read);
}

static gboolean reader_sends(struct net *net, uint32_t r)
{
  uint8_t wire[SRD_HEAD_BYTES];
  uint32_t peer, s = 0;
  size_t size = srd_reader_next(net->reader[r], wire, &peer);
  if (size == 0)
    return FALSE;
  while (!net->line[r][s].life || net->line[r][s].peer != peer)
    s++;
  launch(net, r, s, FALSE, wire, size, NULL);
  return TRUE;
}

static gboolean shelf_sends(struct net *net, uint32_t s)
{
  uint8_t wire[SRD_HEAD_BYTES] = {0};
  struct srd_piece piece;
  uint32_t r = 0;
  if (!srd_answers_next(net->shelf[s], &piece))
    return FALSE;
  while (!net->line[r][s].life || net->line[r][s].visitor != piece.reader)
    r++;
  /* A region may go away in the middle of a read. */
  gboolean gone = piece.key == GONE_KEY && g_rand_int_range(net->random, 0, 3) == 0;
  gone |= piece.key == GONE_KEY && piece.bytes < 256;
  size_t head =
      gone ? srd_answers_refuse(net->shelf[s], &piece, wire) : srd_answers_send(net->shelf[s], &piece, wire);
  launch(net, r, s, TRUE, wire, head, gone ? NULL : &piece);
  return TRUE;
}

static uint32_t key_of(const struct net *net, uint32_t reader, uint64_t tag)
{
  for (uint32_t i = 0; i < READS; i++)
    if (net->read[reader][i].open && net->read[reader][i].read.tag == tag)
      return net->read[reader][i].read.key;
  return 0;
}

static void reader_takes(struct net *net, const struct datagram *d)
{
  uint32_t peer;
  uint64_t tag;
  enum srd_outcome outcome = srd_reader_take(net->reader[d->reader], d->data, d->size, &peer, &tag);
  if (!d->life) {
    cr_assert_eq(outcome, SRD_FOREIGN, "of a line that is over");
    return;
  }
  cr_assert(outcome != SRD_FAULT && outcome != SRD_NONSENSE && outcome != SRD_FOREIGN);
  net->stale += outcome == SRD_LATE;
  if (outcome == SRD_DONE || outcome == SRD_FAILED) {
    cr_assert(outcome == SRD_DONE || key_of(net, d->reader, tag) == GONE_KEY);
    end_read(net, d->reader, d->shelf, tag, outcome);
    *(outcome == SRD_DONE ? &net->good : &net->refused) += 1;
  }
}

static gboolean land(struct net *net)
{
  if (net->flying == 0)
    return FALSE;
  uint32_t which = g_rand_int_range(net->random, 0, net->flying), visitor;
  struct datagram d = net->flight[which];
  net->flight[which] = net->flight[--net->flying];
  if (d.to_reader)
    reader_takes(net, &d);
  else
    cr_assert_eq(srd_answers_take(net->shelf[d.shelf], d.data, d.size, &visitor),
                 d.life ? SRD_TAKEN : SRD_STRANGER);
  if (!d.to_reader && d.life)
    srd_reader_sent(net->reader[d.reader], net->line[d.reader][d.shelf].peer);
  return TRUE;
}

static void some_event(struct net *net, uint32_t losses)
{
  uint32_t r = g_rand_int_range(net->random, 0, READERS), s = g_rand_int_range(net->random, 0, SHELVES);
  uint32_t dice = g_rand_int_range(net->random, 0, 1000);
  if (dice < losses)
    cut_line(net, r, s);
  else if (dice < 100 && !net->line[r][s].life)
    join(net, r, s);
  else if (dice < 200)
    ask(net, r, s);
  else if (dice < 205)
    srd_reader_tick(net->reader[r]);
  else if (dice < 500)
    reader_sends(net, r);
  else if (dice < 700)
    shelf_sends(net, s);
  else
    land(net);
}

/* Nothing new is asked: all that is open must end. */
static void settle(struct net *net)
{
  gboolean moved = TRUE;
  while (moved) {
    moved = land(net);
    for (uint32_t i = 0; i < READERS; i++)
      moved |= reader_sends(net, i);
    for (uint32_t i = 0; i < SHELVES; i++)
      moved |= shelf_sends(net, i);
    check_buffers(net);
  }
  for (uint32_t r = 0; r < READERS; r++)
    for (uint32_t i = 0; i < READS; i++)
      cr_assert_not(net->read[r][i].open, "reader %u waits for shelf %u for ever", r, net->read[r][i].shelf);
}

static struct net *net_new(uint32_t seed)
{
  struct net *net = g_new0(struct net, 1);
  net->random = g_rand_new_with_seed(seed);
  net->flight = g_new(struct datagram, FLIGHT);
  for (uint32_t r = 0; r < READERS; r++) {
    net->receives[r] = PEERS * g_rand_int_range(net->random, 1, 12);
    net->reader[r] = srd_reader_new(&(struct srd_reader_config){
        .receives = net->receives[r], .peers = PEERS, .reads = g_rand_int_range(net->random, 1, 7)});
    for (uint32_t i = 0; i < READS; i++)
      net->read[r][i].memory = g_malloc(PLACE + 1);
  }
  for (uint32_t s = 0; s < SHELVES; s++)
    net->shelf[s] = srd_answers_new(READERS, REQUESTS);
  return net;
}

static void net_free(struct net *net)
{
  for (uint32_t r = 0; r < READERS; r++) {
    srd_reader_free(net->reader[r]);
    for (uint32_t i = 0; i < READS; i++)
      g_free(net->read[r][i].memory);
  }
  for (uint32_t s = 0; s < SHELVES; s++)
    srd_answers_free(net->shelf[s]);
  g_free(net->flight);
  g_rand_free(net->random);
  g_free(net);
}

Test(srd_protocol, every_read_ends_once_and_right)
{
  uint64_t good = 0, refused = 0, lost = 0, stale = 0;
  for (uint32_t seed = 0; seed < 15; seed++) {
    struct net *net = net_new(seed);
    for (uint32_t part = 0; part < 4; part++) {
      for (uint32_t i = 0; i < 4000; i++) {
        some_event(net, seed % 3 * 2);
        check_buffers(net);
      }
      settle(net);
    }
    stale += net->stale;
    good += net->good;
    refused += net->refused;
    lost += net->lost;
    net_free(net);
  }
  cr_log_info("%" G_GUINT64_FORMAT " good, %" G_GUINT64_FORMAT " refused, %" G_GUINT64_FORMAT " lost", good,
              refused, lost);
  cr_expect_gt(good, 5000);
  cr_expect_gt(refused, 500);
  cr_expect_gt(lost, 200);
  cr_expect_gt(stale, 100, "segments that a refusal overtook");
}

/* A shelf that stays silent holds its own share of the buffers: the others' reads all end. */
Test(srd_protocol, a_silent_shelf_starves_nobody)
{
  struct net *net = net_new(99);
  for (uint32_t s = 0; s < PEERS; s++)
    join(net, 0, s);
  for (uint32_t i = 0; i < READS / 2; i++)
    ask(net, 0, 0);
  for (uint32_t round = 0; round < 200; round++) {
    ask(net, 0, 1);
    ask(net, 0, 2);
    for (gboolean moved = TRUE; moved;)
      moved = reader_sends(net, 0) | land(net) | shelf_sends(net, 1) | shelf_sends(net, 2);
    for (uint32_t i = 0; i < READS; i++)
      cr_assert(!net->read[0][i].open || net->read[0][i].shelf == 0);
  }
  settle(net);
  net_free(net);
}
