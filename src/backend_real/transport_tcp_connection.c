/* One connection to a TCP shelf: takes frames in, answers requests in their order. */
#include <errno.h>
#include <string.h>

#include "backend_real/transport_tcp_shelf.h"

#define TURN_BYTES READ_BYTES_MAX /* that one connection may send before others have their turn */
#define PIECES     64             /* of memory, in one call */

static const uint8_t nothing[65536]; /* sent in place of what is no longer served */

/* How a step of a turn ended. */
enum step { STEP_ON, STEP_BLOCKED, STEP_LATER, STEP_OVER };

/* What one call sends: head and end of answers, and pieces of memory between them. */
struct shipment {
  struct iovec piece[PIECES + 2];
  uint32_t pieces;
  uint64_t bytes;
  uint8_t frames[CONNECTION_ANSWERS][WIRE_REPLY_BYTES + WIRE_END_BYTES];
};

static struct answer *answer_at(struct connection *c, uint32_t i)
{
  return &c->answer[(c->first_answer + i) % CONNECTION_ANSWERS];
}

/* An answer is one string of bytes: head, payload, end; or a head alone. */
static uint64_t payload_end(const struct answer *a)
{
  return WIRE_REPLY_BYTES + a->promised;
}

static uint64_t answer_end(const struct answer *a)
{
  return payload_end(a) + (a->promised ? WIRE_END_BYTES : 0);
}

/* Before the first byte of an answer: what it will be. FALSE: a breach. */
static gboolean decide(struct connection *c, struct answer *a)
{
  struct iovec piece;
  uint32_t pieces;
  enum served_answer found = served_find(c->shelf->served, a->request.model, a->request.offset,
                                         a->request.bytes, c->shelf->memory.base, &piece, 1, &pieces);
  a->promised = found == SERVED_HERE ? a->request.bytes : 0;
  a->decided = found != SERVED_NEVER;
  return a->decided;
}

static void load(struct shipment *shipment, const void *data, uint64_t bytes)
{
  shipment->piece[shipment->pieces++] = (struct iovec){(void *)data, bytes};
  shipment->bytes += bytes;
}

/* The payload from its byte `done` on, as far as there is room: where it is served, or zeros once it is not.
 */
static void load_payload(struct connection *c, struct answer *a, uint64_t done, struct shipment *shipment)
{
  uint64_t left = a->promised - done;
  uint32_t pieces = 0, room = PIECES - shipment->pieces;
  struct iovec *piece = shipment->piece + shipment->pieces;
  if (!a->given_up)
    a->given_up = served_find(c->shelf->served, a->request.model, a->request.offset + done, left,
                              c->shelf->memory.base, piece, room, &pieces) != SERVED_HERE;
  if (a->given_up)
    load(shipment, nothing, MIN(left, sizeof nothing));
  for (uint32_t i = 0; !a->given_up && i < pieces; i++)
    load(shipment, piece[i].iov_base, piece[i].iov_len);
}

/* The answer from its byte `from` on, as far as there is room. TRUE: all of it. */
static gboolean load_answer(struct connection *c, struct answer *a, uint64_t from, uint8_t *frames,
                            struct shipment *shipment)
{
  uint64_t before = shipment->bytes;
  if (from < WIRE_REPLY_BYTES) {
    wire_reply_put(&(struct wire_reply){a->promised, a->request.id}, frames);
    load(shipment, frames + from, WIRE_REPLY_BYTES - from);
  }
  if (from < payload_end(a) && a->promised)
    load_payload(c, a, from > WIRE_REPLY_BYTES ? from - WIRE_REPLY_BYTES : 0, shipment);
  uint64_t at = from + shipment->bytes - before;
  if (a->promised && at >= payload_end(a)) {
    uint8_t *end = frames + WIRE_REPLY_BYTES;
    wire_end_put(!a->given_up, end);
    load(shipment, end + (at - payload_end(a)), answer_end(a) - at);
    at = answer_end(a);
  }
  return at == answer_end(a);
}

