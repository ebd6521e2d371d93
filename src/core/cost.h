/* Uncontended rates and overheads of a load path; see grouping.h for the latency that follows from them. */
#ifndef DM_COST_H
#define DM_COST_H

#include "core/sharding.h"

/* remote: hybrid and vertical read from all servers at once, min(GPU NIC, servers x memory NIC); per-app from one,
 * min(GPU NIC, memory NIC); horizontal from all at once in parallel order, from one in sequential order.
 * ssd: the SSD's rate; host: no network stage. A rate of 0 is infinitely fast. */
struct load_path cost_load_path(const struct hardware *gpu, const struct hardware *memory, uint32_t memory_servers,
                                enum sharding_kind sharding, gboolean sequential, enum load_source source);

#endif
