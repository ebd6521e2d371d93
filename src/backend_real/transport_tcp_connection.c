/* One connection to a TCP shelf: takes frames in, answers requests in their order. */
#include <errno.h>
#include <string.h>

#include "backend_real/transport_tcp_shelf.h"

#ifndef SHELF_TURN
#define SHELF_TURN READ_BYTES_MAX
#endif
#define TURN_BYTES SHELF_TURN /* that one connection may send before others have their turn */
#define PIECES     64         /* of memory, in one call */

static const uint8_t nothing[65536]; /* sent in place of what is no longer served */

/* How a step of a turn ended. */
enum step { STEP_ON, STEP_BLOCKED, STEP_LATER, STEP_OVER };

/* An answer is one string of bytes: head, payload, end; or a head alone. */
static uint64_t payload_end(const struct connection *c)
{
  return WIRE_REPLY_BYTES + c->promised;
}

static uint64_t answer_end(const struct connection *c)
{
  return payload_end(c) + (c->promised ? WIRE_END_BYTES : 0);
}

/* Before the first byte of an answer: what it will be. FALSE: a breach. */
static gboolean decide(struct connection *c)
{
  struct iovec piece;
  uint32_t pieces;
  switch (served_find(c->shelf->served, c->request.model, c->request.offset, c->request.bytes,
                      c->shelf->memory.base, &piece, 1, &pieces)) {
  case SERVED_HERE:
    c->promised = c->request.bytes;
    return TRUE;
  case SERVED_NOT_HERE:
    c->promised = 0;
    return TRUE;
  default:
    return FALSE;
  }
}

/* The rest of the payload, as far as one call goes: where it is served, or zeros once it is not. */
static uint32_t gather_payload(struct connection *c, struct iovec *piece)
{
  if (c->sent >= payload_end(c))
    return 0;
  uint64_t done = c->sent > WIRE_REPLY_BYTES ? c->sent - WIRE_REPLY_BYTES : 0, left = c->promised - done;
  uint32_t pieces = 0;
  if (left > 0 && !c->given_up)
    c->given_up = served_find(c->shelf->served, c->request.model, c->request.offset + done, left,
                              c->shelf->memory.base, piece, PIECES, &pieces) != SERVED_HERE;
  if (left > 0 && c->given_up) {
    pieces = 1;
    piece[0] = (struct iovec){(void *)nothing, MIN(left, sizeof nothing)};
  }
  return pieces;
}

static uint64_t total(const struct iovec *piece, uint32_t pieces)
{
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < pieces; i++)
    bytes += piece[i].iov_len;
  return bytes;
}

/* The rest of the answer, as far as one call goes, into piece[PIECES + 2]. head and end hold what is not in
 * memory. */
static uint32_t gather_answer(struct connection *c, uint8_t *head, uint8_t *end, struct iovec *piece)
{
  uint32_t pieces = c->sent < WIRE_REPLY_BYTES;
  if (pieces) {
    wire_reply_put(&(struct wire_reply){c->promised, c->request.id}, head);
    piece[0] = (struct iovec){head + c->sent, WIRE_REPLY_BYTES - c->sent};
  }
  pieces += gather_payload(c, piece + pieces);
  uint64_t at = c->sent + total(piece, pieces);
  if (c->promised && at >= payload_end(c)) {
    wire_end_put(!c->given_up, end);
    piece[pieces++] = (struct iovec){end + (at - payload_end(c)), answer_end(c) - at};
  }
  return pieces;
}

/* Leaves the first `limit` bytes of pieces; returns how many pieces these are. */
static uint32_t cut_pieces(struct iovec *piece, uint32_t pieces, uint64_t limit)
{
  for (uint32_t i = 0; i < pieces; i++) {
    if (piece[i].iov_len >= limit) {
      piece[i].iov_len = limit;
      return i + 1;
    }
    limit -= piece[i].iov_len;
  }
  return pieces;
}

/* Sends up to `limit` bytes of the answer; *asked receives what it tried. -1: errno, 0: a breach. No bytes
 * stop being served while they are copied to the socket. */
