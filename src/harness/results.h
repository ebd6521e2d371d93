/* Results of one system's run: the figures of the JSON object and the rows of the result database. Plain
 * data. */
#ifndef DM_RESULTS_H
#define DM_RESULTS_H

#include <glib.h>
#include "core/outcome.h"
#include "core/record.h"

/* One request as its client saw it; times in ns from the run's start, -1 where the request never got so far.
 */
struct request_row {
  uint64_t id; /* 0, 1, … in order of arrival */
  uint32_t model;
  uint32_t gpu;                                      /* global number, NO_INDEX if never dispatched */
  int64_t arrival_ns, dispatch_ns, start_ns, end_ns; /* end: the answer at the client */
  enum outcome outcome;
  enum found found; /* of completed requests */
  gboolean slo_met;
};

/* Averages over one interval of the time series, ending at time_ns. */
struct usage_row {
  int64_t time_ns;
  double gpus_inference, gpus_training, gpus_held; /* mean number of GPUs */
  double net_bytes_s, pcie_bytes_s;
  uint64_t queue;                       /* requests in the system and not yet started, at time_ns */
  uint64_t training_steps;              /* done in the interval */
  uint64_t completed, rejected, failed; /* in the interval */
};

struct latency_figures {
  double mean, p50, p90, p95, p99, p999, max; /* ms; all 0 when nothing completed */
};

/* All figures of one system's run, as the JSON object names them (design, section 6). */
struct figures {
  uint64_t requests, completed, rejected, failed; /* arrivals in the window */
  double duration_s, window_s, throughput_rps;
  struct latency_figures latency_ms;
  double slo_attainment;
  double gpu_utilization, gpu_inference, gpu_training, gpu_held;
  uint64_t found[FOUND_COUNT];
  uint64_t loads_host, loads_ssd, loads_remote, loads_process_start;
  uint64_t net_bytes, pcie_bytes, evictions;
  uint64_t host_memory_bytes, memory_pool_bytes;
  uint64_t training_steps, training_jobs;
  uint64_t events;
  double wall_s;
};

/* What stands beside the figures of one system. */
struct run_info {
  const char *experiment, *system, *backend; /* backend: "sim" or "real" */
  const char *text, *overrides;              /* experiment file as read; --set lines */
  const char *path;                          /* of that file, absolute: what it names lies near it */
  uint32_t processes;                        /* of the run on this machine, all of which want a core */
  uint64_t seed;
  const char *constants; /* "key=value, key=value": constants of the system's hardware that act on it; printed
                            under the table; "" for none */
  const char *notices; /* lines for the user: estimated profiles, tokens ignored, skipped rows; "" for none */
  int64_t warmup_ns;
};

#endif
