/* What a data connection's peer sends, both ways: a stream of tickets and requests, as the shelf takes it, up
 * to the pieces of memory that it would send; and an answer, as the reader takes it. */
#include <stdlib.h>
#include <string.h>

#include "backend_real/transport.h"
#include "backend_real/transport_tcp_served.h"
#include "backend_real/transport_tcp_wire.h"

static const struct ticket_secret secret = {.key = "the fuzz target's own"};

static void need(int good)
{
  if (!good)
    abort();
}

static struct served *some_served(uint64_t memory_bytes)
{
  struct range range[] = {{0, 4096}, {8192, 4096}, {16384, 1000}};
  struct served *served = served_new();
  served_add(served, 1, 0, 9192, &(struct ranges){.range = range, .count = 3});
  served_add(served, 2, 1ULL << 40, 5000, &(struct ranges){.range = range + 1, .count = 2});
  served_remove(served, 1, 5000, 100);
  need(memory_bytes >= 16384 + 1000);
  return served;
}

/* What would be sent lies in memory, and is not longer than what was asked for. */
static void look_up(const struct served *served, const struct wire_request *request, uint8_t *memory,
                    uint64_t memory_bytes)
{
  struct iovec piece[2];
  uint32_t pieces;
  need(request->bytes > 0 && request->bytes <= READ_BYTES_MAX);
  if (served_find(served, request->model, request->offset, request->bytes, memory, piece, 2, &pieces) !=
      SERVED_HERE)
    return;
  uint64_t sum = 0;
  need(pieces > 0 && pieces <= 2);
  for (uint32_t i = 0; i < pieces; i++) {
    uint64_t at = (uint8_t *)piece[i].iov_base - memory;
    need(at < memory_bytes && piece[i].iov_len <= memory_bytes - at);
    sum += piece[i].iov_len;
  }
  need(sum <= request->bytes);
}

static void take_ticket(const struct ticket *ticket, struct ticket_window *window, struct wire_rights *rights)
{
  if (!ticket_accept(ticket, &secret, 3, window))
    return;
  need(!ticket_accept(ticket, &secret, 3, window));
  wire_rights_add(rights, ticket->model);
  need(wire_rights_have(rights, ticket->model) && rights->count <= WIRE_RIGHTS);
}

static void as_shelf(const uint8_t *data, size_t size)
{
  static uint8_t memory[32768];
  struct served *served = some_served(sizeof memory);
  struct ticket_window window = {0};
  struct wire_rights rights = {0};
  struct wire_frame frame;
  int step;
  for (size_t at = 0; (step = wire_frame_parse(data + at, size - at, &frame)) > 0; at += step) {
    need((size_t)step <= size - at);
    if (frame.kind == WIRE_TICKET) {
      take_ticket(&frame.ticket, &window, &rights);
    } else {
      uint8_t again[WIRE_REQUEST_BYTES];
      wire_request_put(&frame.request, again);
      need(memcmp(again, data + at, sizeof again) == 0);
      look_up(served, &frame.request, memory, sizeof memory);
    }
  }
  served_free(served);
}

static void as_reader(const uint8_t *data, size_t size)
{
  struct wire_request asked = {.bytes = 1000, .id = 7};
  struct wire_reply reply;
  gboolean good;
  if (size >= WIRE_REPLY_BYTES && wire_reply_parse(data, &asked, &reply))
    need(reply.id == 7 && (reply.bytes == 0 || reply.bytes == 1000));
  if (size >= WIRE_END_BYTES && wire_end_parse(data, &good))
    need(good == 0 || good == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  as_shelf(data, size);
  as_reader(data, size);
  return 0;
}
