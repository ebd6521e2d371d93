/* Ends of a device's work; see ends.h. */
#include "ends.h"

#include <string.h>
#include <time.h>

#define PATIENCE_S 20

struct ends *ends_new(void)
{
  struct ends *ends = g_new0(struct ends, 1);
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&ends->lock, NULL);
  pthread_cond_init(&ends->more, &monotonic);
  pthread_condattr_destroy(&monotonic);
  return ends;
}

void ends_free(struct ends *ends)
{
  pthread_cond_destroy(&ends->more);
  pthread_mutex_destroy(&ends->lock);
  g_free(ends);
}

void ends_ended(void *context, uint64_t tag, enum device_status status, int64_t start_ns, int64_t end_ns)
{
  struct ends *ends = context;
  if (tag == 0 || tag >= ENDS_MAX)
    g_error("the end of tag %" G_GUINT64_FORMAT " was told", tag);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  pthread_mutex_lock(&ends->lock);
  struct end *end = &ends->end[tag];
  int times = end->times + 1;
  *end = (struct end){
      .times = times,
      .status = status,
      .start_ns = start_ns,
      .end_ns = end_ns,
      .told_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
      .order = ends->count++,
  };
  pthread_cond_broadcast(&ends->more);
  pthread_mutex_unlock(&ends->lock);
}

const struct end *ends_await(struct ends *ends, uint64_t tag)
{
  struct timespec deadline;
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  deadline.tv_sec += PATIENCE_S;
  pthread_mutex_lock(&ends->lock);
  int late = 0;
  while (!ends->end[tag].times && !late)
    late = pthread_cond_timedwait(&ends->more, &ends->lock, &deadline);
  const struct end *end = ends->end[tag].times ? &ends->end[tag] : NULL;
  pthread_mutex_unlock(&ends->lock);
  return end;
}

void ends_clear(struct ends *ends)
{
  pthread_mutex_lock(&ends->lock);
  memset(ends->end, 0, sizeof ends->end);
  ends->count = 0;
  pthread_mutex_unlock(&ends->lock);
}
