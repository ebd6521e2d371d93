/* A cluster on this machine: the controller's process and the servers, each a process of its own on loopback,
 * with keys made for it. They die with the process that began them. */
#ifndef DM_LOCAL_H
#define DM_LOCAL_H

#include "core/world.h"

struct local;

/* Starts the controller's process. What all of them log, from the level on, goes to standard error. record:
 * their --record, NULL: none. */
struct local *local_start(const char *log_level, const char *record, GError **error);
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
