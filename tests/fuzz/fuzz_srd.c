/* What SRD lines take from a peer: a stream of u16 (little-endian) lengths, each followed by that many bytes.
 * Each is a datagram to a reader with reads under way, and to a shelf with two visitors, and an offer in a
 * letter. */
#include <stdlib.h>
#include <string.h>

#include "backend_real/srd_answers.h"
#include "backend_real/srd_credit.h"
#include "backend_real/srd_offer.h"
#include "backend_real/srd_reader.h"
#include "backend_real/transport.h"

enum { READS = 3, PLACE = 1000, MARGIN = 64, SEGMENT = 256, SHARE = 8, REQUESTS = 4 };

/* Tokens begin with this, so that an input of the corpus can show them: ...00 to the reader, ...00 and ...01
 * to the shelf. */
#define RANDOM ((uint64_t)0x4142434445464000)

static void need(int good)
{
  if (!good)
    abort();
}

struct reading {
  struct srd_reader *reader;
  uint32_t peer;
  uint8_t place[READS][MARGIN + PLACE + MARGIN];
  uint32_t open;
};

static void ask(struct reading *r, uint64_t tag)
{
  uint8_t wire[SRD_HEAD_BYTES];
  uint32_t peer;
  srd_reader_read(r->reader, r->peer,
                  &(struct srd_read){.bytes = PLACE, .place = r->place[tag] + MARGIN, .tag = tag});
  while (srd_reader_next(r->reader, wire, &peer) > 0)
    need(peer == r->peer);
  r->open++;
}

static void join(struct reading *r)
{
  uint64_t token;
  need(srd_reader_join(r->reader, RANDOM, &r->peer, &token) && token == RANDOM);
  srd_reader_meet(r->reader, r->peer, &(struct srd_shelf_end){.requests = READS, .segment = SEGMENT});
  r->open = 0;
  for (uint64_t tag = 0; tag < READS; tag++)
    ask(r, tag);
}

static void leave(struct reading *r)
{
  uint64_t tag;
  uint32_t ended = 0;
  while (srd_reader_leave(r->reader, r->peer, &tag)) {
    need(tag < READS);
    ended++;
  }
  need(ended == r->open);
}

static void check_margins(const struct reading *r)
{
  for (uint32_t i = 0; i < READS; i++)
    for (uint32_t at = 0; at < MARGIN; at++)
      need(r->place[i][at] == 0xEE && r->place[i][MARGIN + PLACE + at] == 0xEE);
}

static void reader_takes(struct reading *r, const uint8_t *data, size_t size)
{
  uint32_t peer = UINT32_MAX;
  uint64_t tag = UINT64_MAX;
  enum srd_outcome outcome = srd_reader_take(r->reader, data, size, &peer, &tag);
  if (outcome != SRD_DONE && outcome != SRD_FAILED && outcome != SRD_FAULT)
    return;
  need(peer == r->peer);
  if (outcome == SRD_FAULT) {
    leave(r);
    join(r);
  } else {
    need(tag < READS);
    r->open--;
    ask(r, tag);
  }
}

static void shelf_takes(struct srd_answers *answers, const uint8_t *data, size_t size)
{
  uint8_t wire[SRD_HEAD_BYTES];
  struct srd_piece piece;
  struct srd_message again;
  uint32_t reader = UINT32_MAX;
  enum srd_taken taken = srd_answers_take(answers, data, size, &reader);
  need((taken == SRD_TAKEN || taken == SRD_EXCESS) == (reader < 2));
  uint32_t sent = 0;
  for (; srd_answers_next(answers, &piece); sent++) {
    need(piece.reader < 2 && piece.bytes > 0 && piece.bytes <= SEGMENT);
    need(piece.address <= UINT64_MAX - piece.bytes);
    if (piece.key % 2)
      need(srd_message_parse(wire, srd_answers_refuse(answers, &piece, wire), &again));
    else
      need(srd_answers_send(answers, &piece, wire) == SRD_SEGMENT_BYTES);
  }
  need(sent <= 2 * SHARE);
}

static void line_takes(const uint8_t *data, size_t size)
{
  uint8_t wire[SRD_OFFER_BYTES];
  struct srd_offer offer;
  for (int of_shelf = 0; of_shelf < 2; of_shelf++) {
    if (!srd_offer_parse(data, size, of_shelf, &offer))
      continue;
    srd_offer_put(&offer, wire);
    need(size == sizeof wire && memcmp(wire, data, size) == 0);
    need(srd_segment_bytes(offer.datagram_max) >= SRD_SEGMENT_LEAST);
    need(of_shelf ? offer.requests > 0 : offer.share > 0 && offer.share <= SRD_SHARE_MAX);
  }
}

static void run(struct reading *r, struct srd_answers *answers, const uint8_t *data, size_t size)
{
  for (size_t at = 0; size - at >= 2;) {
    size_t length = data[at] | (size_t)data[at + 1] << 8;
    at += 2;
    length = MIN(length, size - at);
    /* A copy of its own, so that a sanitizer sees what reads past it. */
    uint8_t *datagram = g_malloc(MAX(length, 1));
    memcpy(datagram, data + at, length);
    reader_takes(r, datagram, length);
    shelf_takes(answers, datagram, length);
    line_takes(datagram, length);
    g_free(datagram);
    at += length;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static struct reading r;
  memset(r.place, 0xEE, sizeof r.place);
  r.reader = srd_reader_new(&(struct srd_reader_config){.receives = 2 * SHARE, .peers = 2, .reads = READS});
  join(&r);
  struct srd_answers *answers = srd_answers_new(2, REQUESTS);
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t reader;
    uint64_t token;
    struct srd_visitor visitor = {.share = SHARE, .segment = SEGMENT};
    need(srd_answers_admit(answers, RANDOM, &reader, &token) && token == RANDOM + i);
    srd_answers_meet(answers, reader, &visitor);
  }
  run(&r, answers, data, size);
  check_margins(&r);
  leave(&r);
  srd_answers_free(answers);
  srd_reader_free(r.reader);
  return 0;
}
