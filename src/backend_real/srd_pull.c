/* Reads by RDMA READ over a reader's SRD queue pair; see srd_end.h.
 *
 * A read is cut into work requests: none longer than the device reads at once, none across two registrations,
 * since SRD takes one local piece for a read. They end in any order; the read has ended once all have. Lines
 * that have reads waiting for room in the queue take turns. */
#include "backend_real/srd_end.h"

#define BATCH 32 /* work requests posted with one doorbell */

struct pulled {
  struct srd_line *line; /* NULL: free */
  struct verbs_read read;
  uint32_t posted; /* bytes */
  uint32_t under_way;
  gboolean waits, failed;
  uint32_t next; /* that waits, or is free */
};

struct srd_pulling {
  struct pulled *slot;
  uint32_t slots, free; /* free: NO_INDEX: none */
  uint32_t turn;        /* the line that is served first */
};

struct srd_pulling *srd_pulling_new(void)
{
  struct srd_pulling *p = g_new0(struct srd_pulling, 1);
  p->free = NO_INDEX;
  return p;
}

void srd_pulling_free(struct srd_pulling *p)
{
  if (!p)
    return;
  g_free(p->slot);
  g_free(p);
}

static void grow(struct srd_pulling *p)
{
  uint32_t slots = MAX(p->slots * 2, 64);
  p->slot = g_renew(struct pulled, p->slot, slots);
  for (uint32_t i = p->slots; i < slots; i++)
    p->slot[i] = (struct pulled){.next = i + 1 < slots ? i + 1 : NO_INDEX};
  p->free = p->slots;
  p->slots = slots;
}

void srd_pull(struct srd_line *line, const struct verbs_read *read)
{
  struct srd_pulling *p = ((struct srd_end *)line->base.end)->pulling;
  if (p->free == NO_INDEX)
    grow(p);
  uint32_t index = p->free;
  p->free = p->slot[index].next;
  p->slot[index] = (struct pulled){.line = line, .read = *read, .waits = TRUE, .next = NO_INDEX};
  if (line->first_wait == NO_INDEX)
    line->first_wait = index;
  else
    p->slot[line->last_wait].next = index;
  line->last_wait = index;
}

static void wait_over(struct srd_pulling *p, struct srd_line *line)
{
  struct pulled *slot = &p->slot[line->first_wait];
  slot->waits = FALSE;
  line->first_wait = slot->next;
}

static void settle(struct srd_end *end, struct pulled *slot)
{
  if (slot->waits || slot->under_way > 0)
    return;
  srd_tell(slot->line, slot->read.tag, !slot->failed);
  slot->line = NULL;
  slot->next = end->pulling->free;
  end->pulling->free = (uint32_t)(slot - end->pulling->slot);
}

/* Takes the next work request of the line's first read that waits. */
static void load(struct srd_end *end, struct srd_line *line, struct srd_work *work)
{
  uint32_t index = line->first_wait;
  struct pulled *slot = &end->pulling->slot[index];
  const struct verbs_read *read = &slot->read;
  *work = (struct srd_work){
      .id = SRD_WORK_ID(SRD_WORK_READ, end->generation, index),
      .to = line->way->address,
      .qp = line->peer.qp,
      .qkey = line->peer.qkey,
      .read = TRUE,
      .address = read->address + slot->posted,
      .key = read->key,
      .pieces = 1,
  };
  end->ops->memory_piece(end->registered[read->memory], read->to + slot->posted,
                         MIN(read->bytes - slot->posted, end->caps.read_max), &work->piece[0]);
  slot->posted += work->piece[0].bytes;
  slot->under_way++;
  end->sends++;
  if (slot->posted == read->bytes)
    wait_over(end->pulling, line);
}

static struct srd_line *next_line(struct srd_end *end)
{
  for (uint32_t i = 0; i < end->lines_max; i++) {
    struct srd_line *line = end->line[(end->pulling->turn + i) % end->lines_max];
    if (line && line->first_wait != NO_INDEX) {
      end->pulling->turn = (line->slot + 1) % end->lines_max;
      return line;
    }
  }
  return NULL;
}

void srd_pull_pump(struct srd_end *end)
{
  struct srd_work work[BATCH];
  uint32_t works;
  do {
    struct srd_line *line;
    works = 0;
    while (end->qp && works < BATCH && end->sends < end->sends_max && (line = next_line(end)))
      load(end, line, &work[works++]);
    if (works > 0 && !end->ops->send(end->qp, work, works)) {
      srd_end_die(end, "its queue pair takes no reads");
      return;
    }
  } while (works == BATCH);
}

void srd_pull_done(struct srd_end *end, uint32_t index, enum srd_status status, const char *why)
{
  struct pulled *slot = &end->pulling->slot[index];
  struct srd_line *line = slot->line;
  slot->under_way--;
  end->sends--;
  if (status != SRD_OK) {
    slot->failed = TRUE;
    /* One that is posted in part is the first of those that wait. */
    if (slot->waits)
      wait_over(end->pulling, line);
  }
  settle(end, slot);
  if (status == SRD_LOST)
    srd_line_lose(line, why);
}

void srd_pull_lose(struct srd_line *line)
{
  struct srd_end *end = (struct srd_end *)line->base.end;
  while (line->first_wait != NO_INDEX) {
    struct pulled *slot = &end->pulling->slot[line->first_wait];
    slot->failed = TRUE;
    wait_over(end->pulling, line);
    settle(end, slot);
  }
}

void srd_pull_die(struct srd_end *end)
{
  for (uint32_t i = 0; i < end->pulling->slots; i++) {
    struct pulled *slot = &end->pulling->slot[i];
    if (!slot->line)
      continue;
    slot->failed = TRUE;
    slot->under_way = 0;
    settle(end, slot);
  }
}
