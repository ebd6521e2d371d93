/* The thread of a shelf's SRD end that answers those that ask by datagrams; see srd_serve.h. */
#define G_LOG_DOMAIN "transport"

#include "backend_real/srd_serve.h"

#include <poll.h>
#include <sched.h>

#include "backend_real/bell.h"
#include "core/error.h"

#define POLL_BATCH 32
#define SEND_BATCH 64

static struct srd_end *end_of(const struct srd_line *line)
{
  return (struct srd_end *)line->base.end;
}

static struct srd_serving *serving_of(const struct srd_line *line)
{
  return end_of(line)->serving;
}

static uint8_t *head(const struct srd_serving *s, uint32_t slot, uint32_t index)
{
  return s->block + ((size_t)slot * SRD_LINE_HEADS + index) * SRD_HEAD_STRIDE;
}

static gboolean post_receive(struct srd_line *line, uint32_t index)
{
  const struct srd_serving *s = serving_of(line);
  struct srd_piece_at piece = {(uint64_t)(uintptr_t)head(s, line->slot, index), SRD_HEAD_STRIDE,
                               s->block_key};
  uint64_t id = SRD_WORK_ID(SRD_WORK_RECEIVE, line->generation, line->slot << 16 | index);
  return end_of(line)->ops->receive(line->qp, id, &piece);
}

static void received(struct srd_line *line, uint32_t index, uint32_t bytes)
{
  struct srd_serving *s = serving_of(line);
  uint32_t visitor = NO_INDEX;
  enum srd_taken taken =
      srd_answers_take(s->answers, head(s, line->slot, index), MIN(bytes, SRD_HEAD_STRIDE), &visitor);
  if (taken == SRD_EXCESS && visitor == line->visitor)
    srd_serve_break_line(line, "it asked for more than it may");
  else if (taken != SRD_TAKEN)
    g_info("%s: refused a datagram of line %u", s->end->base.name, line->slot);
  if (line->qp && !post_receive(line, index))
    srd_serve_break_line(line, "its queue pair takes no receive buffers");
}

static void complete(struct srd_serving *s, const struct srd_completion *c)
{
  uint32_t slot = SRD_WORK_INDEX(c->id) >> 16, index = SRD_WORK_INDEX(c->id) & 0xffff;
  struct srd_desk *desk = &s->desk[slot];
  struct srd_line *line = desk->line;
  if (!line || (line->generation & 0xfffffff) != SRD_WORK_GENERATION(c->id))
    return;
  if (c->status != SRD_OK) {
    srd_serve_break_line(line, c->why);
  } else if (SRD_WORK_KIND(c->id) == SRD_WORK_RECEIVE) {
    received(line, index, c->bytes);
  } else {
    srd_serve_release(s, desk, index);
    srd_answers_hold(s->answers, line->visitor, FALSE);
  }
}

static gboolean take_completions(struct srd_serving *s)
{
  struct srd_completion completion[POLL_BATCH];
  int count = s->end->ops->poll(s->end->device, completion, POLL_BATCH);
  for (int i = 0; i < count; i++)
    complete(s, &completion[i]);
  if (count < 0)
    srd_serve_break_all(s, "its NIC's completion queue is broken");
  return count > 0;
}

static void send_piece(struct srd_serving *s, struct srd_line *line, const struct srd_piece *piece)
{
  struct srd_desk *desk = &s->desk[line->slot];
  uint32_t index = desk->free;
  uint8_t *wire = head(s, line->slot, SRD_SERVE_RECEIVES + index);
  struct srd_exposure *e = srd_serve_find(s, piece);
  size_t size = e ? srd_answers_send(s->answers, piece, wire) : srd_answers_refuse(s->answers, piece, wire);
  struct srd_work work = {
      .id = SRD_WORK_ID(SRD_WORK_MESSAGE, line->generation, line->slot << 16 | index),
      .to = line->way->address,
      .qp = line->peer.qp,
      .qkey = line->peer.qkey,
      .pieces = e ? 2 : 1,
      .piece = {{(uint64_t)(uintptr_t)wire, (uint32_t)size, s->block_key},
                {piece->address, piece->bytes, e ? e->local_key : 0}},
  };
  desk->free = desk->sent[index].next;
  desk->sent[index] = (struct srd_sent){.here = TRUE, .of = e};
  if (e)
    e->sending++;
  if (!s->end->ops->send(line->qp, &work, 1))
    srd_serve_break_line(line, "its queue pair takes no datagrams");
}

