/* The verbs reader's thread: takes completions in, tells the ends of reads, notices letters that do not come.
 *
 * While reads are under way it polls, and sleeps on the completion channels once nothing has come for a
 * while. */
#include <errno.h>
#include <sched.h>

#include "backend_real/bell.h"
#include "backend_real/transport_verbs_reader.h"

#define POLL_DONE 64       /* completions taken in at once */
#define LOOK_NS   10000000 /* how often, while reads keep coming, it looks for what has waited too long */
#define SPIN_NS   30000 /* polls on for so long after the last: about what it costs to sleep and be woken */

/* --- with the lock
 * -------------------------------------------------------------------------------------------------*/

/* One line that broke ends the whole attempt: what broke it will break the others, and whoever asked tries
 * again. */
static void done(struct reader *reader, const struct verbs_done *d)
{
  struct line *line = d->line->context;
  part_done(reader, d);
  if (d->good || !line->peer)
    return;
  const char *why = reader->ops->broken(d->line);
  peer_close(reader, line->peer, why ? why : "a read failed");
}

/* Whoever has reads that wait for room gets some. */
static void give_all(struct reader *reader)
{
  for (guint i = 0; i < reader->in_order->len; i++) {
    struct peer *peer = g_ptr_array_index(reader->in_order, i);
    if (peer->state == PEER_OPEN && peer->waiting.first)
      peer_give(reader, peer);
  }
}

static void free_given_up(struct reader *reader)
{
  for (struct line **at = &reader->given_up; *at;) {
    struct line *line = *at;
    if (line->reads > 0) {
      at = &line->next;
      continue;
    }
    *at = line->next;
    reader->ops->line_free(line->queue);
    g_free(line);
  }
}

/* TRUE: something came, and there may be more. */
static gboolean poll_ends(struct reader *reader)
{
  struct verbs_done batch[POLL_DONE];
  gboolean came = FALSE;
  for (uint32_t e = 0; e < reader->ends; e++) {
    gboolean more = FALSE;
    uint32_t count = reader->ops->poll(reader->end[e].end, batch, POLL_DONE, &more);
    for (uint32_t i = 0; i < count; i++)
      done(reader, &batch[i]);
    came = came || count > 0 || more;
  }
  if (came)
    give_all(reader);
  if (reader->given_up)
    free_given_up(reader);
  return came;
}

static gint64 earlier(gint64 a, gint64 b)
{
  return a == 0 ? b : b == 0 ? a : MIN(a, b);
}

/* Ends what has waited for too long for a letter. Returns when the next one has; 0: none waits. Reads under
 * way have no such limit: queue pairs give up by themselves within 2 s (RC), or some seconds (SRD, whose
 * reader also probes shelves that are silent), and whoever gives up a server drops it. */
static gint64 expire(struct reader *reader)
{
  gint64 now = g_get_monotonic_time() * 1000, next = 0;
  for (guint i = 0; i < reader->in_order->len; i++) {
    struct peer *peer = g_ptr_array_index(reader->in_order, i);
    if (peer->state == PEER_OPENING && peer->deadline_ns <= now)
      peer_close(reader, peer, "it did not answer in time");
    if (peer->state == PEER_OPENING)
      next = earlier(next, peer->deadline_ns);
    next = earlier(next, peer_expire(reader, peer, now));
  }
  return next;
}

static void woken(struct reader *reader)
{
  for (uint32_t e = 0; e < reader->ends; e++)
    reader->ops->woken(reader->end[e].end);
}

static void arm(struct reader *reader)
{
  for (uint32_t e = 0; e < reader->ends; e++)
    reader->ops->arm(reader->end[e].end);
}

static uint32_t collect_fds(const struct reader *reader, struct pollfd *fds)
{
  uint32_t count = 0;
  fds[count++] = (struct pollfd){.fd = reader->bell, .events = POLLIN};
  for (uint32_t e = 0; e < reader->ends; e++)
    count += verbs_watch(reader->end[e].end, &fds[count]);
  return count;
}

/* --- without it
 * ----------------------------------------------------------------------------------------------------*/

/* Tells what has ended, and lets others have the lock. */
static void tell(struct reader *reader)
{
  struct read_list over = reader->over;
  if (!over.first)
    over.last = &over.first;
  list_init(&reader->over);
  g_mutex_unlock(&reader->lock);
  for (const struct read *read = over.first; read; read = read->next)
    reader->ended(reader->context, read->tag, !read->bad);
  while (g_atomic_int_get(&reader->waiting) > 0)
    sched_yield();
  g_mutex_lock(&reader->lock);
  for (struct read *read; (read = list_pop(&over));)
    list_push(&reader->free_reads, read);
}

static void sleep_on(struct reader *reader, gint64 until_ns)
{
  struct pollfd fds[1 + READER_ENDS_MAX * VERBS_FDS];
  uint32_t count = collect_fds(reader, fds);
  gint64 wait_ns = until_ns ? MAX(until_ns - g_get_monotonic_time() * 1000, 0) : -1;
  g_mutex_unlock(&reader->lock);
  int ready = poll(fds, count, until_ns ? (int)(wait_ns / 1000000 + 1) : -1);
  if (ready < 0 && errno != EINTR)
    g_error("poll: %m");
  if (ready > 0 && fds[0].revents)
    bell_silence(reader->bell);
  g_mutex_lock(&reader->lock);
  if (ready > 0)
    woken(reader);
}

/* Nothing has come for a while. Between arming and sleeping it looks once more. */
static void rest(struct reader *reader)
{
  arm(reader);
  if (poll_ends(reader))
    return;
  gint64 until = expire(reader);
  if (!reader->over.first && !reader->stop)
    sleep_on(reader, until);
}

gpointer verbs_reader_run(gpointer data)
{
  struct reader *reader = data;
  gint64 last = 0, looked = 0;
  g_mutex_lock(&reader->lock);
  while (!reader->stop) {
    gint64 now = g_get_monotonic_time() * 1000;
    if (now - looked > LOOK_NS) {
      expire(reader);
      looked = now;
    }
    if (poll_ends(reader))
      last = now;
    else if (reader->under_way == 0 || now - last > SPIN_NS)
      rest(reader);
    tell(reader);
  }
  g_mutex_unlock(&reader->lock);
  return NULL;
}

void verbs_reader_drain(struct reader *reader)
{
  g_mutex_lock(&reader->lock);
  while (reader->given_up || reader->over.first) {
    arm(reader);
    if (!poll_ends(reader) && reader->given_up)
      sleep_on(reader, g_get_monotonic_time() * 1000 + SPIN_NS);
    tell(reader);
  }
  g_mutex_unlock(&reader->lock);
}
