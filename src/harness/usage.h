/* What a cluster has used so far, as its world's meters tell: read at the warm-up's end, at the window's and
 * now and then, the differences are a run's figures and its time series. Both worlds fill it. Plain data. */
#ifndef DM_USAGE_H
#define DM_USAGE_H

#include "core/plans.h"
#include "harness/results.h"

struct usage {
  double gpu_inference_ns, gpu_training_ns, gpu_any_ns; /* sums over the GPUs of time computing */
  double gpu_held_ns;                                   /* … with a request, computing or waiting */
  double gpu_there_ns;                                  /* … in the cluster, from joining to the end */
  uint64_t net_bytes;                                   /* that crossed the network */
  uint64_t pcie_bytes; /* that crossed the GPUs' PCIe links, both ways: copied, or written by NICs */
  uint64_t loads[LOAD_SOURCES], process_starts, evictions, training_steps;
  uint64_t queue, jobs_done;
  uint64_t host_bytes, pool_bytes; /* provisioned at the GPU servers; held by the memory pool at most */
  uint64_t events;                 /* handled by the world */
};

/* Figures of the window from its two ends; loads, bytes and the like count up to now. */
void usage_figures(const struct usage *from, const struct usage *to, const struct usage *now,
                   struct figures *figures);
/* The row of the interval from last to now, span_ns > 0 long, ending at time_ns; the counts of answers are
 * the caller's. */
void usage_interval(const struct usage *last, const struct usage *now, int64_t time_ns, double span_ns,
                    struct usage_row *row);
/* Adds what another part of the cluster has used. */
void usage_add(struct usage *to, const struct usage *from);

#endif
