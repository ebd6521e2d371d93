/* SRD queues: ends; see verbs_queue.h and srd_end.h. Not run on EFA: tested on a fake device.
 *
 * EFA lets whoever knows a queue pair's number and qkey send to it, and read by it what he knows the key of;
 * the three travel in letters alone, and are the only guard. qkeys are random, one a queue pair. A shelf's
 * line that is broken has its queue pair destroyed, so its peer reads nothing by it any more; by another
 * line's, whose number and qkey it was never told, it could.
 *
 * EFA's errors concern one work request. So a reader's queue pair outlives peers that do not answer: their
 * reads come back as failed one by one (SRD gives up by itself, after seconds), the others go on. */
#include "backend_real/srd_end.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "core/error.h"

#define POLL_BATCH 32

gboolean srd_random(void *to, size_t size, GError **error)
{
  if (getrandom(to, size, 0) == (ssize_t)size)
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "no random bytes: %s", g_strerror(errno));
  return FALSE;
}

/* --- ways */

struct srd_way *srd_way_get(struct srd_end *end, const uint8_t gid[16], GError **error)
{
  struct srd_way *unused = NULL;
  for (guint i = 0; i < G_N_ELEMENTS(end->way); i++) {
    struct srd_way *way = &end->way[i];
    if (way->uses > 0 && memcmp(way->gid, gid, sizeof way->gid) == 0)
      return srd_way_use(way);
    if (way->uses == 0 && !unused)
      unused = way;
  }
  if (!unused) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: it has too many peers", end->base.name);
    return NULL;
  }
  unused->address = end->ops->address_new(end->device, gid, error);
  if (!unused->address)
    return NULL;
  memcpy(unused->gid, gid, sizeof unused->gid);
  return srd_way_use(unused);
}

struct srd_way *srd_way_use(struct srd_way *way)
{
  way->uses++;
  return way;
}

void srd_way_drop(struct srd_end *end, struct srd_way *way)
{
  if (way && --way->uses == 0)
    end->ops->address_free(way->address);
}

/* --- news */

void srd_tell(struct srd_line *line, uint64_t tag, gboolean good)
{
  struct srd_news *news = &((struct srd_end *)line->base.end)->news;
  if (news->count == news->room) {
    uint32_t room = MAX(news->room * 2, 64);
    struct verbs_done *done = g_new(struct verbs_done, room);
    for (uint32_t i = 0; i < news->count; i++)
      done[i] = news->done[(news->first + i) % news->room];
    g_free(news->done);
    *news = (struct srd_news){.done = done, .count = news->count, .room = room};
  }
  news->done[(news->first + news->count++) % news->room] = (struct verbs_done){&line->base, tag, good};
}

static uint32_t take_news(struct srd_news *news, struct verbs_done *done, uint32_t room)
{
  uint32_t told = 0;
  for (; told < room && news->count > 0; told++, news->count--) {
    done[told] = news->done[news->first];
    news->first = (news->first + 1) % news->room;
  }
  return told;
}

/* --- a reader's queue pair */

gboolean srd_end_revive(struct srd_end *end, GError **error)
{
  if (!srd_random(&end->qkey, sizeof end->qkey, error))
    return FALSE;
  end->qkey &= 0x7fffffff;
  end->generation++;
  end->sends = 0;
  end->qp = end->ops->qp_new(end->device, end->sends_max, end->receives, end->qkey, NULL, error);
  if (!end->qp)
    return FALSE;
  if (srd_ask_ready(end))
    return TRUE;
  end->ops->qp_free(end->qp);
  end->qp = NULL;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: its queue pair takes no receive buffers",
              end->base.name);
  return FALSE;
}

void srd_line_lose(struct srd_line *line, const char *why)
{
  if (line->broken)
    return;
  line->broken = why;
  srd_pull_lose(line);
  srd_ask_lose(line);
}