static gboolean send_pieces(struct srd_serving *s)
{
  struct srd_piece piece;
  uint32_t sent = 0;
  while (sent < SEND_BATCH && srd_answers_next(s->answers, &piece)) {
    struct srd_line *line = s->visitor[piece.reader];
    if (s->desk[line->slot].free == NO_INDEX) {
      srd_answers_hold(s->answers, piece.reader, TRUE);
      continue;
    }
    send_piece(s, line, &piece);
    sent++;
  }
  return sent > 0;
}

/* Without the lock. */
static void sleep_on(struct srd_serving *s)
{
  struct pollfd fd[] = {{.fd = s->end->ops->completion_fd(s->end->device), .events = POLLIN},
                        {.fd = s->wake, .events = POLLIN}};
  poll(fd, G_N_ELEMENTS(fd), -1);
}

static gpointer serve(gpointer data)
{
  struct srd_serving *s = data;
  g_mutex_lock(&s->lock);
  while (!s->stop) {
    gboolean busy = take_completions(s);
    busy |= send_pieces(s);
    if (!busy && !s->armed) {
      /* What came in between is not told: once more round. */
      s->armed = busy = s->end->ops->arm(s->end->device);
      if (!busy)
        srd_serve_break_all(s, "its NIC's completion queue tells nothing any more");
    }
    g_mutex_unlock(&s->lock);
    if (!busy)
      sleep_on(s);
    while (g_atomic_int_get(&s->callers) > 0)
      sched_yield();
    g_mutex_lock(&s->lock);
    if (!busy) {
      bell_silence(s->wake);
      s->end->ops->drain(s->end->device);
      s->armed = FALSE;
    }
  }
  g_mutex_unlock(&s->lock);
  return NULL;
}

/* --- its beginning */

static gboolean start(struct srd_serving *s, GError **error)
{
  struct srd_end *end = s->end;
  size_t size = (size_t)end->lines_max * SRD_LINE_HEADS * SRD_HEAD_STRIDE;
  uint32_t key;
  if (s->thread)
    return TRUE;
  if (!s->block)
    s->block = g_aligned_alloc0(1, size, ARENA_ALIGN);
  if (!s->region)
    s->region = end->ops->region_new(end->device, s->block, size, FALSE, &s->block_key, &key, error);
  if (s->region)
    s->thread = g_thread_try_new("srd-serve", serve, s, error);
  return s->thread != NULL;
}

static gboolean meet(struct srd_serving *s, struct srd_line *line, GError **error)
{
  struct srd_visitor visitor = {
      .token = line->peer.token,
      .share = line->peer.share,
      .segment = srd_segment_bytes(MIN(line->own.datagram_max, line->peer.datagram_max)),
  };
  if (!start(s, error))
    return FALSE;
  for (uint32_t i = 0; i < SRD_SERVE_RECEIVES; i++)
    if (!post_receive(line, i)) {
      g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: a queue pair takes no receive buffers",
                  s->end->base.name);
      return FALSE;
    }
  srd_answers_meet(s->answers, line->visitor, &visitor);
  return TRUE;
}

gboolean srd_serve_meet(struct srd_line *line, GError **error)
{
  srd_serve_enter(serving_of(line));
  gboolean good = meet(serving_of(line), line, error);
  srd_serve_leave(serving_of(line));
  return good;
}
