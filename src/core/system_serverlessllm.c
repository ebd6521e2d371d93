/* serverlessllm: local SSD and DRAM tiers; chunked loading pipeline; the server with the least estimated
 * start time. Fu et al., OSDI 2024. */
#include "core/system_parts.h"

const struct system system_serverlessllm = {
    .name = "serverlessllm",
    .summary = "ServerlessLLM: local SSD and DRAM tiers, chunked loads, least estimated start time",
    .balancer = "earliest_start",
    .residence = RESIDENCE_SSD,
    .sharing = SHARING_EXCLUSIVE,
    .loader = &loader_pipeline,
    .pipelined = TRUE,
    .host_policy = "lru",
    .grouping = {.kind = GROUPING_FIXED, .argument = 16777216}, /* chunk of its loader: 16 MiB */
    .sharding = SHARDING_PER_APP,
    .needs = WORLD_SSD,
    .constants = {"ssd_gbyte_s", "pcie_gbyte_s"},
};
