/* What goes over a TCP data connection; see transport_tcp_wire.h. */
#include "backend_real/transport_tcp_wire.h"

#include <string.h>

#include "backend_real/little_endian.h"
#include "backend_real/transport.h"

#define MAGIC(a, b, c, d) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
#define TICKET_MAGIC      MAGIC('D', 'M', 't', '1')
#define REQUEST_MAGIC     MAGIC('D', 'M', 'r', '1')
#define REPLY_MAGIC       MAGIC('D', 'M', 'a', '1')
#define END_MAGIC         MAGIC('D', 'M', 'e', '1')

static int request_parse(const uint8_t *data, struct wire_request *request)
{
  request->model = get32(data + 4);
  request->offset = get64(data + 8);
  request->id = get64(data + 16);
  request->bytes = get32(data + 24);
  if (get32(data + 28) != 0 || request->bytes == 0 || request->bytes > READ_BYTES_MAX ||
      request->offset > UINT64_MAX - request->bytes)
    return -1;
  return WIRE_REQUEST_BYTES;
}

int wire_frame_parse(const uint8_t *data, size_t size, struct wire_frame *frame)
{
  if (size < 4)
    return 0;
  switch (get32(data)) {
  case TICKET_MAGIC:
    if (size < WIRE_TICKET_BYTES)
      return 0;
    frame->kind = WIRE_TICKET;
    ticket_parse(data + 4, &frame->ticket);
    return WIRE_TICKET_BYTES;
  case REQUEST_MAGIC:
    if (size < WIRE_REQUEST_BYTES)
      return 0;
    frame->kind = WIRE_REQUEST;
    return request_parse(data, &frame->request);
  default:
    return -1;
  }
}

void wire_request_put(const struct wire_request *request, uint8_t wire[WIRE_REQUEST_BYTES])
{
  put32(wire, REQUEST_MAGIC);
  put32(wire + 4, request->model);
  put64(wire + 8, request->offset);
  put64(wire + 16, request->id);
  put32(wire + 24, request->bytes);
  put32(wire + 28, 0);
}

void wire_ticket_put(const struct ticket_secret *secret, uint32_t reader, uint32_t shelf, uint32_t model,
                     uint64_t serial, uint8_t wire[WIRE_TICKET_BYTES])
{
  put32(wire, TICKET_MAGIC);
  ticket_issue(secret, reader, shelf, model, serial, wire + 4);
}

void wire_reply_put(const struct wire_reply *reply, uint8_t wire[WIRE_REPLY_BYTES])
{
  put32(wire, REPLY_MAGIC);
  put32(wire + 4, reply->bytes);
  put64(wire + 8, reply->id);
}

gboolean wire_reply_parse(const uint8_t wire[WIRE_REPLY_BYTES], const struct wire_request *asked,
                          struct wire_reply *reply)
{
  reply->bytes = get32(wire + 4);
  reply->id = get64(wire + 8);
  return get32(wire) == REPLY_MAGIC && reply->id == asked->id &&
         (reply->bytes == asked->bytes || reply->bytes == 0);
}

void wire_end_put(gboolean good, uint8_t wire[WIRE_END_BYTES])
{
  put32(wire, END_MAGIC);
  put32(wire + 4, good);
}

gboolean wire_end_parse(const uint8_t wire[WIRE_END_BYTES], gboolean *good)
{
  uint32_t value = get32(wire + 4);
  *good = value == 1;
  return get32(wire) == END_MAGIC && value <= 1;
}

gboolean wire_rights_have(const struct wire_rights *rights, uint32_t model)
{
  for (uint32_t i = 0; i < rights->count; i++)
    if (rights->model[i] == model)
      return TRUE;
  return FALSE;
}

void wire_rights_add(struct wire_rights *rights, uint32_t model)
{
  if (wire_rights_have(rights, model))
    return;
  rights->model[rights->next] = model;
  rights->next = (rights->next + 1) % WIRE_RIGHTS;
  rights->count = MIN(rights->count + 1, WIRE_RIGHTS);
}
