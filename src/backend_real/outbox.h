/* What goes to one peer of the control plane: frames in order, messages gathered in batches, and a window.
 *
 * At most WINDOW_FRAMES frames are on their way (sent, and not told as read by the peer's own frames); what
 * comes more waits here, the messages of it in ever larger batches, up to OUTBOX_BYTES_MAX. So a peer's
 * memory here is bounded by our own count, and nothing is ever dropped: one that does not read is lost. */
#ifndef DM_OUTBOX_H
#define DM_OUTBOX_H

#include "backend_real/control_frame.h"

#define WINDOW_FRAMES    64
#define OUTBOX_BYTES_MAX (16U << 20)

/* What a broken connection's owner is told. */
#define PEER_GONE  "the connection broke off"
#define PEER_STUCK "it does not read what it is sent"

struct outbox;

/* routing: the peer's routing id at a ROUTER socket, copied; NULL with size 0 at a DEALER. */
struct outbox *outbox_new(void *socket, const void *routing, size_t size);
void outbox_free(struct outbox *outbox);

/* The frame waits for outbox_flush. FALSE: too much waits already. */
gboolean outbox_frame(struct outbox *outbox, enum frame_kind kind, const void *data, size_t size);
gboolean outbox_message(struct outbox *outbox, uint32_t run, const struct message *message);

/* A frame of the peer has come. FALSE: it claims to have read what was never sent. */
gboolean outbox_heard(struct outbox *outbox, const struct frame *frame);
/* There is something to send, or much to tell. */
gboolean outbox_pending(const struct outbox *outbox);
/* Sends what the window allows. NULL = good, else PEER_GONE or PEER_STUCK. */
const char *outbox_flush(struct outbox *outbox);
/* All of it, whatever the window: last words before the socket is closed. */
void outbox_flush_all(struct outbox *outbox);
/* A sign of life, to see whether the connection is there. */
const char *outbox_probe(struct outbox *outbox);
/* Forgets what waits. */
void outbox_clear(struct outbox *outbox);

#endif
