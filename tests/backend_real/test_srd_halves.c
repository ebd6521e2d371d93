/* The two halves of reads by datagram, each alone: turns, probes, peers that break the protocol. */
#include <criterion/criterion.h>
#include <string.h>

#include "backend_real/srd_answers.h"
#include "backend_real/srd_reader.h"

/* A reader that asks for much does not keep another from its turn: segments alternate. */
Test(srd_halves, readers_take_turns)
{
  struct srd_answers *answers = srd_answers_new(2, 4);
  uint32_t reader[2], sent[2] = {0}, got;
  uint64_t token[2];
  uint8_t wire[SRD_HEAD_BYTES];
  struct srd_piece piece;
  struct srd_visitor visitor = {.share = 1000, .segment = 256};
  for (uint32_t i = 0; i < 2; i++) {
    cr_assert(srd_answers_admit(answers, 1234567, &reader[i], &token[i]));
    srd_answers_meet(answers, reader[i], &visitor);
  }
  for (uint32_t i = 0; i < 4 + 1; i++) {
    struct srd_message m = {.kind = SRD_REQUEST, .token = token[i == 4], .bytes = i == 4 ? 2560 : 25600};
    cr_assert_eq(srd_answers_take(answers, wire, srd_message_put(&m, wire), &got), SRD_TAKEN);
  }
  while (sent[1] < 10) {
    cr_assert(srd_answers_next(answers, &piece));
    srd_answers_send(answers, &piece, wire);
    sent[piece.reader]++;
    cr_assert_leq(sent[0], sent[1] + 1);
  }
  srd_answers_hold(answers, reader[0], TRUE);
  cr_assert_not(srd_answers_next(answers, &piece), "held, and the other has no more");
  srd_answers_hold(answers, reader[0], FALSE);
  cr_assert(srd_answers_next(answers, &piece));
  srd_answers_free(answers);
}

/* A peer that was asked and is silent from one tick to the next is probed, once a tick; not one that speaks,
 * nor one that something is on its way to. */
Test(srd_halves, silent_shelves_are_probed)
{
  uint8_t wire[SRD_HEAD_BYTES], data[SRD_HEAD_BYTES + 1024] = {0};
  uint32_t peer, visitor;
  struct srd_message m;
  uint64_t token, tag;
  struct srd_reader *reader =
      srd_reader_new(&(struct srd_reader_config){.receives = 8, .peers = 2, .reads = 2});
  struct srd_answers *answers = srd_answers_new(1, 1);
  cr_assert(srd_reader_join(reader, 0, &peer, &token));
  srd_reader_meet(reader, peer, &(struct srd_shelf_end){.token = 5, .requests = 1, .segment = 256});
  srd_reader_tick(reader);
  srd_reader_tick(reader);
  cr_expect_eq(srd_reader_next(reader, wire, &peer), 0, "it was asked nothing");
  srd_reader_read(reader, peer, &(struct srd_read){.bytes = 300, .place = data + 500, .tag = 1});
  cr_assert(srd_message_parse(wire, srd_reader_next(reader, wire, &peer), &m) && m.kind == SRD_REQUEST);
  for (uint32_t tick = 0; tick < 3; tick++) {
    srd_reader_tick(reader);
    cr_expect_eq(srd_reader_next(reader, wire, &peer), 0, "the request is on its way");
  }
  srd_reader_sent(reader, peer);
  struct srd_message segment = {.kind = SRD_SEGMENT, .token = token, .id = m.id, .bytes = 256};
  for (uint32_t tick = 0; tick < 4; tick++) {
    srd_reader_tick(reader);
    size_t size = srd_reader_next(reader, wire, &peer);
    cr_expect_eq(size > 0, tick != 2, "tick %u", tick);
    cr_expect(size == 0 || (srd_message_parse(wire, size, &m) && m.kind == SRD_PROBE && m.token == 5));
    if (size > 0)
      srd_reader_sent(reader, peer);
    if (tick == 1)
      srd_reader_take(reader, data, srd_message_put(&segment, data) + 256, &peer, &tag);
    while (srd_reader_next(reader, wire, &peer) > 0) {
      cr_expect_eq(tick, 1, "only credit for what came");
      srd_reader_sent(reader, peer);
    }
  }
  cr_assert(srd_answers_admit(answers, 0, &visitor, &token));
  srd_answers_meet(answers, visitor, &(struct srd_visitor){.share = 1, .segment = 256});
  size_t size = srd_message_put(&(struct srd_message){.kind = SRD_PROBE, .token = token}, wire);
  cr_expect_eq(srd_answers_take(answers, wire, size, &visitor), SRD_TAKEN);
  srd_answers_free(answers);
  srd_reader_free(reader);
}

/* What a peer that breaks the protocol can do: be told apart, and nothing else. */
Test(srd_halves, faults_are_told_from_mishaps)
{
  struct srd_reader *reader =
      srd_reader_new(&(struct srd_reader_config){.receives = 8, .peers = 2, .reads = 2});
  uint8_t wire[SRD_HEAD_BYTES + 256] = {0}, request[SRD_HEAD_BYTES], place[300];
  uint64_t token, tag = 0;
  uint32_t peer, got;
  struct srd_message asked;
  memset(place, 0xEE, sizeof place);
  cr_assert(srd_reader_join(reader, 0x123456789abcdef0, &peer, &token));
  srd_reader_meet(reader, peer, &(struct srd_shelf_end){.token = 5, .requests = 1, .segment = 256});
  srd_reader_read(reader, peer, &(struct srd_read){.bytes = 300, .place = place, .tag = 77});
  cr_assert(srd_message_parse(request, srd_reader_next(reader, request, &got), &asked));
  struct srd_message good = {.kind = SRD_SEGMENT, .token = token, .id = asked.id, .bytes = 256};
  struct srd_message odd[] = {good, good, good, good, good};
  static const enum srd_outcome expected[] = {SRD_FOREIGN, SRD_FOREIGN, SRD_LATE, SRD_NONSENSE, SRD_NONSENSE};
  odd[0].token ^= (uint64_t)1 << 40;
  odd[1].token ^= 1;
  odd[2].id += 1 << 16;
  odd[3].kind = SRD_CREDIT;
  odd[4].kind = SRD_PROBE;
  for (guint i = 0; i < G_N_ELEMENTS(odd); i++) {
    size_t size = srd_message_put(&odd[i], wire) + (odd[i].kind == SRD_SEGMENT ? 256 : 0);
    cr_assert_eq(srd_reader_take(reader, wire, size, &got, &tag), expected[i], "%u", i);
  }
  for (uint32_t i = 0; i < sizeof place; i++)
    cr_assert_eq(place[i], 0xEE);

  size_t size = srd_message_put(&good, wire) + 256;
  cr_assert_eq(srd_reader_take(reader, wire, size, &got, &tag), SRD_STORED);
  cr_assert_eq(srd_reader_take(reader, wire, size, &got, &tag), SRD_FAULT, "twice");
  good.kind = SRD_REFUSAL;
  good.id = 99;
  size = srd_message_put(&good, wire);
  cr_assert_eq(srd_reader_take(reader, wire, size, &got, &tag), SRD_FAULT, "and this is past its share");
  cr_assert(srd_reader_leave(reader, peer, &tag));
  cr_assert_eq(tag, 77);
  cr_assert_not(srd_reader_leave(reader, peer, &tag));
  srd_reader_free(reader);
}
