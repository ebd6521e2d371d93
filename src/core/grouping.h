/* Groups: how the layers of a model are cut into the units that move and compute together.
 *
 * A group holds whole consecutive layers. The pipeline overlaps the network, PCIe and compute of different
 * groups, so small groups overlap more and large groups pay fewer overheads; `optimal` finds the least
 * predicted latency. */
#ifndef DM_GROUPING_H
#define DM_GROUPING_H

#include "core/hardware.h"
#include "core/model.h"

enum grouping_kind { GROUPING_PER_LAYER, GROUPING_FIXED, GROUPING_COUNT, GROUPING_PER_APP, GROUPING_OPTIMAL };

/* per-layer | fixed:BYTES | count:N | per-app | optimal */
struct grouping_policy {
  enum grouping_kind kind;
  uint64_t argument; /* bytes of `fixed` (a larger layer is a group alone), number of `count` (equal bytes, at
                        most one group a layer) */
};

enum load_source { SOURCE_HOST, SOURCE_REMOTE, SOURCE_SSD, LOAD_SOURCES };

/* The cut of one profile: group j holds layers [first_layer[j], first_layer[j + 1]). */
struct grouping {
  uint32_t groups;
  uint32_t *first_layer; /* [groups + 1] */
  uint64_t *bytes;       /* [groups] */
  double *compute_ns;    /* [groups] sum of layer times C_j, without launch or synchronise overheads */
};

/* Rates and overheads of one load path; net_* unused (0) when the source is the host cache. */
struct load_path {
  double net_bytes_s;  /* uncontended rate at which the groups arrive; 0 = infinitely fast */
  double pcie_bytes_s; /* 0 = infinitely fast: so it is, without pcie_transfer_ns, where they arrive on the
                          GPU */
  double net_stream_ns, net_group_ns, pcie_transfer_ns, group_sync_ns, launch_ns;
  gboolean remote; /* the network stage exists */
};

/* Parses a policy as written in an experiment; on error: DM_ERROR_INPUT without a file name. */
gboolean grouping_policy_parse(const char *text, struct grouping_policy *policy, GError **error);
/* Back to text; free with g_free. */
char *grouping_policy_format(const struct grouping_policy *policy);

/* Cuts profile as timed on GPU kind hw. path is used by GROUPING_OPTIMAL only. Never fails; free with
 * grouping_free. */
struct grouping *grouping_new(const struct profile *profile, uint32_t hw,
                              const struct grouping_policy *policy, const struct load_path *path);
void grouping_free(struct grouping *grouping);

/* Predicted latency of loading and computing alone (fractional ns): the formulas of the design's section 3,
 * without control latency:  N_j = net_group + B_j/net   P_j = pcie_transfer + B_j/pcie   K_j = group_sync +
 * C_j + launch x layers net(-1) = net_stream, net(j) = net(j-1) + N_j; pcie(j) = max(pcie(j-1), net(j)) +
 * P_j; comp(j) = max(comp(j-1), pcie(j)) + K_j. From the host cache net(j) = 0. stages (may be NULL) receives
 * net, pcie and comp finish times: [groups][3]. */
double grouping_latency_ns(const struct grouping *grouping, const struct load_path *path,
                           double (*stages)[3]);

/* Compute time of a resident model: sum of C_j + launch x layers, no synchronise overhead (fractional ns). */
double grouping_resident_ns(const struct grouping *grouping, double launch_ns);

#endif
