/* Frames of the control plane as they go over the wire.
 *
 * A frame is one ZeroMQ message part: u32 kind, u32 count of frames that its sender has read of the other end
 * so far (modulo 2^32, FRAME_SIGN not counted), then the payload; all little-endian. Here a peer's bytes
 * become values: whatever is not as it must be has a reason, a text for the log and for the peer. */
#ifndef DM_CONTROL_FRAME_H
#define DM_CONTROL_FRAME_H

#include "backend_real/control.h"

#define FRAME_HEADER     8
#define FRAME_BYTES_MAX  (FRAME_HEADER + 4194304) /* of any kind */
#define CONTROL_PROTOCOL 5                        /* version, of HELLO and WELCOME */
#define MESSAGES_HEADER  4                        /* of FRAME_MESSAGES' payload: u32 run */
#define HELLO_BYTES_MAX  264
#define WELCOME_BYTES    4

struct frame {
  enum frame_kind kind;
  uint32_t read;
  const uint8_t *data; /* payload, in the bytes parsed */
  size_t size;
};

const char *frame_kind_name(enum frame_kind kind);
size_t frame_payload_max(enum frame_kind kind);
void frame_header_write(uint8_t *out, enum frame_kind kind, uint32_t read);
/* NULL = good, else what is wrong. to_hub: which way it came. */
const char *frame_parse(const uint8_t *data, size_t size, gboolean to_hub, struct frame *frame);

size_t hello_encode(const struct hello *hello, uint8_t out[HELLO_BYTES_MAX]);
/* Texts hold printable ASCII without blanks only: they go to logs. */
const char *hello_decode(const uint8_t *data, size_t size, struct hello *hello);
size_t welcome_encode(uint8_t out[WELCOME_BYTES]);
const char *welcome_decode(const uint8_t *data, size_t size);

/* What messages of a connection may be. */
struct message_rules {
  gboolean set; /* else any message is a breach */
  uint32_t run; /* messages of older runs are dropped */
  struct message_limits limits;
};

/* Hands the messages of a payload to `each`, in order, until it returns FALSE. The messages must be such as
 * `from` sends to `to`. NULL = good (or an older run's), else what is wrong; those before it were handed
 * over. */
const char *messages_decode(const uint8_t *data, size_t size, const struct message_rules *rules,
                            enum actor_kind from, enum actor_kind to,
                            gboolean (*each)(void *context, uint32_t run, const struct message *message),
                            void *context);

#endif
