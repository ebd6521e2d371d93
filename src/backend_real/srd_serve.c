/* A shelf's SRD lines: their queue pairs, exposed memory, and a thread that answers those that ask by
 * datagrams; see srd_end.h.
 *
 * Where both devices have RDMA READ no thread is started, and the shelf's device answers alone. Else segments
 * go out of the exposed memory itself, uncopied; each has a head of its own. Memory is concealed once none of
 * it is on its way: lines that hold one up are broken. */
#define G_LOG_DOMAIN "transport"

#include "backend_real/srd_end.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backend_real/srd_answers.h"
#include "core/error.h"

#define HEAD_STRIDE 64
#define LINE_HEADS  (SRD_SERVE_RECEIVES + SRD_SERVE_SENDS) /* first those for receives */
#define POLL_BATCH  32
#define SEND_BATCH  64
#define CONCEAL_US  100000 /* segments on their way take some 10 us, unless their reader is gone */

/* Exposed memory. */
struct exposure {
  struct srd_memory *memory;
  uint8_t *base;
  uint64_t bytes;
  uint32_t key, local_key;
  uint32_t sending; /* segments of it that are on their way */
};

/* What a line has on its way. */
struct sent {
  gboolean here;
  struct exposure *of; /* NULL: a refusal */
  uint32_t next;       /* of the free ones */
};

struct desk {
  struct srd_line *line; /* NULL: free */
  struct sent sent[SRD_SERVE_SENDS];
  uint32_t free;
};

struct srd_serving {
  struct srd_end *end;
  GMutex lock;
  int callers; /* who wait for the lock; atomic */
  GCond drained;
  GThread *thread; /* NULL: nobody asks by datagrams */
  gboolean stop, armed;
  int wake, news;
  uint32_t generation, last_key;
  struct srd_answers *answers;
  GHashTable *exposures; /* key -> struct exposure; looked up, never walked */
  struct desk desk[SRD_LINES_MAX];
  uint8_t *block; /* [lines][LINE_HEADS][HEAD_STRIDE] */
  struct srd_memory *region;
  uint32_t block_key;
};

static struct srd_end *end_of(const struct srd_line *line)
{
  return (struct srd_end *)line->base.end;
}

static struct srd_serving *serving_of(const struct srd_line *line)
{
  return end_of(line)->serving;
}

/* The thread holds the lock nearly always while it is busy, so it makes way for those who say so. */
static void enter(struct srd_serving *s)
{
  g_atomic_int_inc(&s->callers);
  g_mutex_lock(&s->lock);
  g_atomic_int_add(&s->callers, -1);
}

static void leave(struct srd_serving *s)
{
  g_mutex_unlock(&s->lock);
}

static void ring(int fd)
{
  uint64_t one = 1;
  if (write(fd, &one, sizeof one) != sizeof one && errno != EAGAIN)
    g_critical("an eventfd takes nothing: %m");
}

static void silence(int fd)
{
  uint64_t count;
  if (read(fd, &count, sizeof count) != sizeof count && errno != EAGAIN)
    g_critical("an eventfd gives nothing: %m");
}

static uint8_t *head(const struct srd_serving *s, uint32_t slot, uint32_t index)
{
  return s->block + ((size_t)slot * LINE_HEADS + index) * HEAD_STRIDE;
}

/* --- lines */

static void release(struct srd_serving *s, struct desk *desk, uint32_t index)
{
  struct sent *sent = &desk->sent[index];
  if (sent->of && --sent->of->sending == 0)
    g_cond_broadcast(&s->drained);
  *sent = (struct sent){.next = desk->free};
  desk->free = index;
}

/* Under the lock. */
static void break_line(struct srd_line *line, const char *why)
{
  struct srd_serving *s = serving_of(line);
  struct desk *desk = &s->desk[line->slot];
  if (!line->broken) {
    line->broken = why;
    ring(s->news);
  }
  if (line->qp)
    end_of(line)->ops->qp_free(line->qp);
  line->qp = NULL;
  if (line->visitor != NO_INDEX)
    srd_answers_expel(s->answers, line->visitor);
  line->visitor = NO_INDEX;
  for (uint32_t i = 0; desk->line == line && i < SRD_SERVE_SENDS; i++)
    if (desk->sent[i].here)
      release(s, desk, i);
  desk->line = NULL;
}

void srd_serve_break(struct srd_line *line, const char *why)
{
  enter(serving_of(line));
  break_line(line, why);
  leave(serving_of(line));
}

const char *srd_serve_broken(const struct srd_line *line)
{
  enter(serving_of(line));
  const char *why = line->broken;
  leave(serving_of(line));
  return why;
}

