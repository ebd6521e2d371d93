/* distmind: models in the memory pool, sharded hybrid; host cache; three-stage pipeline with optimal groups;
 * cache-aware balancing; training fills idle GPUs. Jin et al., IEEE/ACM ToN 2024. */
#include "core/system_parts.h"

const struct system system_distmind = {
    .name = "distmind",
    .summary =
        "GPU pool and memory pool: pipelined loads over the network, host cache, cache-aware balancing",
    .balancer = "cache_aware",
    .residence = RESIDENCE_POOL,
    .sharing = SHARING_EXCLUSIVE,
    .loader = &loader_pipeline,
    .pipelined = TRUE,
    .host_policy = "weighted",
    .grouping = {.kind = GROUPING_OPTIMAL},
    .sharding = SHARDING_HYBRID,
    .yield_layer = TRUE,
    .constants = {"nic_gbit_s", "memory_nic_gbit_s", "pcie_gbyte_s"},
};
