/* Frames to one peer; see outbox.h. */
#include "backend_real/outbox.h"

#include <errno.h>
#include <string.h>
#include <zmq.h>

enum {
  BATCH_BYTES_FIRST = 1024,
  BATCH_BYTES_MAX = FRAME_HEADER + 65536,
  TELL_FRAMES = WINDOW_FRAMES / 4, /* read and not told: more of them are worth a frame of their own */
  ROUTING_BYTES_MAX = 255,
};

/* A frame that is closed and waits. */
struct waiting {
  enum frame_kind kind;
  uint8_t *bytes; /* its header is written when it goes */
  size_t size;
};

struct outbox {
  void *socket;
  uint8_t routing[ROUTING_BYTES_MAX];
  size_t routing_size;
  uint8_t *batch; /* the frame that is open for messages; of no bytes where none is */
  size_t batch_bytes, batch_room;
  uint32_t batch_run;
  GArray *waiting; /* of struct waiting; those before `first` are sent */
  guint first;
  size_t waiting_bytes; /* of them */
  uint32_t sent, acked; /* frames */
  uint32_t read, told;  /* of the peer's frames */
};

struct outbox *outbox_new(void *socket, const void *routing, size_t size)
{
  struct outbox *outbox = g_new0(struct outbox, 1);
  g_assert(size <= ROUTING_BYTES_MAX);
  outbox->socket = socket;
  outbox->routing_size = size;
  if (size > 0)
    memcpy(outbox->routing, routing, size);
  outbox->waiting = g_array_new(FALSE, FALSE, sizeof(struct waiting));
  return outbox;
}

void outbox_clear(struct outbox *outbox)
{
  for (guint i = outbox->first; i < outbox->waiting->len; i++)
    g_free(g_array_index(outbox->waiting, struct waiting, i).bytes);
  g_array_set_size(outbox->waiting, 0);
  outbox->first = 0;
  outbox->waiting_bytes = 0;
  outbox->batch_bytes = 0;
}

void outbox_free(struct outbox *outbox)
{
  if (!outbox)
    return;
  outbox_clear(outbox);
  g_array_unref(outbox->waiting);
  g_free(outbox->batch);
  g_free(outbox);
}

/* --- filling
 * -----------------------------------------------------------------------------------------------------*/

/* A new frame behind the others; its payload is the caller's to write. NULL: no room. */
static uint8_t *append_frame(struct outbox *outbox, enum frame_kind kind, size_t size)
{
  struct waiting frame = {.kind = kind, .size = FRAME_HEADER + size};
  if (outbox->waiting_bytes + frame.size > OUTBOX_BYTES_MAX)
    return NULL;
  frame.bytes = g_malloc(frame.size);
  g_array_append_val(outbox->waiting, frame);
  outbox->waiting_bytes += frame.size;
  return frame.bytes + FRAME_HEADER;
}

static gboolean close_batch(struct outbox *outbox)
{
  if (outbox->batch_bytes == 0)
    return TRUE;
  size_t size = outbox->batch_bytes - FRAME_HEADER;
  uint8_t *payload = append_frame(outbox, FRAME_MESSAGES, size);
  if (!payload)
    return FALSE;
  memcpy(payload, outbox->batch + FRAME_HEADER, size);
  outbox->batch_bytes = 0;
  return TRUE;
}

static void open_batch(struct outbox *outbox, uint32_t run)
{
  if (!outbox->batch) {
    outbox->batch_room = BATCH_BYTES_FIRST;
    outbox->batch = g_malloc(outbox->batch_room);
  }
  outbox->batch_run = run;
  for (int i = 0; i < MESSAGES_HEADER; i++)
    outbox->batch[FRAME_HEADER + i] = (uint8_t)(run >> (8 * i));
  outbox->batch_bytes = FRAME_HEADER + MESSAGES_HEADER;
}

gboolean outbox_frame(struct outbox *outbox, enum frame_kind kind, const void *data, size_t size)
{
  g_assert(size <= frame_payload_max(kind));
  uint8_t *at = close_batch(outbox) ? append_frame(outbox, kind, size) : NULL;
  if (at && size > 0)
    memcpy(at, data, size);
  return at != NULL;
}

