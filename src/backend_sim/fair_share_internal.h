/* Inside of the fair-share solver: what fair_share.c (links, flows, reports) and level_solver.c (levels) both
 * see. */
#ifndef DM_FAIR_SHARE_INTERNAL_H
#define DM_FAIR_SHARE_INTERNAL_H

#include "backend_sim/fair_share.h"
#include "backend_sim/level_heap.h"

enum link_flag {
  LINK_DIRTY = 1,   /* changed by the caller since the last update */
  LINK_STALE = 2,   /* its fill is to be worked out again */
  LINK_TOUCHED = 4, /* its level was set in this update */
};

/* A flow as one of its links sees it: all that filling the link reads, side by side. */
struct crossing {
  flow_id flow;
  link_id other[FLOW_LINKS_MAX - 1]; /* repeated to fill up; the link itself where there is no other */
  double cap;                        /* INFINITY = none */
};

struct link {
  double capacity;
  double fill;
  double before; /* level before this update, if touched */
  struct crossing *crossings;
  uint32_t count;
  uint32_t size;
  uint8_t flags;
};

struct flow {
  link_id links[FLOW_LINKS_MAX];
  uint32_t place[FLOW_LINKS_MAX]; /* among the crossings of each link */
  uint32_t count;
  flow_id next_free;
  double cap;
};

struct link_list {
  link_id *ids;
  uint32_t count;
};

struct fair_share {
  struct link *links;
  double *level;
  uint32_t link_count;
  uint32_t link_size;
  struct flow *flows;
  link_id *bottleneck; /* of each flow */
  uint32_t flow_count;
  uint32_t flow_size;
  flow_id free;
  struct level_heap heap; /* links with level != fill */
  struct link_list dirty;
  struct link_list stale;
  struct link_list touched;
  flow_id *fresh; /* added since the last update; may hold flows that are gone, or twice in use */
  uint32_t fresh_count;
  uint32_t fresh_size;
  double *rest;   /* scratch of one fill */
  flow_id *moved; /* answers */
  uint32_t moved_count;
};

/* Lists a link once: flag tells whether it is in. */
static inline void link_mark(struct fair_share *fair, struct link_list *list, link_id l, enum link_flag flag)
{
  if (fair->links[l].flags & flag)
    return;
  fair->links[l].flags |= flag;
  list->ids[list->count++] = l;
}

/* rest(l, f); the caller has put level(l) to infinity, so that a flow without other links may name l. */
static inline double crossing_rest(const double *level, const struct crossing *crossing)
{
  double a = level[crossing->other[0]], b = level[crossing->other[1]], c = level[crossing->other[2]];
  a = b < a ? b : a;
  c = crossing->cap < c ? crossing->cap : c;
  return c < a ? c : a;
}

/* Brings the levels of all links up to date with the dirty ones; lists those whose level was set as touched.
 */
void levels_solve(struct fair_share *fair);

#endif
