/* Max-min rates by brute force, the oracle of the fair-share and stream tests: raises all flows together from
 * zero, with nothing kept between calls and no thought for speed. In long double. */
#ifndef DM_PLAIN_FILL_H
#define DM_PLAIN_FILL_H

#include <math.h>

#include "backend_sim/fair_share.h"

struct plain_flow {
  gboolean active;
  gboolean open; /* inside plain_fill: still rising */
  link_id links[FLOW_LINKS_MAX];
  uint32_t count;
  double cap;
  long double rate;
};

static inline gboolean plain_crosses(const struct plain_flow *flow, link_id l)
{
  for (uint32_t i = 0; i < flow->count; i++)
    if (flow->links[i] == l)
      return TRUE;
  return FALSE;
}

/* Share that the link could give each of its open flows. */
static inline long double plain_share(double capacity, link_id l, const struct plain_flow *flows,
                                      uint32_t count)
{
  long double left = capacity;
  uint32_t open = 0;
  for (uint32_t f = 0; f < count; f++) {
    if (!flows[f].active || !plain_crosses(&flows[f], l))
      continue;
    if (flows[f].open)
      open++;
    else
      left -= flows[f].rate;
  }
  return capacity > 0 && open ? left / open : (long double)INFINITY;
}

/* Sets the rate of every active flow. capacity: of each link, 0 = infinite. */
static inline void plain_fill(const double *capacity, uint32_t links, struct plain_flow *flows,
                              uint32_t count)
{
  for (uint32_t f = 0; f < count; f++)
    flows[f].open = flows[f].active;
  for (;;) {
    long double least = INFINITY;
    link_id link = LINK_NONE;
    uint32_t capped = count;
    for (link_id l = 0; l < links; l++) {
      long double share = plain_share(capacity[l], l, flows, count);
      if (share < least) {
        least = share;
        link = l;
      }
    }
    for (uint32_t f = 0; f < count; f++) {
      if (flows[f].open && flows[f].cap > 0 && flows[f].cap < least) {
        least = flows[f].cap;
        capped = f;
      }
    }
    for (uint32_t f = 0; f < count; f++) {
      gboolean stops = isinf(least) || (capped < count ? f == capped : plain_crosses(&flows[f], link));
      if (flows[f].open && stops) {
        flows[f].rate = least;
        flows[f].open = FALSE;
      }
    }
    if (isinf(least))
      return;
  }
}

#endif