gboolean outbox_message(struct outbox *outbox, uint32_t run, const struct message *message)
{
  gboolean full = outbox->batch_bytes + MESSAGE_BYTES_MAX > BATCH_BYTES_MAX;
  if (outbox->batch_bytes > 0 && (full || outbox->batch_run != run) && !close_batch(outbox))
    return FALSE;
  if (outbox->batch_bytes == 0)
    open_batch(outbox, run);
  if (outbox->batch_bytes + MESSAGE_BYTES_MAX > outbox->batch_room) {
    outbox->batch_room = MIN(2 * outbox->batch_room, BATCH_BYTES_MAX);
    outbox->batch = g_realloc(outbox->batch, outbox->batch_room);
  }
  outbox->batch_bytes += message_encode(message, outbox->batch + outbox->batch_bytes);
  return TRUE;
}

/* --- sending
 * -----------------------------------------------------------------------------------------------------*/

gboolean outbox_heard(struct outbox *outbox, const struct frame *frame)
{
  if (frame->read - outbox->acked > outbox->sent - outbox->acked)
    return FALSE;
  outbox->acked = frame->read;
  outbox->read += frame->kind != FRAME_SIGN;
  return TRUE;
}

static gboolean window_is_open(const struct outbox *outbox)
{
  return outbox->sent - outbox->acked < WINDOW_FRAMES;
}

static gboolean must_tell(const struct outbox *outbox)
{
  return outbox->read - outbox->told >= TELL_FRAMES;
}

gboolean outbox_pending(const struct outbox *outbox)
{
  gboolean frames = outbox->first < outbox->waiting->len || outbox->batch_bytes > 0;
  return (frames && window_is_open(outbox)) || must_tell(outbox);
}

/* A signal may end even a call that does not wait. */
static gboolean send_part(void *socket, const void *data, size_t size, int more)
{
  int sent;
  do
    sent = zmq_send(socket, data, size, more | ZMQ_DONTWAIT);
  while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

static const char *send_bytes(struct outbox *outbox, uint8_t *frame, size_t size, enum frame_kind kind)
{
  outbox->told = outbox->read;
  frame_header_write(frame, kind, outbox->read);
  if ((outbox->routing_size == 0 ||
       send_part(outbox->socket, outbox->routing, outbox->routing_size, ZMQ_SNDMORE)) &&
      send_part(outbox->socket, frame, size, 0))
    return NULL;
  return errno == EAGAIN ? PEER_STUCK : PEER_GONE;
}

const char *outbox_probe(struct outbox *outbox)
{
  uint8_t frame[FRAME_HEADER];
  return send_bytes(outbox, frame, sizeof frame, FRAME_SIGN);
}

static const char *send_waiting(struct outbox *outbox, gboolean whatever)
{
  const char *why = NULL;
  while (!why && outbox->first < outbox->waiting->len && (whatever || window_is_open(outbox))) {
    struct waiting *frame = &g_array_index(outbox->waiting, struct waiting, outbox->first++);
    outbox->waiting_bytes -= frame->size;
    outbox->sent++;
    why = send_bytes(outbox, frame->bytes, frame->size, frame->kind);
    g_free(frame->bytes);
  }
  /* Most often all went. Else what went is cut off once it is the larger part: the array stays bounded. */
  if (outbox->first > 0 && 2 * outbox->first >= outbox->waiting->len) {
    g_array_remove_range(outbox->waiting, 0, outbox->first);
    outbox->first = 0;
  }
  return why;
}

static const char *send_batch(struct outbox *outbox)
{
  size_t size = outbox->batch_bytes;
  outbox->batch_bytes = 0;
  outbox->sent++;
  return send_bytes(outbox, outbox->batch, size, FRAME_MESSAGES);
}

/* A batch goes only when nothing waits before it: until then it grows. */
const char *outbox_flush(struct outbox *outbox)
{
  const char *why = send_waiting(outbox, FALSE);
  if (!why && outbox->waiting->len == 0 && window_is_open(outbox) && outbox->batch_bytes > 0)
    why = send_batch(outbox);
  if (!why && must_tell(outbox))
    why = outbox_probe(outbox);
  return why;
}

void outbox_flush_all(struct outbox *outbox)
{
  if (!send_waiting(outbox, TRUE) && outbox->batch_bytes > 0)
    send_batch(outbox);
}
