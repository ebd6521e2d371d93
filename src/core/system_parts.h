/* The parts that systems are composed of. */
#ifndef DM_SYSTEM_PARTS_H
#define DM_SYSTEM_PARTS_H

#include "core/system.h"
#include "core/world.h"

extern const struct loader_ops loader_pipeline, loader_stop_and_go, loader_process;
extern const struct system system_ideal, system_ideal_shared, system_distmind, system_pipeswitch, system_mps,
    system_ray, system_serverlessllm;

#endif