void srd_end_die(struct srd_end *end, const char *why)
{
  if (!end->qp)
    return;
  g_warning("%s: the queue pair is lost: %s", end->base.name, why);
  end->ops->qp_free(end->qp);
  end->qp = NULL;
  for (uint32_t i = 0; i < end->lines_max; i++)
    if (end->line[i])
      srd_line_lose(end->line[i], why);
  srd_pull_die(end);
  srd_ask_die(end);
}

static void complete(struct srd_end *end, const struct srd_completion *c)
{
  if (SRD_WORK_GENERATION(c->id) != (end->generation & 0xfffffff))
    return;
  if (c->status == SRD_BROKEN || (c->status != SRD_OK && SRD_WORK_KIND(c->id) == SRD_WORK_RECEIVE)) {
    srd_end_die(end, c->why);
    return;
  }
  switch (SRD_WORK_KIND(c->id)) {
  case SRD_WORK_READ:
    srd_pull_done(end, SRD_WORK_INDEX(c->id), c->status, c->why);
    break;
  case SRD_WORK_MESSAGE:
    srd_ask_sent(end, SRD_WORK_INDEX(c->id), c->status, c->why);
    break;
  case SRD_WORK_RECEIVE:
    srd_ask_received(end, SRD_WORK_INDEX(c->id), c->bytes);
    break;
  }
}

static uint32_t queue_poll(struct verbs_end *base, struct verbs_done *done, uint32_t room, gboolean *more)
{
  struct srd_end *end = (struct srd_end *)base;
  struct srd_completion completion[POLL_BATCH];
  uint32_t told = take_news(&end->news, done, room);
  *more = TRUE;
  if (told == room)
    return told;
  int count = end->ops->poll(end->device, completion, POLL_BATCH);
  if (count < 0)
    srd_end_die(end, "its NIC's completion queue is broken");
  for (int i = 0; i < count && end->qp; i++)
    complete(end, &completion[i]);
  srd_pull_pump(end);
  srd_ask_pump(end);
  told += take_news(&end->news, done + told, room - told);
  *more = count > 0 || end->news.count > 0;
  return told;
}

static void queue_arm(struct verbs_end *base)
{
  struct srd_end *end = (struct srd_end *)base;
  if (!end->ops->arm(end->device))
    srd_end_die(end, "its NIC's completion queue tells nothing any more");
}

static uint32_t queue_fds(const struct verbs_end *base, int fd[])
{
  const struct srd_end *end = (const struct srd_end *)base;
  fd[0] = end->ops->event_fd(end->device);
  fd[1] = end->serves ? srd_serve_news_fd(end->serving) : end->ops->completion_fd(end->device);
  if (!end->asking)
    return 2;
  fd[2] = srd_ask_clock(end);
  return 3;
}

static void queue_woken(struct verbs_end *base)
{
  struct srd_end *end = (struct srd_end *)base;
  void *context;
  const char *why;
  while (end->ops->event(end->device, &context, &why)) {
    if (why && end->serves)
      srd_serve_break(context, why);
    else if (why)
      srd_end_die(end, why);
  }
  if (end->serves) {
    srd_serve_news_taken(end->serving);
    return;
  }
  end->ops->drain(end->device);
  if (end->asking)
    srd_ask_tick(end);
}

/* --- ends */

static void queue_close(struct verbs_end *base)
{
  struct srd_end *end = (struct srd_end *)base;
  srd_serving_free(end->serving);
  if (end->qp)
    end->ops->qp_free(end->qp);
  end->qp = NULL;
  srd_ask_die(end);
  srd_asking_close(end);
  srd_reader_free(end->reader);
  srd_pulling_free(end->pulling);
  for (uint32_t i = 0; i < end->memories; i++)
    if (end->registered && end->registered[i])
      end->ops->memory_free(end->registered[i]);
  g_free(end->registered);
  g_free(end->memory);
  g_free(end->news.done);
  if (end->device)
    end->ops->close(end->device);
  g_free(end);
}

