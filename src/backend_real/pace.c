/* One way of a link, as a clock; see pace.h. */
#include "backend_real/pace.h"

#define SLOT_NS_MAX 1e15 /* 11 days: a rate of next to nothing must not overflow the clock */

struct pace {
  GMutex lock;
  double bytes_ns;
  int64_t free_ns; /* the link is, from then on */
  double part_ns;  /* and so much of a nanosecond later */
};

struct pace *pace_new(double bytes_s)
{
  struct pace *pace = g_new0(struct pace, 1);
  g_mutex_init(&pace->lock);
  pace->bytes_ns = bytes_s / 1e9;
  return pace;
}

void pace_free(struct pace *pace)
{
  if (!pace)
    return;
  g_mutex_clear(&pace->lock);
  g_free(pace);
}

struct pace_slot pace_put(struct pace *pace, uint64_t bytes, int64_t ready_ns)
{
  g_mutex_lock(&pace->lock);
  if (ready_ns > pace->free_ns) {
    pace->free_ns = ready_ns;
    pace->part_ns = 0;
  }
  double length_ns = MIN((double)bytes / pace->bytes_ns + pace->part_ns, SLOT_NS_MAX);
  struct pace_slot slot = {.begin_ns = pace->free_ns};
  pace->free_ns = MIN(pace->free_ns + (int64_t)length_ns, INT64_MAX / 2);
  pace->part_ns = length_ns - (double)(int64_t)length_ns;
  slot.end_ns = pace->free_ns;
  g_mutex_unlock(&pace->lock);
  return slot;
}
