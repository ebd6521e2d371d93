/* What goes over a TCP data connection. All fields are little-endian.
 *
 *   reader to shelf   ticket   "DMt1", ticket (TICKET_BYTES)
 *                     request  "DMr1", u32 model, u64 offset, u64 id, u32 bytes, u32 0
 *   shelf to reader   reply    "DMa1", u32 bytes, u64 id; bytes 0: not served (no payload and no end)
 *                     payload  bytes of the image
 *                     end      "DMe1", u32 good: 0 = it was given up half way, the payload is worth nothing
 *
 * A connection opens with a ticket. Tickets stand before the first request for their model; a connection
 * holds the rights of the last WIRE_RIGHTS models, at both ends alike. Replies come in the order of
 * requests. */
#ifndef DM_TRANSPORT_TCP_WIRE_H
#define DM_TRANSPORT_TCP_WIRE_H

#include "backend_real/ticket.h"

#define WIRE_TICKET_BYTES  (4 + TICKET_BYTES)
#define WIRE_REQUEST_BYTES 32
#define WIRE_REPLY_BYTES   16
#define WIRE_END_BYTES     8
#define WIRE_RIGHTS        64

struct wire_request {
  uint32_t model, bytes;
  uint64_t offset, id;
};

struct wire_frame {
  enum { WIRE_TICKET, WIRE_REQUEST } kind;
  union {
    struct ticket ticket;
    struct wire_request request;
  };
};

struct wire_reply {
  uint32_t bytes;
  uint64_t id;
};

/* Of what a reader sent: the bytes that the first frame takes, 0 = more are needed, -1 = malformed (unknown
 * kind; a request of 0 or over READ_BYTES_MAX bytes, or past the end of all numbers). */
int wire_frame_parse(const uint8_t *data, size_t size, struct wire_frame *frame);
void wire_request_put(const struct wire_request *request, uint8_t wire[WIRE_REQUEST_BYTES]);
void wire_ticket_put(const struct ticket_secret *secret, uint32_t reader, uint32_t shelf, uint32_t model,
                     uint64_t serial, uint8_t wire[WIRE_TICKET_BYTES]);

void wire_reply_put(const struct wire_reply *reply, uint8_t wire[WIRE_REPLY_BYTES]);
/* FALSE: malformed, or not an answer to `asked` (another id, another length than asked for or 0). */
gboolean wire_reply_parse(const uint8_t wire[WIRE_REPLY_BYTES], const struct wire_request *asked,
                          struct wire_reply *reply);
void wire_end_put(gboolean good, uint8_t wire[WIRE_END_BYTES]);
gboolean wire_end_parse(const uint8_t wire[WIRE_END_BYTES], gboolean *good);

/* The models that a connection may read. */
struct wire_rights {
  uint32_t model[WIRE_RIGHTS];
  uint32_t count, next;
};

gboolean wire_rights_have(const struct wire_rights *rights, uint32_t model);
/* The oldest right goes where there are WIRE_RIGHTS; one that is there already stays where it is. */
void wire_rights_add(struct wire_rights *rights, uint32_t model);

#endif
