/* mps: NVIDIA MPS. A model lives in processes, bounded by GPU memory and mps_max_processes; processes run
 * side by side; a missing model costs a process start while the others go on. */
#include "core/system_parts.h"

const struct system system_mps = {
    .name = "mps",
    .summary = "NVIDIA MPS: processes share GPUs in space; a missing model starts a process",
    .balancer = "processes",
    .residence = RESIDENCE_PROCESS,
    .sharing = SHARING_PROCESS,
    .loader = &loader_process,
    .grouping = {.kind = GROUPING_PER_APP},
    .sharding = SHARDING_HYBRID,
    .needs = WORLD_PAGEABLE | WORLD_SPACE_SHARING,
    .constants = {"mps_speedup", "mps_max_processes", "mps_process_gb", "mps_process_start_s",
                  "mps_queue_max", "mps_train_share", "pageable_gbyte_s"},
};
