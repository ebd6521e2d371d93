/* One system's run in the simulator: actors, load, events and meters brought together. */
#ifndef DM_RUN_H
#define DM_RUN_H

#include "harness/backend.h"

/* Runs it to its end, or until interrupted. *notices receives lines for the user (free with g_free). FALSE +
 * error: bad input met on the way (a trace's malformed row), or the store failed. */
gboolean run_system(const struct setup *setup, const struct run_info *info, const struct run_outputs *outputs,
                    struct figures *figures, char **notices, GError **error);

#endif
