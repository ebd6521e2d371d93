/* A cluster on this machine: the controller's process and the servers, each a process of its own on loopback,
 * with keys made for it. They die with the process that began them. */
#ifndef DM_LOCAL_H
#define DM_LOCAL_H

#include "core/world.h"

struct local;

/* What each of the processes is told. */
struct local_options {
  const char *log, *log_format; /* log.h; format may be NULL */
  const char *metrics;     /* [HOST:]PORT of the controller's; each other has the next port; NULL = none */
  const char *record;      /* their --record; NULL = none */
  const char *rdma_device; /* the servers' --rdma-device; NULL = by the route */
  int gid_index;           /* their --gid-index; -1 = chosen */
};

/* Starts the controller's process. What all of them log goes to standard error. */
struct local *local_start(const struct local_options *options, GError **error);
/* Ends all and waits for them. */
void local_stop(struct local *local);
const char *local_cluster_file(const struct local *local);
/* There is a process in this place of a pool, or it is started. first_gpu: for GPU servers. */
gboolean local_ensure(struct local *local, enum actor_kind kind, uint32_t index, uint32_t first_gpu,
                      GError **error);
gboolean local_has(struct local *local, enum actor_kind kind, uint32_t index);
/* Ends the process in this place, if there is one, and waits for it. */
void local_end(struct local *local, enum actor_kind kind, uint32_t index);
/* Sends a signal; FALSE: nobody there. */
gboolean local_signal(struct local *local, enum actor_kind kind, uint32_t index, int signal_number);

#endif
