/* SRD queues: ends and lines; see verbs_queue.h and srd_end.h. Not run on EFA: tested on a fake device.
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

#include "backend_real/srd_answers.h"
#include "core/error.h"
#include "core/units.h"

#define POLL_BATCH 32
/* As for RC lines (verbs_rc_offer.c): from a read's posting until its completion made room for another. */
#define ROUND_TRIP_S 100e-6
#define WINDOW_MIN   (2 * (uint64_t)READ_BYTES_MAX)
#define WINDOW_MAX   (16 * (uint64_t)READ_BYTES_MAX)
#define WINDOW_READS 32
#define RATE_UNKNOWN 100 /* Gbit/s */

static struct srd_end *end_of(const struct verbs_line *line)
{
  return (struct srd_end *)line->end;
}

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
  struct srd_news *news = &end_of(&line->base)->news;
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

static gboolean make_queue_pair(struct srd_end *end, GError **error)
{
  if (!srd_random(&end->qkey, sizeof end->qkey, error))
    return FALSE;
  end->qkey &= 0x7fffffff;
  end->generation++;
  end->sends = 0;
  end->qp = end->ops->qp_new(end->device, end->sends_max, end->receives, end->qkey, NULL, error);
  if (!end->qp)
    return FALSE;
  end->dead = NULL;
  if (srd_ask_ready(end))
    return TRUE;
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
  end->dead = why;
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

static uint32_t queue_poll(struct verbs_end *base, struct verbs_done *done, uint32_t room)
{
  struct srd_end *end = (struct srd_end *)base;
  struct srd_completion completion[POLL_BATCH];
  uint32_t told = take_news(&end->news, done, room);
  if (told == room)
    return told;
  int count = end->ops->poll(end->device, completion, POLL_BATCH);
  if (count < 0)
    srd_end_die(end, "its NIC's completion queue is broken");
  for (int i = 0; i < count && end->qp; i++)
    complete(end, &completion[i]);
  srd_pull_pump(end);
  srd_ask_pump(end);
  return told + take_news(&end->news, done + told, room - told);
}

static void queue_post(struct verbs_line *base, const struct verbs_read *read, uint32_t reads)
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
  return 2;
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
  if (end->serves)
    srd_serve_news_taken(end->serving);
  else
    end->ops->drain(end->device);
}

/* --- lines */

static void queue_line_free(struct verbs_line *base)
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
  if (!srd_random(&random, sizeof random, error) || (!end->qp && !make_queue_pair(end, error)))
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

static struct verbs_line *queue_line_new(struct verbs_end *base, void *context, GError **error)
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
  queue_line_free(&line->base);
  return NULL;
}

static size_t queue_offer(struct verbs_line *line, uint8_t offer[VERBS_OFFER_BYTES])
{
  srd_offer_put(&((struct srd_line *)line)->own, offer);
  return SRD_OFFER_BYTES;
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

static gboolean queue_connect(struct verbs_line *base, const uint8_t *offer, size_t size, GError **error)
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

static void queue_window(const struct verbs_line *base, struct verbs_window *window)
{
  const struct srd_line *line = (const struct srd_line *)base;
  uint32_t own = line->own.gbit_s ? line->own.gbit_s : RATE_UNKNOWN;
  uint32_t peer = line->peer.gbit_s ? line->peer.gbit_s : RATE_UNKNOWN;
  double product = gbit_to_bytes_per_s(MIN(own, peer)) * ROUND_TRIP_S;
  window->reads = WINDOW_READS;
  window->bytes = (uint64_t)CLAMP(product, WINDOW_MIN, WINDOW_MAX);
}

static const char *queue_broken(const struct verbs_line *base)
{
  const struct srd_line *line = (const struct srd_line *)base;
  return end_of(base)->serves ? srd_serve_broken(line) : line->broken;
}

static void queue_line_break(struct verbs_line *base)
{
  struct srd_line *line = (struct srd_line *)base;
  if (end_of(base)->serves)
    srd_serve_break(line, "it was given up");
  else
    srd_line_lose(line, "it was given up");
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
         register_memories(end, config, error) && make_queue_pair(end, error);
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
    .open = verbs_srd_open,
    .close = queue_close,
    .expose = srd_serve_expose,
    .conceal = srd_serve_conceal,
    .line_new = queue_line_new,
    .offer = queue_offer,
    .connect = queue_connect,
    .window = queue_window,
    .post = queue_post,
    .broken = queue_broken,
    .line_break = queue_line_break,
    .line_free = queue_line_free,
    .poll = queue_poll,
    .arm = queue_arm,
    .fds = queue_fds,
    .woken = queue_woken,
};
