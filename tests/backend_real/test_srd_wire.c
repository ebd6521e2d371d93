/* Datagrams of SRD without RDMA READ: what is written is read again, and nothing else is. */
#include <criterion/criterion.h>

#include "backend_real/srd_wire.h"
#include "backend_real/transport.h"

static struct srd_message random_message(GRand *random, enum srd_kind kind)
{
  struct srd_message m = {.kind = kind, .token = (uint64_t)g_rand_int(random) << 32 | g_rand_int(random)};
  if (kind != SRD_CREDIT && kind != SRD_PROBE)
    m.id = (uint64_t)g_rand_int(random) << 32 | g_rand_int(random);
  if (kind == SRD_REQUEST) {
    m.address = (uint64_t)g_rand_int(random) << 31;
    m.key = g_rand_int(random);
    m.bytes = g_rand_int_range(random, 1, READ_BYTES_MAX + 1);
  }
  if (kind == SRD_CREDIT)
    m.limit = g_rand_int(random);
  else if (kind == SRD_SEGMENT || kind == SRD_REFUSAL)
    m.taken = g_rand_int(random);
  if (kind == SRD_SEGMENT) {
    m.at = g_rand_int(random);
    m.bytes = g_rand_int_range(random, 1, 200);
  }
  return m;
}

static gboolean same(const struct srd_message *a, const struct srd_message *b)
{
  return a->kind == b->kind && a->token == b->token && a->id == b->id && a->address == b->address &&
         a->key == b->key && a->bytes == b->bytes && a->at == b->at && a->limit == b->limit &&
         a->taken == b->taken;
}

Test(srd_wire, reads_what_it_wrote_and_nothing_shorter_or_longer)
{
  GRand *random = g_rand_new_with_seed(1);
  for (uint32_t round = 0; round < 2000; round++) {
    struct srd_message m = random_message(random, round % 5), again;
    uint8_t wire[SRD_HEAD_BYTES + 256] = {0};
    size_t size = srd_message_put(&m, wire);
    cr_assert_leq(size, SRD_HEAD_BYTES);
    size += m.kind == SRD_SEGMENT ? m.bytes : 0;
    for (size_t cut = 0; cut <= size + 3; cut++) {
      /* Exactly as large as it says, so that AddressSanitizer sees what reads on. */
      g_autofree uint8_t *datagram = g_memdup2(wire, cut);
      cr_assert_eq(srd_message_parse(datagram, cut, &again), cut == size, "%zu of %zu", cut, size);
      if (cut == size && m.kind == SRD_SEGMENT)
        cr_assert_eq(again.payload, datagram + SRD_SEGMENT_BYTES);
    }
    srd_message_parse(wire, size, &again);
    cr_assert(same(&again, &m), "kind %d", m.kind);
  }
  g_rand_free(random);
}

Test(srd_wire, refuses_requests_out_of_bounds)
{
  struct srd_message m = {.kind = SRD_REQUEST, .bytes = READ_BYTES_MAX}, got;
  uint8_t wire[SRD_HEAD_BYTES];
  srd_message_put(&m, wire);
  cr_expect(srd_message_parse(wire, SRD_REQUEST_BYTES, &got));
  struct srd_message bad[] = {
      {.kind = SRD_REQUEST, .bytes = 0},
      {.kind = SRD_REQUEST, .bytes = READ_BYTES_MAX + 1},
      {.kind = SRD_REQUEST, .bytes = UINT32_MAX},
      {.kind = SRD_REQUEST, .bytes = 2, .address = UINT64_MAX - 1},
  };
  for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
    srd_message_put(&bad[i], wire);
    cr_expect_not(srd_message_parse(wire, SRD_REQUEST_BYTES, &got), "%u", i);
  }
  srd_message_put(&m, wire);
  wire[SRD_REQUEST_BYTES - 1] = 1;
  cr_expect_not(srd_message_parse(wire, SRD_REQUEST_BYTES, &got), "what is to be zero is not");
}

Test(srd_wire, segments_fit_datagrams)
{
  cr_expect_eq(srd_segment_bytes(8928), 8192);
  cr_expect_eq(srd_segment_bytes(4096 + SRD_SEGMENT_BYTES), 4096);
  cr_expect_eq(srd_segment_bytes(4096), 4032);
  cr_expect_eq(srd_segment_bytes(0), 0);
  cr_expect_eq(srd_segment_bytes(SRD_SEGMENT_LEAST + SRD_SEGMENT_BYTES - 1), 0);
  cr_expect_eq(srd_segment_bytes(SRD_SEGMENT_LEAST + SRD_SEGMENT_BYTES), SRD_SEGMENT_LEAST);
  cr_expect_eq(srd_segment_bytes(UINT32_MAX), READ_BYTES_MAX);
  for (uint32_t max = 0; max < 20000; max++) {
    uint32_t segment = srd_segment_bytes(max);
    cr_assert(segment == 0 || (segment >= SRD_SEGMENT_LEAST && segment + SRD_SEGMENT_BYTES <= max));
  }
}
