/* The controller's process: the hub that all others are linked to, and the core's controller during a run.
 *
 * One run at a time, begun by a client: the servers of its places are told to prepare, those that read get
 * the right to read those that serve, the controller starts, and mail flows. A server that links while a run
 * is on is taken in; one that breaks off is told to the controller as lost. What servers have used is summed
 * up here, and kept of those that are gone.
 *
 * Who is alive: the core's heartbeats notice a server that is silent, and hear it again when it speaks, with
 * all that it holds. The hub notices a connection that broke or whose other end gave no sign of life for 2 s;
 * such a server links anew (server.h), is prepared anew and joins as one that just started: nothing of what
 * it held or computed before counts. Both tell the same to the controller, who listens to the first. A server
 * that a run begins with and that fails before it began fails the run; later, no server does. */
#ifndef DM_COORDINATOR_H
#define DM_COORDINATOR_H

#include "backend_real/control.h"

/* Until SIGTERM or SIGINT. metrics: socket to serve them on (metrics_http.h), which it takes; -1 = none.
 * record: recordings go to a file of this name (recording_create), NULL: nowhere. listening: called with the
 * hub's address once it listens; may be NULL. */
gboolean coordinator_run(const struct hub_config *config, int metrics, const char *record,
                         void (*listening)(void *context, const char *endpoint), void *context,
                         GError **error);

#endif
