/* Uncontended load paths; see cost.h. */
#include "core/cost.h"

/* The slower of two rates, where 0 is infinitely fast. */
static double rate_min(double a, double b)
{
  if (a <= 0 || b <= 0)
    return a <= 0 ? b : a;
  return MIN(a, b);
}

static double remote_rate(const struct hardware *gpu, const struct hardware *memory, uint32_t memory_servers,
                          enum sharding_kind sharding, gboolean sequential)
{
  gboolean one = sharding == SHARDING_PER_APP || (sharding == SHARDING_HORIZONTAL && sequential);
  uint32_t senders = one ? 1 : MAX(memory_servers, 1);
  return rate_min(gpu->nic_bytes_s, memory->memory_nic_bytes_s * senders);
}

struct load_path cost_load_path(const struct hardware *gpu, const struct hardware *memory,
                                uint32_t memory_servers, enum sharding_kind sharding, gboolean sequential,
                                gboolean gpudirect, enum load_source source)
{
  struct load_path path = {
      .pcie_bytes_s = gpu->pcie_bytes_s,
      .pcie_transfer_ns = gpu->pcie_transfer_ns,
      .group_sync_ns = gpu->group_sync_ns,
      .launch_ns = gpu->launch_ns,
      .remote = source != SOURCE_HOST,
  };
  if (source == SOURCE_REMOTE) {
    path.net_bytes_s = remote_rate(gpu, memory, memory_servers, sharding, sequential);
    path.net_stream_ns = gpu->net_stream_ns;
    path.net_group_ns = gpu->net_group_ns;
  } else if (source == SOURCE_SSD) {
    path.net_bytes_s = gpu->ssd_bytes_s;
  }
  if (source == SOURCE_REMOTE && gpudirect) {
    path.net_bytes_s = rate_min(path.net_bytes_s, gpu->pcie_bytes_s);
    path.pcie_bytes_s = path.pcie_transfer_ns = 0;
  }
  return path;
}