/* When the answer begins to go, if that is later than now; or 0. It is put on the link when its turn in the
 * connection comes, so that connections share the link answer by answer. */
static gint64 waits_until(const struct connection *c, struct answer *a)
{
  uint64_t bytes = WIRE_REPLY_BYTES + a->request.bytes + WIRE_END_BYTES;
  if (!c->shelf->out)
    return 0;
  if (!a->begin_ns)
    a->begin_ns = pace_put(c->shelf->out, bytes, a->came_ns).begin_ns;
  return a->begin_ns > poller_clock() ? a->begin_ns : 0;
}

/* As many answers as may go now, in one call of about `limit` bytes. FALSE: the first is a breach. */
static gboolean load_answers(struct connection *c, uint64_t limit, struct shipment *shipment)
{
  shipment->pieces = 0;
  shipment->bytes = 0;
  for (uint32_t i = 0; i < c->answers; i++) {
    struct answer *a = answer_at(c, i);
    if (i > 0 && waits_until(c, a))
      return TRUE;
    if (!a->decided && !decide(c, a))
      return i > 0;
    /* A payload in one piece takes three with head and end. */
    if (shipment->bytes >= limit || shipment->pieces + 3 > PIECES ||
        !load_answer(c, a, i == 0 ? c->sent : 0, shipment->frames[i], shipment))
      return TRUE;
  }
  return TRUE;
}

/* Leaves the first `limit` bytes. */
static void cut(struct shipment *shipment, uint64_t limit)
{
  for (; shipment->bytes > limit; shipment->pieces--) {
    struct iovec *last = &shipment->piece[shipment->pieces - 1];
    uint64_t over = shipment->bytes - limit;
    if (over < last->iov_len) {
      last->iov_len -= over;
      shipment->bytes = limit;
      return;
    }
    shipment->bytes -= last->iov_len;
  }
}

/* Sends up to `limit` bytes of answers; *asked receives what it tried. -1: errno, 0: a breach. No bytes stop
 * being served while they are copied to the socket. */
static ssize_t send_answers(struct connection *c, uint64_t limit, uint64_t *asked)
{
  struct shipment shipment;
  ssize_t sent = 0;
  pthread_rwlock_rdlock(&c->shelf->serving);
  if (load_answers(c, limit, &shipment)) {
    cut(&shipment, limit);
    *asked = shipment.bytes;
    sent = sendmsg(c->pollee.fd, &(struct msghdr){.msg_iov = shipment.piece, .msg_iovlen = shipment.pieces},
                   MSG_NOSIGNAL);
  }
  pthread_rwlock_unlock(&c->shelf->serving);
  return sent;
}

/* Payload between two places of an answer. */
static uint64_t payload_between(const struct answer *a, uint64_t from, uint64_t to)
{
  uint64_t begin = WIRE_REPLY_BYTES, end = payload_end(a);
  return CLAMP(to, begin, end) - CLAMP(from, begin, end);
}

/* Answers that are out make room for others. */
static void count_sent(struct connection *c, uint64_t bytes)
{
  uint64_t payload = 0;
  while (bytes > 0) {
    const struct answer *a = answer_at(c, 0);
    uint64_t step = MIN(bytes, answer_end(a) - c->sent);
    payload += payload_between(a, c->sent, c->sent + step);
    c->sent += step;
    bytes -= step;
    if (c->sent == answer_end(a)) {
      c->first_answer = (c->first_answer + 1) % CONNECTION_ANSWERS;
      c->answers--;
      c->sent = 0;
    }
  }
  __atomic_fetch_add(&c->shelf->bytes, payload, __ATOMIC_RELAXED);
}

static enum step step_over(struct connection *c, const char *why)
{
  shelf_close(c, why);
  return STEP_OVER;
}

