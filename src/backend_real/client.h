/* The client of a cluster: begins runs, drives them with the harness's load generator, and gathers what comes
 * of them. */
#ifndef DM_CLIENT_H
#define DM_CLIENT_H

#include "backend_real/cluster_file.h"
#include "backend_real/run_spec.h"
#include "harness/backend.h"
#include "harness/recorder.h"

struct client;

/* Links to the controller; waits for its welcome. metrics: socket to serve them on, which it takes; -1 =
 * none.
 */
struct client *client_new(const struct cluster_file *file, int metrics, GError **error);
void client_free(struct client *client);
/* Whether a run of it began, whatever became of it. client may be NULL. */
gboolean client_began(const struct client *client);

/* What the user wants of every run. */
struct client_options {
  const char *device, *transport, *image_folder;
  double pace_gbit_s;
  gboolean share_gpus;
  char **sets;
  struct recording *recording; /* of its own actor, NULL: none */
  /* [events] that need hands on the machines: add and fail. NULL: refused. */
  gboolean (*event)(void *context, const struct experiment_event *event, GError **error);
  void *context;
};

/* As run_system of the simulator: one system, to its end. */
gboolean client_run(struct client *client, const struct client_options *options, const struct setup *setup,
                    const struct run_info *info, const struct run_outputs *outputs, struct figures *figures,
                    char **notices, GError **error);

#endif
