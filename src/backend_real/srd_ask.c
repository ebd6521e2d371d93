/* Reads by datagrams over a reader's SRD queue pair: receive buffers, messages, and the protocol of
 * srd_reader.h between them; see srd_end.h. */
#define G_LOG_DOMAIN "transport"

#include "backend_real/srd_end.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/error.h"

#define NOTES       256 /* requests and credits under way, of all lines */
#define HEAD_STRIDE 64
#define TICK_S      1

/* A request or credit on its way. */
struct note {
  struct srd_line *line; /* NULL: it is gone meanwhile */
  struct srd_way *way;   /* must last as long as the device may look at it; NULL: free */
  uint32_t next;         /* of the free ones */
};

struct srd_asking {
  uint8_t *block; /* receive buffers, then heads of messages */
  struct srd_memory *region;
  uint32_t key, stride;
  int clock;
  struct note note[NOTES];
  uint32_t free;
};

static uint8_t *buffer(const struct srd_asking *a, uint32_t index)
{
  return a->block + (size_t)index * a->stride;
}

static uint8_t *head(const struct srd_end *end, uint32_t index)
{
  return end->asking->block + (size_t)end->receives * end->asking->stride + (size_t)index * HEAD_STRIDE;
}

static gboolean post_receive(struct srd_end *end, uint32_t index)
{
  const struct srd_asking *a = end->asking;
  struct srd_piece_at piece = {(uint64_t)(uintptr_t)buffer(a, index), a->stride, a->key};
  return end->ops->receive(end->qp, SRD_WORK_ID(SRD_WORK_RECEIVE, end->generation, index), &piece);
}

static void free_notes(struct srd_asking *a)
{
  for (uint32_t i = 0; i < NOTES; i++)
    a->note[i] = (struct note){.next = i + 1 < NOTES ? i + 1 : NO_INDEX};
  a->free = 0;
}

gboolean srd_asking_open(struct srd_end *end, GError **error)
{
  if (end->asking)
    return TRUE;
  struct srd_asking *a = g_new0(struct srd_asking, 1);
  uint32_t key;
  a->stride = (end->caps.datagram_max + HEAD_STRIDE - 1) / HEAD_STRIDE * HEAD_STRIDE;
  size_t size = (size_t)end->receives * a->stride + NOTES * HEAD_STRIDE;
  a->block = g_aligned_alloc0(1, size, ARENA_ALIGN);
  free_notes(a);
  a->region = end->ops->region_new(end->device, a->block, size, FALSE, &a->key, &key, error);
  end->asking = a;
  a->clock = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  struct itimerspec second = {.it_interval = {.tv_sec = TICK_S}, .it_value = {.tv_sec = TICK_S}};
  gboolean ticks = a->clock >= 0 && timerfd_settime(a->clock, 0, &second, NULL) == 0;
  if (a->region && ticks && srd_ask_ready(end))
    return TRUE;
  if (a->region)
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: no clock, or its queue pair takes no receive buffers",
                end->base.name);
  srd_asking_close(end);
  return FALSE;
}

void srd_asking_close(struct srd_end *end)
{
  struct srd_asking *a = end->asking;
  if (!a)
    return;
  if (a->region)
    end->ops->region_free(a->region);
  if (a->clock >= 0)
    close(a->clock);
  g_aligned_free(a->block);
  g_free(a);
  end->asking = NULL;
}

gboolean srd_ask_ready(struct srd_end *end)
{
  for (uint32_t i = 0; end->asking && i < end->receives; i++)
    if (!post_receive(end, i))
      return FALSE;
  return TRUE;
}

void srd_ask(struct srd_line *line, const struct verbs_read *read)
{
  struct srd_end *end = (struct srd_end *)line->base.end;
  struct srd_read asked = {
      .key = read->key,
      .bytes = read->bytes,
      .address = read->address,
      .tag = read->tag,
      .place = end->memory[read->memory].base + read->to,
  };
  srd_reader_read(end->reader, line->index, &asked);
}

