/* Balancers: which GPU a request goes to. One file each, one line in the registry of balancer.c. */
#ifndef DM_BALANCER_H
#define DM_BALANCER_H

#include "core/cluster_view.h"

struct balance_request {
  uint32_t model;
  uint32_t slot; /* demand slot or NO_INDEX */
  int64_t service_ns;
};

struct choice {
  uint32_t gpu;
  enum record_reason reason;
  struct forecast forecast;
  int64_t
      other_ns; /* forecast finish of the best other kind of choice, absolute; TIME_NEVER = none weighed */
};

struct balancer_ops {
  const char *name;
  gboolean waits; /* where choose finds no GPU, the request waits in the central queue, which is looked at
                     again at every completion; else no GPU will ever do and it is given up */
  /* FALSE: no GPU. */
  gboolean (*choose)(struct cluster_view *view, const struct balance_request *request, int64_t now,
                     struct choice *choice);
};

extern const struct balancer_ops balancer_cache_aware, balancer_least_loaded, balancer_round_robin,
    balancer_pinned, balancer_multiplexed, balancer_processes, balancer_earliest_start;

const struct balancer_ops *balancer_by_name(const char *name);
/* Index of the usable GPU with the least outstanding work, NO_INDEX if none; ties: the lowest. */
uint32_t balancer_least_work(const struct cluster_view *view);

#endif
