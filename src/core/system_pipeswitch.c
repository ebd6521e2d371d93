/* pipeswitch: every server's host memory holds all models; two-stage pipeline over PCIe; least outstanding
 * work. Bai et al., OSDI 2020. */
#include "core/system_parts.h"

const struct system system_pipeswitch = {
    .name = "pipeswitch",
    .summary = "every server's host memory holds all models; pipelined loads over PCIe",
    .balancer = "least_loaded",
    .residence = RESIDENCE_HOST,
    .sharing = SHARING_EXCLUSIVE,
    .loader = &loader_pipeline,
    .pipelined = TRUE,
    .grouping = {.kind = GROUPING_OPTIMAL},
    .sharding = SHARDING_HYBRID,
    .yield_layer = TRUE,
    .constants = {"pcie_gbyte_s"},
};
