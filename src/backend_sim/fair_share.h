/* Max-min fair sharing of links between flows: progressive filling. Rates only; no time, no bytes.
 *
 * Links have a capacity (bytes/s; 0 = infinite). A flow crosses up to FLOW_LINKS_MAX distinct links and may have a cap of
 * its own. Rates are the unique max-min allocation; after a batch of changes fair_share_solve brings them up to date and
 * reports the flows whose rate changed. A flow over infinite links only, without cap, has rate INFINITY. */
#ifndef DM_FAIR_SHARE_H
#define DM_FAIR_SHARE_H

#include <glib.h>
#include <stdint.h>

#define FLOW_LINKS_MAX 4

typedef uint32_t link_id;
typedef uint32_t flow_id;

struct fair_share;

struct fair_share *fair_share_new(void);
void fair_share_free(struct fair_share *fair);
link_id fair_share_add_link(struct fair_share *fair, double capacity);
void fair_share_set_capacity(struct fair_share *fair, link_id link, double capacity);
/* Adds a flow with rate 0 until the next solve. cap: of the flow alone, 0 = none. Ids are reused after removal. */
flow_id fair_share_add_flow(struct fair_share *fair, const link_id *links, uint32_t count, double cap);
void fair_share_remove_flow(struct fair_share *fair, flow_id flow);
/* Solves for the links and flows that the changes since the last call can reach. Returns the number of flows whose rate
 * changed, with their ids in *changed, in increasing order (valid until the next call). */
uint32_t fair_share_solve(struct fair_share *fair, const flow_id **changed);
double fair_share_rate(const struct fair_share *fair, flow_id flow);
/* Sum of the rates of the link's flows. */
double fair_share_link_rate(const struct fair_share *fair, link_id link);

#endif
