/* ray: Ray Serve. Replicas swap models stop and go: the old one back to pageable host memory, the new one
 * from there, tensor by tensor; requests pass an HTTP proxy. A replica a demand slot where demand has slots,
 * else model multiplexing. */
#include "core/system_parts.h"

const struct system system_ray = {
    .name = "ray",
    .summary = "Ray Serve: replicas that swap models stop and go, behind an HTTP proxy",
    .balancer = "multiplexed",
    .balancer_shifting = "pinned",
    .residence = RESIDENCE_HOST,
    .sharing = SHARING_EXCLUSIVE,
    .loader = &loader_stop_and_go,
    .grouping = {.kind = GROUPING_PER_APP},
    .sharding = SHARDING_HYBRID,
    .proxy = TRUE,
    .needs = WORLD_PAGEABLE,
    .constants = {"ray_proxy_us", "ray_tensor_us", "pageable_gbyte_s", "pageable_to_host_gbyte_s"},
};