static enum step ship(struct connection *c, uint64_t *budget, gint64 *again_ns)
{
  uint64_t limit = TURN_BYTES + WIRE_REPLY_BYTES + WIRE_END_BYTES, asked = 0;
  if (c->sent == 0 && (*again_ns = waits_until(c, answer_at(c, 0))))
    return STEP_LATER;
  ssize_t sent = send_answers(c, limit, &asked);
  int error = errno;
  if (sent == 0)
    return step_over(c, "asks for bytes that were never served");
  if (sent < 0 && (error == EAGAIN || error == EINTR))
    return error == EAGAIN ? STEP_BLOCKED : STEP_ON;
  if (sent < 0)
    return step_over(c, NULL);
  count_sent(c, sent);
  *budget -= MIN(*budget, (uint64_t)sent);
  /* A socket that took only a part is full, and its edge is set (epoll(7)). */
  return (uint64_t)sent < asked ? STEP_BLOCKED : STEP_ON;
}

static enum step take_frame(struct connection *c, const struct wire_frame *frame, uint64_t bytes)
{
  struct pace *in = c->shelf->in;
  gint64 came_ns = in ? pace_put(in, bytes, poller_clock()).end_ns : 0;
  if (frame->kind == WIRE_TICKET) {
    const char *why = shelf_check_ticket(c->shelf, c, &frame->ticket);
    return why ? step_over(c, why) : STEP_ON;
  }
  if (!wire_rights_have(&c->rights, frame->request.model))
    return step_over(c, "asks for a model for which it has no ticket");
  *answer_at(c, c->answers++) = (struct answer){.request = frame->request, .came_ns = came_ns};
  return STEP_ON;
}

/* Reads what there is. *drained: the socket had no more than that. */
static enum step take_input(struct connection *c, gboolean *drained)
{
  if (*drained)
    return STEP_BLOCKED;
  memmove(c->input, c->input + c->input_begin, c->input_end - c->input_begin);
  c->input_end -= c->input_begin;
  c->input_begin = 0;
  uint64_t room = sizeof c->input - c->input_end;
  ssize_t got = recv(c->pollee.fd, c->input + c->input_end, room, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR))
    return errno == EAGAIN ? STEP_BLOCKED : STEP_ON;
  if (got <= 0)
    return step_over(c, NULL);
  c->input_end += got;
  *drained = (uint64_t)got < room && !c->pollee.hung_up;
  return STEP_ON;
}

/* Takes in the frames that are there, until there are answers enough for one call. Reads more of them only
 * where there is nothing to answer now, so that a reader that does not read its answers is not read from. */
static enum step take_in(struct connection *c, gboolean *drained)
{
  while (c->answers < CONNECTION_ANSWERS) {
    struct wire_frame frame;
    int size = wire_frame_parse(c->input + c->input_begin, c->input_end - c->input_begin, &frame);
    if (size < 0)
      return step_over(c, "sent what is neither a ticket nor a request");
    if (size == 0 && c->answers && (c->sent || !waits_until(c, answer_at(c, 0))))
      return STEP_ON;
    c->input_begin += size;
    enum step step = size == 0 ? take_input(c, drained) : take_frame(c, &frame, size);
    if (step != STEP_ON)
      return step;
  }
  return STEP_ON;
}

enum turn connection_turn(struct connection *c, gint64 *again_ns)
{
  uint64_t budget = TURN_BYTES;
  gboolean drained = FALSE;
  if (g_atomic_int_get(&c->doomed)) {
    shelf_close(c, NULL);
    return TURN_OVER;
  }
  while (budget > 0) {
    enum step step = take_in(c, &drained);
    if ((step == STEP_ON || step == STEP_BLOCKED) && c->answers)
      step = ship(c, &budget, again_ns);
    switch (step) {
    case STEP_ON:
      break;
    case STEP_BLOCKED:
      return TURN_BLOCKED;
    case STEP_LATER:
      return TURN_LATER;
    case STEP_OVER:
      return TURN_OVER;
    }
  }
  return TURN_AGAIN;
}
