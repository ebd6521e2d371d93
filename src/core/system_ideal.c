/* ideal: every model on every GPU, memory unbounded, one request at a time. With equal GPUs one
 * first-come-first-served queue: the bound on the throughput of systems that run one request at a time. */
#include "core/system_parts.h"

const struct system system_ideal = {
    .name = "ideal",
    .summary = "every model resident everywhere: bound of one-at-a-time systems",
    .balancer = "least_loaded",
    .residence = RESIDENCE_EVERYWHERE,
    .sharing = SHARING_EXCLUSIVE,
    .grouping = {.kind = GROUPING_PER_APP},
    .sharding = SHARDING_HYBRID,
    .bound = TRUE,
    .yield_layer = TRUE,
    .needs = WORLD_UNBOUNDED_MEMORY,
};
