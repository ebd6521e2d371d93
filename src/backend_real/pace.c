/* A limit on bytes a second; see pace.h. */
#include "backend_real/pace.h"

#include <math.h>
#include <time.h>

struct pace {
  GMutex lock;
  double bytes_ns;
  double depth;  /* most that the bucket holds, bytes */
  double tokens; /* in it at at_ns */
  int64_t at_ns;
  int64_t told_ns; /* the latest time that somebody was told to come again */
};

struct pace *pace_new(double bytes_s, int64_t now_ns)
{
  struct pace *pace = g_new0(struct pace, 1);
  g_mutex_init(&pace->lock);
  pace->bytes_ns = bytes_s / 1e9;
  /* A rate of a few bytes a second must still be able to gather the one byte that somebody wants. */
  pace->depth = MAX(pace->bytes_ns * PACE_DEPTH_NS, 4);
  pace->at_ns = now_ns;
  return pace;
}

void pace_free(struct pace *pace)
{
  if (!pace)
    return;
  g_mutex_clear(&pace->lock);
  g_free(pace);
}

static void fill(struct pace *pace, int64_t now_ns)
{
  /* Threads read their clocks before they come here, so one may be a little behind another. */
  if (now_ns <= pace->at_ns)
    return;
  pace->tokens = MIN(pace->tokens + (double)(now_ns - pace->at_ns) * pace->bytes_ns, pace->depth);
  pace->at_ns = now_ns;
}

/* When there will be `least` for one more than those who were told already: what they will take comes first.
 */
static int64_t next_time(const struct pace *pace, double least)
{
  double wait_ns = ceil((least - pace->tokens) / pace->bytes_ns), each_ns = ceil(least / pace->bytes_ns);
  int64_t alone = pace->at_ns + (int64_t)MIN(wait_ns, 3.6e12) + 1;
  return pace->told_ns > pace->at_ns ? MAX(alone, pace->told_ns + (int64_t)MIN(each_ns, 3.6e12)) : alone;
}

uint64_t pace_take(struct pace *pace, uint64_t want, int64_t now_ns, int64_t *again_ns)
{
  g_mutex_lock(&pace->lock);
  fill(pace, now_ns);
  double least = MAX(MIN((double)want, pace->depth / 4), 1);
  uint64_t given = 0;
  if (pace->tokens >= least) {
    given = pace->tokens >= (double)want ? want : (uint64_t)pace->tokens;
    pace->tokens -= (double)given;
  } else {
    *again_ns = pace->told_ns = next_time(pace, least);
  }
  g_mutex_unlock(&pace->lock);
  return given;
}

void pace_return(struct pace *pace, uint64_t bytes)
{
  g_mutex_lock(&pace->lock);
  pace->tokens += (double)bytes;
  g_mutex_unlock(&pace->lock);
}

uint64_t pace_share_take(struct pace_share *share, uint64_t want, int64_t *again_ns)
{
  if (!share->pace)
    return want;
  struct timespec clock;
  clock_gettime(CLOCK_MONOTONIC, &clock);
  int64_t now = (int64_t)clock.tv_sec * 1000000000 + clock.tv_nsec;
  uint64_t given = now < share->again_ns ? 0 : pace_take(share->pace, want, now, &share->again_ns);
  if (!given)
    *again_ns = share->again_ns;
  return given;
}

void pace_share_return(struct pace_share *share, uint64_t bytes)
{
  if (share->pace)
    pace_return(share->pace, bytes);
}
