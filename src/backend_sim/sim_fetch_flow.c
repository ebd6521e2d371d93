/* What holds the streams of a fetch back: sequential order, the window, and a ring smaller than what is read.
 */
#include "backend_sim/sim_internal.h"

static gboolean over_window(const struct sim_fetch *f)
{
  return f->window > 0 && f->arrived > f->uploaded + f->window;
}

static uint64_t group_end(const struct sim_fetch *f, uint32_t group)
{
  return f->plan->group_offset[group] + f->plan->group_bytes[group];
}

/* Bytes of the ring that are taken when it holds the image up to `end`: from the first group that is still to
 * be uploaded. */
static uint64_t ring_needs(const struct sim_fetch *f, uint64_t end)
{
  return f->pending < f->groups ? end - f->plan->group_offset[f->pending] : 0;
}

static gboolean over_ring(const struct sim_fetch *f, uint32_t group)
{
  return f->ring > 0 && ring_needs(f, group_end(f, group)) > f->ring;
}

static uint32_t next_group(const struct sim_fetch *f, uint32_t s)
{
  return f->passed[s] < f->milestones[s] ? f->slice_group[s * f->groups + f->passed[s]] : UINT32_MAX;
}

/* A stream stops at a milestone while too much waits for PCIe or the ring has no room for its next group, but
 * never one that the next group to be uploaded needs: so that can always arrive. In sequential order it stops
 * where it is ahead of the group allowed. */
static gboolean must_pause(const struct sim_fetch *f, uint32_t s)
{
  uint32_t next = next_group(f, s);
  if (f->sequential)
    return next > f->allowed;
  return next > f->pending && (over_window(f) || over_ring(f, next));
}

/* The stream's next group begins to come. */
static void begin_group(struct sim_fetch *f, uint32_t s)
{
  if (f->ring == 0)
    return;
  f->ring_end = MAX(f->ring_end, group_end(f, next_group(f, s)));
  g_assert(ring_needs(f, f->ring_end) <= f->ring);
}

void sim_fetch_go_on(struct sim *sim, struct sim_fetch *f, uint32_t s, double at)
{
  if (!must_pause(f, s)) {
    begin_group(f, s);
    return;
  }
  stream_pause(sim->net, f->stream[s], at);
  f->paused[s] = TRUE;
  f->paused_count++;
}

void sim_fetch_resume(struct sim *sim, struct sim_fetch *f, double at)
{
  for (uint32_t s = 0; s < f->streams && f->paused_count > 0; s++) {
    if (!f->paused[s] || must_pause(f, s))
      continue;
    f->paused[s] = FALSE;
    f->paused_count--;
    begin_group(f, s);
    if (!f->stalled[s])
      stream_resume(sim->net, f->stream[s], at);
  }
}

void sim_fetch_allow_next(struct sim *sim, struct sim_fetch *f, double at)
{
  if (f->allowed + 1 > f->lowest || f->lowest == f->groups || over_window(f) || over_ring(f, f->lowest))
    return;
  f->allowed = f->lowest;
  sim_fetch_resume(sim, f, at);
}
