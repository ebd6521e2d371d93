/* What goes over SRD without RDMA READ; see srd_wire.h. */
#include "backend_real/srd_wire.h"

#include <string.h>

#include "backend_real/little_endian.h"
#include "backend_real/transport.h"

#define MAGIC(a, b, c, d) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

#define SEGMENT_STEP 64

static const struct {
  uint32_t magic, bytes;
} shapes[] = {
    [SRD_REQUEST] = {MAGIC('D', 'M', 'q', '1'), SRD_REQUEST_BYTES},
    [SRD_CREDIT] = {MAGIC('D', 'M', 'c', '1'), SRD_CREDIT_BYTES},
    [SRD_PROBE] = {MAGIC('D', 'M', 'p', '1'), SRD_PROBE_BYTES},
    [SRD_SEGMENT] = {MAGIC('D', 'M', 's', '1'), SRD_SEGMENT_BYTES},
    [SRD_REFUSAL] = {MAGIC('D', 'M', 'n', '1'), SRD_REFUSAL_BYTES},
};

static gboolean parse_request(const uint8_t *data, struct srd_message *m)
{
  m->bytes = get32(data + 4);
  m->id = get64(data + 16);
  m->address = get64(data + 24);
  m->key = get32(data + 32);
  return get32(data + 36) == 0 && m->bytes > 0 && m->bytes <= READ_BYTES_MAX &&
         m->address <= UINT64_MAX - m->bytes;
}

static gboolean parse_segment(const uint8_t *data, size_t size, struct srd_message *m)
{
  m->taken = get32(data + 4);
  m->id = get64(data + 16);
  m->at = get32(data + 24);
  m->bytes = get32(data + 28);
  m->payload = data + SRD_SEGMENT_BYTES;
  return m->bytes > 0 && m->bytes == size - SRD_SEGMENT_BYTES;
}

gboolean srd_message_parse(const uint8_t *data, size_t size, struct srd_message *m)
{
  *m = (struct srd_message){0};
  if (size < SRD_CREDIT_BYTES)
    return FALSE;
  uint32_t magic = get32(data), kind = 0;
  while (kind < G_N_ELEMENTS(shapes) && shapes[kind].magic != magic)
    kind++;
  if (kind == G_N_ELEMENTS(shapes) || size < shapes[kind].bytes ||
      (kind != SRD_SEGMENT && size != shapes[kind].bytes))
    return FALSE;
  m->kind = kind;
  m->token = get64(data + 8);
  switch (m->kind) {
  case SRD_REQUEST:
    return parse_request(data, m);
  case SRD_SEGMENT:
    return parse_segment(data, size, m);
  case SRD_CREDIT:
    m->limit = get32(data + 4);
    return TRUE;
  case SRD_PROBE:
    return get32(data + 4) == 0;
  case SRD_REFUSAL:
    m->taken = get32(data + 4);
    m->id = get64(data + 16);
    return TRUE;
  }
  return FALSE;
}

size_t srd_message_put(const struct srd_message *m, uint8_t *wire)
{
  put32(wire, shapes[m->kind].magic);
  put64(wire + 8, m->token);
  if (m->kind != SRD_CREDIT && m->kind != SRD_PROBE)
    put64(wire + 16, m->id);
  switch (m->kind) {
  case SRD_REQUEST:
    put32(wire + 4, m->bytes);
    put64(wire + 24, m->address);
    put32(wire + 32, m->key);
    put32(wire + 36, 0);
    break;
  case SRD_CREDIT:
    put32(wire + 4, m->limit);
    break;
  case SRD_PROBE:
    put32(wire + 4, 0);
    break;
  case SRD_SEGMENT:
    put32(wire + 4, m->taken);
    put32(wire + 24, m->at);
    put32(wire + 28, m->bytes);
    break;
  case SRD_REFUSAL:
    put32(wire + 4, m->taken);
    break;
  }
  return shapes[m->kind].bytes;
}

uint32_t srd_segment_bytes(uint32_t datagram_max)
{
  if (datagram_max < SRD_SEGMENT_BYTES + SRD_SEGMENT_LEAST)
    return 0;
  uint32_t room = MIN(datagram_max - SRD_SEGMENT_BYTES, READ_BYTES_MAX);
  return room >= ARENA_ALIGN ? room / ARENA_ALIGN * ARENA_ALIGN : room / SEGMENT_STEP * SEGMENT_STEP;
}