static gboolean register_memories(struct srd_end *end, const struct verbs_end_config *config, GError **error)
{
  end->memories = config->memories;
  end->memory = g_memdup2(config->memory, config->memories * sizeof *config->memory);
  end->registered = g_new0(struct srd_memory *, config->memories);
  /* Where nothing is read by the device, nothing has to be registered. */
  for (uint32_t i = 0; i < config->memories && end->caps.reads; i++)
    if (!(end->registered[i] = end->ops->memory_new(end->device, &config->memory[i], error)))
      return FALSE;
  return TRUE;
}

static gboolean open_reader(struct srd_end *end, const struct verbs_end_config *config, GError **error)
{
  const struct srd_caps *caps = &end->caps;
  end->sends_max = MIN(MIN(caps->sends_max, SRD_SENDS), caps->completions_max / 2);
  end->receives = MIN(MIN(caps->receives_max, SRD_RECEIVES), caps->completions_max - end->sends_max);
  end->lines_max = MIN(SRD_PEERS, end->receives);
  end->pulling = srd_pulling_new();
  if (end->sends_max == 0 || end->receives == 0) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: its queues are too short", end->base.name);
    return FALSE;
  }
  end->reader = srd_reader_new(
      &(struct srd_reader_config){.receives = end->receives, .peers = end->lines_max, .reads = SRD_REQUESTS});
  return end->ops->size(end->device, end->sends_max + end->receives, error) &&
         register_memories(end, config, error) && srd_end_revive(end, error);
}

static gboolean open_shelf(struct srd_end *end, GError **error)
{
  const uint32_t of_line = SRD_SERVE_SENDS + SRD_SERVE_RECEIVES;
  end->lines_max = MIN(SRD_LINES_MAX, end->caps.completions_max / of_line);
  if (end->lines_max == 0 || end->caps.sends_max < SRD_SERVE_SENDS ||
      end->caps.receives_max < SRD_SERVE_RECEIVES) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: its queues are too short", end->base.name);
    return FALSE;
  }
  if (!end->ops->size(end->device, end->lines_max * of_line, error))
    return FALSE;
  end->serving = srd_serving_new(end, error);
  return end->serving != NULL;
}

struct verbs_end *srd_end_open(const struct srd_device_ops *ops, const struct verbs_end_config *config,
                               GError **error)
{
  struct srd_end *end = g_new0(struct srd_end, 1);
  end->base.ops = &verbs_srd;
  end->ops = ops;
  end->serves = config->serves;
  end->gid = config->gid;
  g_snprintf(end->base.name, sizeof end->base.name, "%s:%u", config->nic->device, config->nic->port);
  end->device = ops->open(config->nic, &config->gid, error);
  if (!end->device) {
    g_free(end);
    return NULL;
  }
  ops->caps(end->device, &end->caps);
  end->caps.reads &= end->caps.read_max > 0;
  if (srd_segment_bytes(end->caps.datagram_max) == 0)
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: its datagrams are too small", end->base.name);
  else if (end->serves ? open_shelf(end, error) : open_reader(end, config, error))
    return &end->base;
  queue_close(&end->base);
  return NULL;
}

const struct verbs_queue_ops verbs_srd = {
    .name = "SRD",
    .lines = 1, /* nothing waits for what came before it */
    .open = verbs_srd_open,
    .close = queue_close,
    .expose = srd_serve_expose,
    .conceal = srd_serve_conceal,
    .line_new = srd_line_new,
    .offer = srd_line_offer,
    .origin = srd_line_origin,
    .connect = srd_line_connect,
    .window = srd_line_window,
    .post = srd_line_post,
    .broken = srd_line_broken,
    .line_break = srd_line_break,
    .line_free = srd_line_free,
    .poll = queue_poll,
    .arm = queue_arm,
    .fds = queue_fds,
    .woken = queue_woken,
};
