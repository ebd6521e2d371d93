/* SRD lines: how they are made, meet, and take reads; see verbs_queue.h and srd_end.h. */
#include "backend_real/srd_end.h"

#include <string.h>

#include "core/error.h"

#define WINDOW_READS 32

static struct srd_end *end_of(const struct verbs_line *line)
{
  return (struct srd_end *)line->end;
}

void srd_line_free(struct verbs_line *base)
{
  struct srd_line *line = (struct srd_line *)base;
  struct srd_end *end = end_of(base);
  if (end->serves) {
    srd_serve_break(line, "it was given up");
  } else {
    srd_line_lose(line, "it was given up");
    srd_ask_forget(line);
  }
  srd_way_drop(end, line->way);
  end->line[line->slot] = NULL;
  g_free(line);
}

static gboolean begin_line(struct srd_end *end, struct srd_line *line, GError **error)
{
  uint64_t random;
  if (end->serves)
    return srd_serve_line(line, error);
  if (!srd_random(&random, sizeof random, error) || (!end->qp && !srd_end_revive(end, error)))
    return FALSE;
  line->own.qp = end->ops->qp_number(end->qp);
  line->own.qkey = end->qkey;
  line->own.share = srd_reader_share(end->reader);
  if (srd_reader_join(end->reader, random, &line->index, &line->own.token))
    return TRUE;
  line->index = NO_INDEX;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: it has too many lines", end->base.name);
  return FALSE;
}

struct verbs_line *srd_line_new(struct verbs_end *base, void *context, GError **error)
{
  struct srd_end *end = (struct srd_end *)base;
  uint32_t slot = 0;
  while (slot < end->lines_max && end->line[slot])
    slot++;
  if (slot == end->lines_max) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: no room for more than %u lines", base->name, slot);
    return NULL;
  }
  struct srd_line *line = end->line[slot] = g_new0(struct srd_line, 1);
  line->base = (struct verbs_line){base, context};
  line->slot = slot;
  line->index = line->first_wait = line->visitor = NO_INDEX;
  line->own.reads = end->caps.reads;
  line->own.datagram_max = end->caps.datagram_max;
  line->own.gbit_s = end->caps.gbit_s;
  memcpy(line->own.gid, end->gid.raw, sizeof line->own.gid);
  if (begin_line(end, line, error))
    return &line->base;
  srd_line_free(&line->base);
  return NULL;
}

size_t srd_line_offer(struct verbs_line *line, uint8_t offer[VERBS_OFFER_BYTES])
{
  srd_offer_put(&((struct srd_line *)line)->own, offer);
  return SRD_OFFER_BYTES;
}

gboolean srd_line_origin(const uint8_t *offer, size_t size, uint8_t gid[16])
{
  struct srd_offer parsed;
  if (!srd_offer_parse(offer, size, FALSE, &parsed))
    return FALSE;
  memcpy(gid, parsed.gid, sizeof parsed.gid);
  return TRUE;
}

static gboolean lacks_reach(const struct srd_end *end, const struct srd_line *line)
{
  for (uint32_t i = 0; line->by_datagram && !end->serves && i < end->memories; i++)
    if (!end->memory[i].base)
      return TRUE;
  return FALSE;
}

static gboolean meet(struct srd_end *end, struct srd_line *line, GError **error)
{
  /* A shelf's device, too, answers only those that it has an address of. */
  line->way = srd_way_get(end, line->peer.gid, error);
  if (!line->way)
    return FALSE;
  if (!line->by_datagram)
    return TRUE;
  if (end->serves)
    return srd_serve_meet(line, error);
  if (!srd_asking_open(end, error))
    return FALSE;
  struct srd_shelf_end shelf = {
      .token = line->peer.token,
      .requests = line->peer.requests,
      .segment = srd_segment_bytes(MIN(line->own.datagram_max, line->peer.datagram_max)),
  };
  srd_reader_meet(end->reader, line->index, &shelf);
  return TRUE;
}

gboolean srd_line_connect(struct verbs_line *base, const uint8_t *offer, size_t size, GError **error)
{
  struct srd_line *line = (struct srd_line *)base;
  struct srd_end *end = end_of(base);
  const char *why = NULL;
  if (!srd_offer_parse(offer, size, !end->serves, &line->peer))
    why = "the peer's offer is none of an SRD queue pair";
  else if (line->connected || base->end->ops->broken(base))
    why = "the line is not new";
  line->by_datagram = !(line->own.reads && line->peer.reads);
  if (!why && lacks_reach(end, line))
    why = "one of the two devices has no RDMA READ, without which nothing lands in GPU memory directly";
  if (why) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: %s", base->end->name, why);
    return FALSE;
  }
  line->connected = meet(end, line, error);
  return line->connected;
}

void srd_line_window(const struct verbs_line *base, struct verbs_window *window)
{
  const struct srd_line *line = (const struct srd_line *)base;
  window->reads = WINDOW_READS;
  window->bytes = verbs_window_bytes(line->own.gbit_s, line->peer.gbit_s);
}

const char *srd_line_broken(const struct verbs_line *base)
{
  const struct srd_line *line = (const struct srd_line *)base;
  return end_of(base)->serves ? srd_serve_broken(line) : line->broken;
}

void srd_line_break(struct verbs_line *base)
{
  struct srd_line *line = (struct srd_line *)base;
  if (end_of(base)->serves)
    srd_serve_break(line, "it was given up");
  else
    srd_line_lose(line, "it was given up");
}

void srd_line_post(struct verbs_line *base, const struct verbs_read *read, uint32_t reads)
{
  struct srd_line *line = (struct srd_line *)base;
  struct srd_end *end = end_of(base);
  for (uint32_t i = 0; i < reads; i++)
    if (line->broken || !line->connected)
      srd_tell(line, read[i].tag, FALSE);
    else if (line->by_datagram)
      srd_ask(line, &read[i]);
    else
      srd_pull(line, &read[i]);
  srd_pull_pump(end);
  srd_ask_pump(end);
}
