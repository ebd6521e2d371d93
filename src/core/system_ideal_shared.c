/* ideal-shared: every model on every GPU, and as many requests at once on a GPU as sharing it in space pays
 * for: the bound of systems that share GPUs in space. Where sharing gains nothing it is ideal. */
#include "core/system_parts.h"

const struct system system_ideal_shared = {
    .name = "ideal-shared",
    .summary = "the same with GPUs shared in space: bound of MPS-like systems",
    .balancer = "least_loaded",
    .residence = RESIDENCE_EVERYWHERE,
    .sharing = SHARING_BEST,
    .grouping = {.kind = GROUPING_PER_APP},
    .sharding = SHARDING_HYBRID,
    .bound = TRUE,
    .yield_layer = TRUE,
    .needs = WORLD_UNBOUNDED_MEMORY | WORLD_SPACE_SHARING,
    .constants = {"mps_speedup", "mps_max_processes"},
};