static gboolean make_line(struct srd_serving *s, struct srd_line *line, uint64_t random, GError **error)
{
  struct srd_end *end = s->end;
  struct desk *desk = &s->desk[line->slot];
  line->qp = end->ops->qp_new(end->device, SRD_SERVE_SENDS, SRD_SERVE_RECEIVES, line->own.qkey, line, error);
  if (!line->qp)
    return FALSE;
  if (!srd_answers_admit(s->answers, random, &line->visitor, &line->own.token)) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: it has too many lines", end->base.name);
    return FALSE;
  }
  line->own.qp = end->ops->qp_number(line->qp);
  line->own.requests = SRD_REQUESTS;
  line->generation = ++s->generation;
  *desk = (struct desk){.line = line};
  for (uint32_t i = 0; i < SRD_SERVE_SENDS; i++)
    desk->sent[i].next = i + 1 < SRD_SERVE_SENDS ? i + 1 : NO_INDEX;
  return TRUE;
}

gboolean srd_serve_line(struct srd_line *line, GError **error)
{
  struct srd_serving *s = serving_of(line);
  uint64_t random[2];
  if (!srd_random(random, sizeof random, error))
    return FALSE;
  line->own.qkey = random[1] & 0x7fffffff;
  enter(s);
  gboolean good = make_line(s, line, random[0], error);
  leave(s);
  return good;
}

/* --- exposed memory */

gboolean srd_serve_expose(struct verbs_end *base_end, uint8_t *base, uint64_t bytes,
                          struct verbs_exposed *exposed, GError **error)
{
  struct srd_end *end = (struct srd_end *)base_end;
  struct srd_serving *s = end->serving;
  struct exposure *e = g_new0(struct exposure, 1);
  e->base = base;
  e->bytes = bytes;
  e->memory = end->ops->region_new(end->device, base, bytes, end->caps.reads, &e->local_key, &e->key, error);
  if (!e->memory) {
    g_free(e);
    return FALSE;
  }
  enter(s);
  if (!end->caps.reads)
    e->key = ++s->last_key;
  g_hash_table_insert(s->exposures, GUINT_TO_POINTER(e->key), e);
  leave(s);
  *exposed = (struct verbs_exposed){(uint64_t)(uintptr_t)base, e->key, e};
  return TRUE;
}

static void break_holders(struct srd_serving *s, const struct exposure *e)
{
  for (uint32_t slot = 0; slot < SRD_LINES_MAX; slot++) {
    struct desk *desk = &s->desk[slot];
    for (uint32_t i = 0; desk->line && i < SRD_SERVE_SENDS; i++)
      if (desk->sent[i].here && desk->sent[i].of == e)
        break_line(desk->line, "it does not take its datagrams");
  }
}

void srd_serve_conceal(struct verbs_end *base, struct verbs_exposed *exposed)
{
  struct srd_end *end = (struct srd_end *)base;
  struct srd_serving *s = end->serving;
  struct exposure *e = exposed->handle;
  gint64 deadline = g_get_monotonic_time() + CONCEAL_US;
  if (!e)
    return;
  enter(s);
  g_hash_table_remove(s->exposures, GUINT_TO_POINTER(e->key));
  while (e->sending > 0 && g_cond_wait_until(&s->drained, &s->lock, deadline))
    ;
  break_holders(s, e);
  leave(s);
  end->ops->region_free(e->memory);
  g_free(e);
  exposed->handle = NULL;
}

/* The memory of a piece; NULL: it is not exposed, or not all of it. */
static struct exposure *find(const struct srd_serving *s, const struct srd_piece *piece)
{
  struct exposure *e = g_hash_table_lookup(s->exposures, GUINT_TO_POINTER(piece->key));
  uint64_t base = e ? (uint64_t)(uintptr_t)e->base : 0;
  if (!e || piece->address < base || piece->address - base > e->bytes ||
      piece->bytes > e->bytes - (piece->address - base))
    return NULL;
  return e;
}

/* --- the thread */

static gboolean post_receive(struct srd_line *line, uint32_t index)
{
  const struct srd_serving *s = serving_of(line);
  struct srd_piece_at piece = {(uint64_t)(uintptr_t)head(s, line->slot, index), HEAD_STRIDE, s->block_key};
  uint64_t id = SRD_WORK_ID(SRD_WORK_RECEIVE, line->generation, line->slot << 16 | index);
  return end_of(line)->ops->receive(line->qp, id, &piece);
}

static void received(struct srd_line *line, uint32_t index, uint32_t bytes)
{
  struct srd_serving *s = serving_of(line);
  uint32_t visitor = NO_INDEX;
  enum srd_taken taken =
      srd_answers_take(s->answers, head(s, line->slot, index), MIN(bytes, HEAD_STRIDE), &visitor);
  if (taken == SRD_EXCESS && visitor == line->visitor)
    break_line(line, "it asked for more than it may");
  else if (taken != SRD_TAKEN)
    g_info("%s: refused a datagram of line %u", s->end->base.name, line->slot);
  if (line->qp && !post_receive(line, index))
    break_line(line, "its queue pair takes no receive buffers");
}

