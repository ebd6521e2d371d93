/* One way of a link, as a clock; see pace.h. */
#include "backend_real/pace.h"

#define SLOT_NS_MAX 1e15 /* 11 days: a rate of next to nothing must not overflow the clock */

struct pace {
  GMutex lock;
  double bytes_ns;
  int64_t free_ns; /* the link is, from then on */
  double part_ns;  /* and so much of a nanosecond later */
  /* Since it was idle last: */
  uint64_t period;
  int64_t begin_ns; /* the first slot's */
  gboolean came;    /* what has a slot of it began to come, */
  int64_t late_ns;  /* so much after begin_ns */
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
    pace->free_ns = pace->begin_ns = ready_ns;
    pace->part_ns = 0;
    pace->period++;
    pace->came = FALSE;
    pace->late_ns = 0;
  }
  double length_ns = MIN((double)bytes / pace->bytes_ns + pace->part_ns, SLOT_NS_MAX);
  struct pace_slot slot = {.begin_ns = pace->free_ns, .period = pace->period, .came = pace->came};
  pace->free_ns = MIN(pace->free_ns + (int64_t)length_ns, INT64_MAX / 2);
  pace->part_ns = length_ns - (double)(int64_t)length_ns;
  slot.end_ns = pace->free_ns;
  g_mutex_unlock(&pace->lock);
  return slot;
}

int64_t pace_free_ns(struct pace *pace)
{
  g_mutex_lock(&pace->lock);
  int64_t free_ns = pace->free_ns;
  g_mutex_unlock(&pace->lock);
  return free_ns;
}

int64_t pace_came(struct pace *pace, const struct pace_slot *slot, int64_t now_ns)
{
  g_mutex_lock(&pace->lock);
  gboolean present = slot->period == pace->period;
  if (present && !pace->came) {
    pace->came = TRUE;
    pace->late_ns = MAX(now_ns - pace->begin_ns, 0);
    pace->free_ns = MIN(pace->free_ns + pace->late_ns, INT64_MAX / 2);
  }
  int64_t end_ns = slot->end_ns + (present && !slot->came ? pace->late_ns : 0);
  g_mutex_unlock(&pace->lock);
  return end_ns;
}
