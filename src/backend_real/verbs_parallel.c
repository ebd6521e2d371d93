/* Registrations on several threads; see verbs_parallel.h. */
#define G_LOG_DOMAIN "transport"

#include "backend_real/verbs_parallel.h"

#define THREADS_MAX 8
#define SMALL       (16U << 20) /* bytes that take about as long as it takes to start threads */
#define PROGRESS_US 1000000     /* between two lines about how far it is */

struct working {
  const struct verbs_steps *steps;
  GMutex lock;
  GCond changed;
  uint32_t next, done, threads;
  gboolean failed;
};

static gpointer work(gpointer data)
{
  struct working *w = data;
  g_mutex_lock(&w->lock);
  while (!w->failed && w->next < w->steps->steps) {
    uint32_t i = w->next++;
    g_mutex_unlock(&w->lock);
    gboolean good = w->steps->step(w->steps->context, i);
    g_mutex_lock(&w->lock);
    w->failed = w->failed || !good;
    w->done += good;
  }
  w->threads--;
  g_cond_signal(&w->changed);
  g_mutex_unlock(&w->lock);
  return NULL;
}

static void wait_and_tell(struct working *w)
{
  const struct verbs_steps *steps = w->steps;
  gint64 tell = g_get_monotonic_time() + PROGRESS_US;
  g_mutex_lock(&w->lock);
  while (w->threads > 0) {
    if (g_cond_wait_until(&w->changed, &w->lock, tell))
      continue;
    g_message("%s: %.3f of %.3f GB", steps->what,
              (double)MIN(w->done * steps->bytes_step, steps->bytes) / 1e9, (double)steps->bytes / 1e9);
    tell += PROGRESS_US;
  }
  g_mutex_unlock(&w->lock);
}

static void one_by_one(const struct verbs_steps *steps)
{
  gboolean good = TRUE;
  for (uint32_t i = 0; good && i < steps->steps; i++)
    good = steps->step(steps->context, i);
}

void verbs_parallel(const struct verbs_steps *steps)
{
  struct working w = {.steps = steps};
  GThread *thread[THREADS_MAX];
  uint32_t threads = MIN(MIN(steps->steps, THREADS_MAX), g_get_num_processors());
  if (threads <= 1 || steps->bytes < SMALL) {
    one_by_one(steps);
    return;
  }
  g_mutex_init(&w.lock);
  g_cond_init(&w.changed);
  w.threads = threads;
  for (uint32_t i = 0; i < threads; i++)
    thread[i] = g_thread_new("verbs-register", work, &w);
  wait_and_tell(&w);
  for (uint32_t i = 0; i < threads; i++)
    g_thread_join(thread[i]);
  g_mutex_clear(&w.lock);
  g_cond_clear(&w.changed);
}
