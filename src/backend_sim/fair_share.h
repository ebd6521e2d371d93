/* Max-min fair sharing of links between flows: progressive filling. Rates only; no time, no bytes.
 *
 * Links have a capacity (bytes/s; 0 = infinite). A flow crosses up to FLOW_LINKS_MAX distinct links and may
 * have a cap of its own. Rates are the unique max-min allocation; after a batch of changes fair_share_update
 * brings them up to date. A flow over infinite links only, without cap, has rate INFINITY.
 *
 * All flows that a link holds back have one rate, the link's level. So a change is told in few words, however
 * many flows it slows: the links whose level changed, and the flows that are now held back by something
 * else. */
#ifndef DM_FAIR_SHARE_H
#define DM_FAIR_SHARE_H

#include <glib.h>
#include <stdint.h>

#define FLOW_LINKS_MAX 4
#define LINK_NONE      UINT32_MAX

typedef uint32_t link_id;
typedef uint32_t flow_id;

struct fair_share;

/* What a batch of changes came to. Valid until the next update. */
struct fair_changes {
  const link_id *levels; /* links with another level than before */
  uint32_t level_count;
  const flow_id *moved; /* new flows, and flows with another bottleneck than before */
  uint32_t moved_count;
};

struct fair_share *fair_share_new(void);
void fair_share_free(struct fair_share *fair);
/* Ids count up from 0. capacity: finite, not negative. */
link_id fair_share_add_link(struct fair_share *fair, double capacity);
void fair_share_set_capacity(struct fair_share *fair, link_id link, double capacity);
/* Adds a flow with rate 0 until the next update. cap: of the flow alone, 0 = none. Ids are reused after
 * removal. */
flow_id fair_share_add_flow(struct fair_share *fair, const link_id *links, uint32_t count, double cap);
void fair_share_remove_flow(struct fair_share *fair, flow_id flow);
/* Solves for the links and flows that the changes since the last call can reach. */
void fair_share_update(struct fair_share *fair, struct fair_changes *changes);
double fair_share_rate(const struct fair_share *fair, flow_id flow);
/* The link that holds the flow back: its rate is that link's level. LINK_NONE: its own cap does, or nothing.
 */
link_id fair_share_bottleneck(const struct fair_share *fair, flow_id flow);
/* Rate of the flows that the link holds back; INFINITY when it holds back none. */
double fair_share_level(const struct fair_share *fair, link_id link);

#endif
