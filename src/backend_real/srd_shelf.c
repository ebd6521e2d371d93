/* A shelf's SRD end: its lines, their queue pairs, exposed memory; see srd_serve.h. */
#include "backend_real/srd_serve.h"

#include <errno.h>
#include <unistd.h>

#include "backend_real/bell.h"
#include "core/error.h"

#define CONCEAL_US 100000 /* segments on their way take some 10 us, unless their reader is gone */

static struct srd_end *end_of(const struct srd_line *line)
{
  return (struct srd_end *)line->base.end;
}

static struct srd_serving *serving_of(const struct srd_line *line)
{
  return end_of(line)->serving;
}

void srd_serve_enter(struct srd_serving *s)
{
  g_atomic_int_inc(&s->callers);
  g_mutex_lock(&s->lock);
  g_atomic_int_add(&s->callers, -1);
}

void srd_serve_leave(struct srd_serving *s)
{
  g_mutex_unlock(&s->lock);
}

/* --- lines */

void srd_serve_release(struct srd_serving *s, struct srd_desk *desk, uint32_t index)
{
  struct srd_sent *sent = &desk->sent[index];
  if (sent->of && --sent->of->sending == 0)
    g_cond_broadcast(&s->drained);
  *sent = (struct srd_sent){.next = desk->free};
  desk->free = index;
}

void srd_serve_break_line(struct srd_line *line, const char *why)
{
  struct srd_serving *s = serving_of(line);
  struct srd_desk *desk = &s->desk[line->slot];
  if (!line->broken) {
    line->broken = why;
    bell_ring(s->news);
  }
  if (line->qp)
    end_of(line)->ops->qp_free(line->qp);
  line->qp = NULL;
  if (line->visitor != NO_INDEX)
    srd_answers_expel(s->answers, line->visitor);
  line->visitor = NO_INDEX;
  for (uint32_t i = 0; desk->line == line && i < SRD_SERVE_SENDS; i++)
    if (desk->sent[i].here)
      srd_serve_release(s, desk, i);
  desk->line = NULL;
}

void srd_serve_break_all(struct srd_serving *s, const char *why)
{
  for (uint32_t i = 0; i < SRD_LINES_MAX; i++)
    if (s->desk[i].line)
      srd_serve_break_line(s->desk[i].line, why);
}

void srd_serve_break(struct srd_line *line, const char *why)
{
  srd_serve_enter(serving_of(line));
  srd_serve_break_line(line, why);
  srd_serve_leave(serving_of(line));
}

const char *srd_serve_broken(const struct srd_line *line)
{
  srd_serve_enter(serving_of(line));
  const char *why = line->broken;
  srd_serve_leave(serving_of(line));
  return why;
}

static gboolean make_line(struct srd_serving *s, struct srd_line *line, uint64_t random, GError **error)
{
  struct srd_end *end = s->end;
  struct srd_desk *desk = &s->desk[line->slot];
  line->qp = end->ops->qp_new(end->device, SRD_SERVE_SENDS, SRD_SERVE_RECEIVES, line->own.qkey, line, error);
  if (!line->qp)
    return FALSE;
  if (!srd_answers_admit(s->answers, random, &line->visitor, &line->own.token)) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: it has too many lines", end->base.name);
    return FALSE;
  }
  s->visitor[line->visitor] = line;
  line->own.qp = end->ops->qp_number(line->qp);
  line->own.requests = SRD_REQUESTS;
  line->generation = ++s->generation;
  *desk = (struct srd_desk){.line = line};
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
  srd_serve_enter(s);
  gboolean good = make_line(s, line, random[0], error);
  srd_serve_leave(s);
  return good;
}

/* --- exposed memory */

/* Where the device gives no keys to others: one that is not in use, and cannot be guessed. */
static gboolean choose_key(const struct srd_serving *s, uint32_t *key, GError **error)
{
  do
    if (!srd_random(key, sizeof *key, error))
      return FALSE;
  while (*key == 0 || g_hash_table_contains(s->exposures, GUINT_TO_POINTER(*key)));
  return TRUE;
}

gboolean srd_serve_expose(struct verbs_end *base_end, uint8_t *base, uint64_t bytes,
                          struct verbs_exposed *exposed, GError **error)
{
  struct srd_end *end = (struct srd_end *)base_end;
  struct srd_serving *s = end->serving;
  struct srd_exposure *e = g_new0(struct srd_exposure, 1);
  e->base = base;
  e->bytes = bytes;
  e->memory = end->ops->region_new(end->device, base, bytes, end->caps.reads, &e->local_key, &e->key, error);
  srd_serve_enter(s);
  gboolean good = e->memory && (end->caps.reads || choose_key(s, &e->key, error));
  if (good)
    g_hash_table_insert(s->exposures, GUINT_TO_POINTER(e->key), e);
  srd_serve_leave(s);
  if (!good) {
    if (e->memory)
      end->ops->region_free(e->memory);
    g_free(e);
    return FALSE;
  }
  *exposed = (struct verbs_exposed){(uint64_t)(uintptr_t)base, e->key, e};
  return TRUE;
}

static void break_holders(struct srd_serving *s, const struct srd_exposure *e)
{
  for (uint32_t slot = 0; slot < SRD_LINES_MAX; slot++) {
    struct srd_desk *desk = &s->desk[slot];
    for (uint32_t i = 0; desk->line && i < SRD_SERVE_SENDS; i++)
      if (desk->sent[i].here && desk->sent[i].of == e)
        srd_serve_break_line(desk->line, "it does not take its datagrams");
  }
}

void srd_serve_conceal(struct verbs_end *base, struct verbs_exposed *exposed)
{
  struct srd_end *end = (struct srd_end *)base;
  struct srd_serving *s = end->serving;
  struct srd_exposure *e = exposed->handle;
  gint64 deadline = g_get_monotonic_time() + CONCEAL_US;
  if (!e)
    return;
  srd_serve_enter(s);
  g_hash_table_remove(s->exposures, GUINT_TO_POINTER(e->key));
  while (e->sending > 0 && g_cond_wait_until(&s->drained, &s->lock, deadline))
    ;
  break_holders(s, e);
  srd_serve_leave(s);
  end->ops->region_free(e->memory);
  g_free(e);
  exposed->handle = NULL;
}

struct srd_exposure *srd_serve_find(const struct srd_serving *s, const struct srd_piece *piece)
{
  struct srd_exposure *e = g_hash_table_lookup(s->exposures, GUINT_TO_POINTER(piece->key));
  uint64_t base = e ? (uint64_t)(uintptr_t)e->base : 0;
  if (!e || piece->address < base || piece->address - base > e->bytes ||
      piece->bytes > e->bytes - (piece->address - base))
    return NULL;
  return e;
}

/* --- its beginning and end */

int srd_serve_news_fd(const struct srd_serving *s)
{
  return s->news;
}

void srd_serve_news_taken(struct srd_serving *s)
{
  bell_silence(s->news);
}

struct srd_serving *srd_serving_new(struct srd_end *end, GError **error)
{
  struct srd_serving *s = g_new0(struct srd_serving, 1);
  s->end = end;
  g_mutex_init(&s->lock);
  g_cond_init(&s->drained);
  s->exposures = g_hash_table_new(NULL, NULL);
  s->answers = srd_answers_new(end->lines_max, SRD_REQUESTS);
  g_assert(srd_answers_receives(s->answers) == SRD_SERVE_RECEIVES);
  s->wake = bell_new();
  s->news = bell_new();
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
    srd_serve_enter(s);
    s->stop = TRUE;
    bell_ring(s->wake);
    srd_serve_leave(s);
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
