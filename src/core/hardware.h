/* What one machine type offers and costs: the [hardware] section of a hardware file, in base units.
 *
 * Owned by whoever read it; plain data, no pointers. Rates are bytes per second (0 = infinitely fast), costs
 * are nanoseconds. The meaning of each field, with its file key, default and unit, is the table in
 * harness/hardware_file.c; where each overhead acts is the formula in cost.h. */
#ifndef DM_HARDWARE_H
#define DM_HARDWARE_H

#include "core/units.h"

#define HARDWARE_SPEEDUPS_MAX 64

struct hardware {
  char name[64];
  char gpu[64]; /* names the folder of measured profiles */
  uint64_t gpu_memory_bytes;
  uint64_t host_memory_bytes;
  uint32_t gpus_per_server;
  double nic_bytes_s;        /* of a GPU server, achieved goodput */
  double memory_nic_bytes_s; /* of a memory server */
  double spine_oversubscription;
  double pcie_bytes_s;
  uint32_t gpus_per_pcie_switch;
  double pageable_bytes_s;         /* host to device from pageable memory */
  double pageable_to_host_bytes_s; /* device to host into pageable memory */
  uint64_t ssd_bytes;
  double ssd_bytes_s;
  double compute_scale; /* multiplies every compute time */

  double mps_speedup[HARDWARE_SPEEDUPS_MAX]; /* total speed of 1, 2, 3 … processes relative to one */
  uint32_t mps_speedups;                     /* entries in use; beyond the last, the last holds */
  uint32_t mps_max_processes;
  uint64_t mps_process_bytes;
  double mps_process_start_ns;
  uint32_t mps_queue_max;
  double mps_train_share; /* of the GPU, for a trainer beside inference */
  double ray_proxy_ns;
  double ray_tensor_ns;

  double control_ns;
  double net_stream_ns;
  double net_group_ns;
  double pcie_transfer_ns;
  double group_sync_ns;
  double launch_ns;
};

/* Total speed of n processes sharing the GPU, relative to one alone; n >= 1. */
static inline double hardware_speedup(const struct hardware *hw, uint32_t n)
{
  if (hw->mps_speedups == 0)
    return 1;
  return hw->mps_speedup[n <= hw->mps_speedups ? n - 1 : hw->mps_speedups - 1];
}

#endif
