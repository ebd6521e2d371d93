/* Cost: the load path between two machines, at rates that nobody else uses.
 *
 * What groupings are made for and what balancers predict from when no link use was reported. Where each
 * overhead acts is the formula of grouping_latency_ns. */
#ifndef DM_COST_H
#define DM_COST_H

#include "core/hardware.h"
#include "core/sharding.h"

/* Path of a load to a GPU of `gpu` from `source`. Network rate, for SOURCE_REMOTE: bytes per second at which
 * one load arrives when the streams of all memory servers that it reads from run at once, hybrid, vertical,
 * horizontal: min(nic, memory_servers x memory_nic);   per-app: min(nic, memory_nic); sequential: one group
 * after the other, so horizontal, whose groups lie on one server each, has min(nic, memory_nic). (vertical's
 * ranges are larger than groups, so a single group may arrive slower than that; the whole model does not.)
 * SOURCE_SSD: the SSD's rate, no network overheads. SOURCE_HOST: no network stage. A rate of 0 is infinitely
 * fast. memory may be NULL unless source is SOURCE_REMOTE.
 *
 * gpudirect: NICs write remote loads straight into GPU memory. Two stages, network and compute:
 *   net(-1) = net_stream, net(j) = net(j-1) + net_group + B_j / min(net rate, pcie rate);
 *   comp(j) = max(comp(j-1), net(j)) + K_j.
 * The bytes cross the GPU's PCIe link on their way, so the network rate is at most PCIe's, and there is no
 * PCIe stage: its rate is infinitely fast, and pcie_transfer_ns, the cost of a copy engine's transfer, is
 * nowhere. group_sync_ns stays: the computation of a group waits for its arrival instead of its copy. */
struct load_path cost_load_path(const struct hardware *gpu, const struct hardware *memory,
                                uint32_t memory_servers, enum sharding_kind sharding, gboolean sequential,
                                gboolean gpudirect, enum load_source source);

#endif
