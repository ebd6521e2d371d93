/* Reads of RC lines: posted, landed, failed; see verbs_rc.h.
 *
 * A queue pair ends its work requests in order, so a completion says that all before it have landed too, and
 * an error says which is the first that has not. A line that broke is destroyed, not drained: once
 * ibv_destroy_qp has returned, nothing lands for it any more, whatever its driver does about flushing.
 * Completions of destroyed queue pairs may still lie in the queue; their generation tells. */
#include "backend_real/verbs_rc.h"

#define POLL_BATCH 32

/* wr_id: slot 16 bits, generation 32 bits, number of the read (modulo) 16 bits. */
static uint64_t work_id(const struct rc_line *line, uint64_t number)
{
  return (uint64_t)line->slot << 48 | (uint64_t)line->generation << 16 | (number & 0xffff);
}

static struct rc_line *line_of(const struct rc_end *end, uint64_t id)
{
  uint32_t slot = (uint32_t)(id >> 48);
  struct rc_line *line = slot < end->slots->len ? g_ptr_array_index(end->slots, slot) : NULL;
  return line && line->generation == (uint32_t)(id >> 16) ? line : NULL;
}

/* --- news
 * ----------------------------------------------------------------------------------------------------------*/

static void has_news(struct rc_line *line)
{
  struct rc_end *end = (struct rc_end *)line->base.end;
  if (line->in_news || line->begin == (line->broken ? line->end : line->good))
    return;
  line->in_news = TRUE;
  line->next = NULL;
  *end->tail = line;
  end->tail = &line->next;
}

void rc_forget(struct rc_end *end, struct rc_line *line)
{
  struct rc_line **at = &end->news;
  if (!line->in_news)
    return;
  while (*at != line)
    at = &(*at)->next;
  *at = line->next;
  if (!*at)
    end->tail = at;
  line->in_news = FALSE;
}

void rc_break(struct rc_line *line, const char *why)
{
  if (!line->broken)
    line->broken = why;
  if (line->qp && ibv_destroy_qp(line->qp) != 0)
    g_error("%s: a queue pair cannot be destroyed: %m", line->base.end->name); /* bytes might still land */
  line->qp = NULL;
  if (!((struct rc_end *)line->base.end)->serves)
    has_news(line);
}

void rc_break_all(struct rc_end *end, const char *why)
{
  for (guint i = 0; i < end->slots->len; i++)
    if (g_ptr_array_index(end->slots, i))
      rc_break(g_ptr_array_index(end->slots, i), why);
}

/* --- posting
 * -------------------------------------------------------------------------------------------------------*/

static void load(struct rc_line *line, const struct verbs_read *read, struct rc_burst *burst, uint32_t i)
{
  const struct rc_end *end = (struct rc_end *)line->base.end;
  burst->work[i] = (struct ibv_send_wr){
      .wr_id = work_id(line, line->end),
      .sg_list = burst->piece[i],
      .num_sge = (int)verbs_memory_pieces(end->memory[read->memory], read->to, read->bytes, burst->piece[i]),
      .opcode = IBV_WR_RDMA_READ,
      .send_flags = i % RC_SIGNAL_EVERY == RC_SIGNAL_EVERY - 1 ? IBV_SEND_SIGNALED : 0,
      .wr.rdma = {.remote_addr = read->address, .rkey = read->key}};
  line->tag[line->end++ % RC_DEPTH] = read->tag;
}

void rc_post(struct verbs_line *base, const struct verbs_read *read, uint32_t reads)
{
  struct rc_line *line = (struct rc_line *)base;
  struct rc_burst *burst = &((struct rc_end *)base->end)->burst;
  struct ibv_send_wr *bad;
  if (reads == 0)
    return;
  for (uint32_t i = 0; i < reads; i++) {
    load(line, &read[i], burst, i);
    burst->work[i].next = &burst->work[i + 1];
  }
  burst->work[reads - 1].next = NULL;
  burst->work[reads - 1].send_flags = IBV_SEND_SIGNALED;
  if (line->qp && ibv_post_send(line->qp, burst->work, &bad) != 0)
    rc_break(line, "its queue pair takes no reads");
  has_news(line); /* of a line that was broken already */
}

/* --- completions
 * ---------------------------------------------------------------------------------------------------*/

static void complete(struct rc_end *end, const struct ibv_wc *wc)
{
  struct rc_line *line = line_of(end, wc->wr_id);
  if (!line || line->broken)
    return;
  /* Fewer than RC_DEPTH are under way, so 16 bits of the number tell all of it. */
  uint64_t number = line->good + ((wc->wr_id - line->good) & 0xffff);
  if (number >= line->end) {
    rc_break(line, "its queue pair ended a read that was not posted");
  } else if (wc->status == IBV_WC_SUCCESS) {
    line->good = number + 1;
    has_news(line);
  } else {
    line->good = number;
    rc_break(line, ibv_wc_status_str(wc->status));
  }
}

static uint32_t tell(struct rc_end *end, struct verbs_done *done, uint32_t room)
{
  uint32_t told = 0;
  while (end->news && told < room) {
    struct rc_line *line = end->news;
    uint64_t until = line->broken ? line->end : line->good;
    for (; line->begin < until && told < room; line->begin++)
      done[told++] =
          (struct verbs_done){&line->base, line->tag[line->begin % RC_DEPTH], line->begin < line->good};
    if (line->begin == until)
      rc_forget(end, line);
  }
  return told;
}

uint32_t rc_poll(struct verbs_end *base, struct verbs_done *done, uint32_t room, gboolean *more)
{
  struct rc_end *end = (struct rc_end *)base;
  struct ibv_wc wc[POLL_BATCH];
  uint32_t told = tell(end, done, room);
  *more = TRUE;
  if (told == room)
    return told;
  int count = ibv_poll_cq(end->cq, POLL_BATCH, wc);
  if (count < 0)
    rc_break_all(end, "its NIC's completion queue is broken");
  for (int i = 0; i < count; i++)
    complete(end, &wc[i]);
  told += tell(end, done + told, room - told);
  *more = count > 0 || end->news;
  return told;
}

void rc_arm(struct verbs_end *base)
{
  struct rc_end *end = (struct rc_end *)base;
  if (ibv_req_notify_cq(end->cq, 0) != 0)
    rc_break_all(end, "its NIC's completion queue tells nothing any more");
}