static ssize_t send_answer(struct connection *c, uint64_t limit, uint64_t *asked)
{
  uint8_t head[WIRE_REPLY_BYTES], end[WIRE_END_BYTES];
  struct iovec piece[PIECES + 2];
  ssize_t sent = 0;
  pthread_rwlock_rdlock(&c->shelf->serving);
  if (c->sent > 0 || decide(c)) {
    uint32_t pieces = gather_answer(c, head, end, piece);
    pieces = cut_pieces(piece, pieces, limit);
    *asked = total(piece, pieces);
    sent = sendmsg(c->pollee.fd, &(struct msghdr){.msg_iov = piece, .msg_iovlen = pieces}, MSG_NOSIGNAL);
  }
  pthread_rwlock_unlock(&c->shelf->serving);
  return sent;
}

static void count_sent(struct connection *c, uint64_t bytes)
{
  uint64_t begin = WIRE_REPLY_BYTES, end = payload_end(c), to = c->sent + bytes;
  uint64_t payload = CLAMP(to, begin, end) - CLAMP(c->sent, begin, end);
  __atomic_fetch_add(&c->shelf->bytes, payload, __ATOMIC_RELAXED);
  c->sent = to;
}

static enum step step_over(struct connection *c, const char *why)
{
  shelf_close(c, why);
  return STEP_OVER;
}

static enum step answer(struct connection *c, uint64_t *budget, gint64 *again_ns)
{
  uint64_t limit = TURN_BYTES + WIRE_REPLY_BYTES + WIRE_END_BYTES, asked = 0;
  struct pace *pace = c->shelf->out;
  if (pace && !(limit = pace_take(pace, limit, poller_clock(), again_ns)))
    return STEP_LATER;
  ssize_t sent = send_answer(c, limit, &asked);
  int error = errno;
  if (pace)
    pace_return(pace, limit - MAX(sent, 0));
  if (sent == 0)
    return step_over(c, "asks for bytes that were never served");
  if (sent < 0 && (error == EAGAIN || error == EINTR))
    return error == EAGAIN ? STEP_BLOCKED : STEP_ON;
  if (sent < 0)
    return step_over(c, NULL);
  count_sent(c, sent);
  *budget -= MIN(*budget, (uint64_t)sent);
  c->answering = c->sent < answer_end(c);
  /* A socket that took only a part is full, and its edge is set (epoll(7)). */
  return (uint64_t)sent < asked ? STEP_BLOCKED : STEP_ON;
}

static enum step take_frame(struct connection *c, const struct wire_frame *frame)
{
  if (frame->kind == WIRE_TICKET) {
    const char *why = shelf_check_ticket(c->shelf, c, &frame->ticket);
    return why ? step_over(c, why) : STEP_ON;
  }
  if (!wire_rights_have(&c->rights, frame->request.model))
    return step_over(c, "asks for a model for which it has no ticket");
  c->request = frame->request;
  c->answering = TRUE;
  c->given_up = FALSE;
  c->sent = 0;
  return STEP_ON;
}

/* Reads what there is. *drained: the socket had no more than that. */
static enum step take_input(struct connection *c, gboolean *drained, gint64 *again_ns)
{
  if (*drained)
    return STEP_BLOCKED;
  memmove(c->input, c->input + c->input_begin, c->input_end - c->input_begin);
  c->input_end -= c->input_begin;
  c->input_begin = 0;
  uint64_t room = sizeof c->input - c->input_end;
  struct pace *pace = c->shelf->in;
  if (pace && !(room = pace_take(pace, room, poller_clock(), again_ns)))
    return STEP_LATER;
  ssize_t got = recv(c->pollee.fd, c->input + c->input_end, room, 0);
  int error = errno;
  if (pace)
    pace_return(pace, room - MAX(got, 0));
  if (got < 0 && (error == EAGAIN || error == EINTR))
    return error == EAGAIN ? STEP_BLOCKED : STEP_ON;
  if (got <= 0)
    return step_over(c, NULL);
  c->input_end += got;
  *drained = (uint64_t)got < room && !c->pollee.hung_up;
  return STEP_ON;
}

static enum step take_in(struct connection *c, gboolean *drained, gint64 *again_ns)
{
  struct wire_frame frame;
  int size = wire_frame_parse(c->input + c->input_begin, c->input_end - c->input_begin, &frame);
  if (size < 0)
    return step_over(c, "sent what is neither a ticket nor a request");
  if (size == 0)
    return take_input(c, drained, again_ns);
  c->input_begin += size;
  return take_frame(c, &frame);
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
    switch (c->answering ? answer(c, &budget, again_ns) : take_in(c, &drained, again_ns)) {
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
