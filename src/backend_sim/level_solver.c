/* Levels of links, incrementally: the heart of the fair-share solver (fair_share.h).
 *
 * The allocation as a fixed point. Let level(l) be the rate at which link l fills up as all flows are raised
 * together:
 *
 *     level(l) = the least x with  sum over flows f of l of min(x, rest(l, f)) = capacity(l),  or infinity
 *     rest(l, f) = min(cap of f, levels of the other links of f)
 *     rate(f) = min(cap of f, levels of all its links)
 *
 * level(l) depends on lower levels alone: a rest above x counts as x. So the levels are unique and can be
 * settled from the lowest up, and what a change cannot reach from below it does not reach at all: below the
 * lowest level that changes, filling goes as before. We keep for each link the right side, "fill", beside the
 * level that the others believe in. Links with level != fill wait in a heap, keyed by the lower of the two;
 * the first of them takes its fill for its level, and the fills of the higher links that share unrestrained
 * flows with it are worked out again. This is the scheme of Ramalingam and Reps (dynamic shortest paths, J.
 * Algorithms 21, 1996), which needs only that dependence on lower values. In a random topology a change so
 * touches some ten links, however many there are.
 *
 * Sums are worked out anew from the flows, never carried along: no rounding builds up over a run. */
#include "backend_sim/fair_share_internal.h"

#include <math.h>

/* Links whose keys differ by less are settled in one go: symmetric links often come out an ulp apart, and the
 * flows that they share are then looked at once. A link settled too early is merely settled again. */
#define SAME_LEVEL (1 + 1e-9)

/* Least x with sum of min(x, rest) = capacity over count rests, those that are infinite left out of the
 * array. Passes: share what is left among the flows still open, close those that want less. x never falls,
 * also in its last bit, so that the result depends on no rest above it: the order in which links are settled
 * rests on that. */
static double water_level(double capacity, double *rest, uint32_t finite, uint32_t count)
{
  double left = capacity, level = 0;
  while (count) {
    double share = left / count;
    level = share > level ? share : level;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < finite; i++) {
      double want = rest[i];
      gboolean closes = want < level;
      left -= closes ? want : 0;
      count -= closes;
      rest[kept] = want;
      kept += !closes;
    }
    if (kept == finite)
      return level;
    finite = kept;
  }
  return INFINITY;
}

static double link_fill(struct fair_share *fair, link_id l)
{
  const struct link *link = &fair->links[l];
  if (link->capacity == 0 || link->count == 0)
    return INFINITY;
  double own = fair->level[l];
  fair->level[l] = INFINITY;
  uint32_t finite = 0;
  for (uint32_t i = 0; i < link->count; i++) {
    double rest = crossing_rest(fair->level, &link->crossings[i]);
    fair->rest[finite] = rest;
    finite += rest < INFINITY;
  }
  fair->level[l] = own;
  return water_level(link->capacity, fair->rest, finite, link->count);
}

static inline void link_queue(struct fair_share *fair, link_id l)
{
  double fill = fair->links[l].fill, level = fair->level[l];
  if (fill == level)
    level_heap_remove(&fair->heap, l);
  else
    level_heap_set(&fair->heap, l, fill < level ? fill : level);
}

static void links_refresh(struct fair_share *fair, struct link_list *list, enum link_flag flag)
{
  for (uint32_t i = 0; i < list->count; i++) {
    link_id l = list->ids[i];
    fair->links[l].flags &= ~flag;
    fair->links[l].fill = link_fill(fair, l);
    link_queue(fair, l);
  }
  list->count = 0;
}

/* Lists a link once whose fill may depend on levels from key on. Without a branch: which links do is anyone's
 * guess. */
static inline void stale_mark(struct fair_share *fair, link_id other, link_id l, double key)
{
  struct link *link = &fair->links[other];
  uint32_t joins = (link->fill > key) & (other != l) & !(link->flags & LINK_STALE);
  fair->stale.ids[fair->stale.count] = other;
  fair->stale.count += joins;
  link->flags |= joins ? LINK_STALE : 0;
}

/* The link's level becomes its fill. Marks those links stale whose fill may depend on it. */
static void link_settle(struct fair_share *fair, link_id l, double key)
{
  struct link *link = &fair->links[l];
  if (!(link->flags & LINK_TOUCHED))
    link->before = fair->level[l];
  link_mark(fair, &fair->touched, l, LINK_TOUCHED);
  fair->level[l] = INFINITY;
  for (uint32_t i = 0; i < link->count; i++) {
    const struct crossing *crossing = &link->crossings[i];
    if (crossing_rest(fair->level, crossing) < key)
      continue;
    stale_mark(fair, crossing->other[0], l, key);
    for (uint32_t k = 1; k < FLOW_LINKS_MAX - 1 && crossing->other[k] != crossing->other[0]; k++)
      stale_mark(fair, crossing->other[k], l, key);
  }
  fair->level[l] = link->fill;
}

void levels_solve(struct fair_share *fair)
{
  struct level_heap *heap = &fair->heap;
  links_refresh(fair, &fair->dirty, LINK_DIRTY);
  while (heap->count) {
    double limit = heap->entries[0].key * SAME_LEVEL;
    while (heap->count && heap->entries[0].key <= limit) {
      struct level_entry first = heap->entries[0];
      level_heap_remove(heap, first.link);
      if (!(fair->links[first.link].flags & LINK_STALE))
        link_settle(fair, first.link, first.key);
    }
    links_refresh(fair, &fair->stale, LINK_STALE);
  }
}