static struct srd_line *line_of(const struct srd_end *end, uint32_t peer)
{
  for (uint32_t i = 0; i < end->lines_max; i++)
    if (end->line[i] && end->line[i]->index == peer)
      return end->line[i];
  return NULL;
}

/* --- what is sent */

static gboolean send_note(struct srd_end *end, struct srd_line *line, uint32_t index, size_t size)
{
  struct srd_asking *a = end->asking;
  struct srd_work work = {
      .id = SRD_WORK_ID(SRD_WORK_MESSAGE, end->generation, index),
      .to = line->way->address,
      .qp = line->peer.qp,
      .qkey = line->peer.qkey,
      .pieces = 1,
      .piece = {{(uint64_t)(uintptr_t)head(end, index), (uint32_t)size, a->key}},
  };
  a->free = a->note[index].next;
  a->note[index] = (struct note){.line = line, .way = srd_way_use(line->way)};
  end->sends++;
  return end->ops->send(end->qp, &work, 1);
}

void srd_ask_pump(struct srd_end *end)
{
  uint32_t peer;
  size_t size;
  while (end->asking && end->qp && end->sends < end->sends_max && end->asking->free != NO_INDEX &&
         (size = srd_reader_next(end->reader, head(end, end->asking->free), &peer)) > 0)
    if (!send_note(end, line_of(end, peer), end->asking->free, size))
      srd_end_die(end, "its queue pair takes no messages");
}

int srd_ask_clock(const struct srd_end *end)
{
  return end->asking->clock;
}

void srd_ask_tick(struct srd_end *end)
{
  uint64_t ticks;
  if (read(end->asking->clock, &ticks, sizeof ticks) != sizeof ticks)
    return;
  srd_reader_tick(end->reader);
  srd_ask_pump(end);
}

static void free_note(struct srd_end *end, uint32_t index)
{
  struct srd_asking *a = end->asking;
  srd_way_drop(end, a->note[index].way);
  a->note[index] = (struct note){.next = a->free};
  a->free = index;
}

void srd_ask_sent(struct srd_end *end, uint32_t index, enum srd_status status, const char *why)
{
  struct srd_line *line = end->asking->note[index].line;
  end->sends--;
  if (line && line->index != NO_INDEX)
    srd_reader_sent(end->reader, line->index);
  free_note(end, index);
  if (line && status != SRD_OK)
    srd_line_lose(line, why);
}

/* --- what comes */

void srd_ask_received(struct srd_end *end, uint32_t index, uint32_t bytes)
{
  uint32_t peer;
  uint64_t tag;
  enum srd_outcome outcome =
      srd_reader_take(end->reader, buffer(end->asking, index), MIN(bytes, end->asking->stride), &peer, &tag);
  gboolean posted = post_receive(end, index);
  if (outcome == SRD_DONE || outcome == SRD_FAILED)
    srd_tell(line_of(end, peer), tag, outcome == SRD_DONE);
  else if (outcome == SRD_FAULT)
    srd_line_lose(line_of(end, peer), "it sent what it may not");
  else if (outcome == SRD_FOREIGN || outcome == SRD_NONSENSE)
    g_info("%s: refused a datagram", end->base.name);
  if (!posted)
    srd_end_die(end, "its queue pair takes no receive buffers");
}

/* --- what is lost */

void srd_ask_lose(struct srd_line *line)
{
  struct srd_end *end = (struct srd_end *)line->base.end;
  uint64_t tag;
  if (line->index == NO_INDEX)
    return;
  while (srd_reader_leave(end->reader, line->index, &tag))
    srd_tell(line, tag, FALSE);
  line->index = NO_INDEX;
}

void srd_ask_forget(struct srd_line *line)
{
  struct srd_asking *a = ((struct srd_end *)line->base.end)->asking;
  for (uint32_t i = 0; a && i < NOTES; i++)
    if (a->note[i].line == line)
      a->note[i].line = NULL;
}

void srd_ask_die(struct srd_end *end)
{
  struct srd_asking *a = end->asking;
  for (uint32_t i = 0; a && i < NOTES; i++)
    srd_way_drop(end, a->note[i].way);
  if (a)
    free_notes(a);
}