static void complete(struct srd_serving *s, const struct srd_completion *c)
{
  uint32_t slot = SRD_WORK_INDEX(c->id) >> 16, index = SRD_WORK_INDEX(c->id) & 0xffff;
  struct desk *desk = &s->desk[slot];
  struct srd_line *line = desk->line;
  if (!line || (line->generation & 0xfffffff) != SRD_WORK_GENERATION(c->id))
    return;
  if (c->status != SRD_OK) {
    break_line(line, c->why);
  } else if (SRD_WORK_KIND(c->id) == SRD_WORK_RECEIVE) {
    received(line, index, c->bytes);
  } else {
    release(s, desk, index);
    srd_answers_hold(s->answers, line->visitor, FALSE);
  }
}

static void break_all(struct srd_serving *s, const char *why)
{
  for (uint32_t i = 0; i < SRD_LINES_MAX; i++)
    if (s->desk[i].line)
      break_line(s->desk[i].line, why);
}

static gboolean take_completions(struct srd_serving *s)
{
  struct srd_completion completion[POLL_BATCH];
  int count = s->end->ops->poll(s->end->device, completion, POLL_BATCH);
  for (int i = 0; i < count; i++)
    complete(s, &completion[i]);
  if (count < 0)
    break_all(s, "its NIC's completion queue is broken");
  return count > 0;
}

static struct srd_line *line_of(const struct srd_serving *s, uint32_t visitor)
{
  for (uint32_t i = 0; i < SRD_LINES_MAX; i++)
    if (s->desk[i].line && s->desk[i].line->visitor == visitor)
      return s->desk[i].line;
  return NULL;
}

static void send_piece(struct srd_serving *s, struct srd_line *line, const struct srd_piece *piece)
{
  struct desk *desk = &s->desk[line->slot];
  uint32_t index = desk->free;
  uint8_t *wire = head(s, line->slot, SRD_SERVE_RECEIVES + index);
  struct exposure *e = find(s, piece);
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
  desk->sent[index] = (struct sent){.here = TRUE, .of = e};
  if (e)
    e->sending++;
  if (!s->end->ops->send(line->qp, &work, 1))
    break_line(line, "its queue pair takes no datagrams");
}

static gboolean send_pieces(struct srd_serving *s)
{
  struct srd_piece piece;
  uint32_t sent = 0;
  while (sent < SEND_BATCH && srd_answers_next(s->answers, &piece)) {
    struct srd_line *line = line_of(s, piece.reader);
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
        break_all(s, "its NIC's completion queue tells nothing any more");
    }
    g_mutex_unlock(&s->lock);
    if (!busy)
      sleep_on(s);
    while (g_atomic_int_get(&s->callers) > 0)
      sched_yield();
    g_mutex_lock(&s->lock);
    if (!busy) {
      silence(s->wake);
      s->end->ops->drain(s->end->device);
      s->armed = FALSE;
    }
  }
  g_mutex_unlock(&s->lock);
  return NULL;
}

/* --- its beginning and end */

static gboolean start(struct srd_serving *s, GError **error)
{
  struct srd_end *end = s->end;
  size_t size = (size_t)end->lines_max * LINE_HEADS * HEAD_STRIDE;
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
  enter(serving_of(line));
  gboolean good = meet(serving_of(line), line, error);
  leave(serving_of(line));
  return good;
}

int srd_serve_news_fd(const struct srd_serving *s)
{
  return s->news;
}

void srd_serve_news_taken(struct srd_serving *s)
{
  silence(s->news);
}

struct srd_serving *srd_serving_new(struct srd_end *end, GError **error)
{
  struct srd_serving *s = g_new0(struct srd_serving, 1);
  s->end = end;
  g_mutex_init(&s->lock);
  g_cond_init(&s->drained);
  s->exposures = g_hash_table_new(NULL, NULL);
  s->answers = srd_answers_new(end->lines_max, SRD_REQUESTS);
  G_STATIC_ASSERT(SRD_SERVE_RECEIVES == SRD_REQUESTS + 4);
  s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  s->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (s->wake >= 0 && s->news >= 0)
    return s;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: no eventfd: %s", end->base.name, g_strerror(errno));
  srd_serving_free(s);
  return NULL;
}

void srd_serving_free(struct srd_serving *s)
{
  if (!s)
    return;
  if (s->thread) {
    enter(s);
    s->stop = TRUE;
    ring(s->wake);
    leave(s);
    g_thread_join(s->thread);
  }
  if (s->region)
    s->end->ops->region_free(s->region);
  g_aligned_free(s->block);
  if (s->wake >= 0)
    close(s->wake);
  if (s->news >= 0)
    close(s->news);
  srd_answers_free(s->answers);
  g_hash_table_destroy(s->exposures);
  g_cond_clear(&s->drained);
  g_mutex_clear(&s->lock);
  g_free(s);
}
