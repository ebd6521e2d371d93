/* The figure of `validate`: latency distributions of a real run, and of the simulator's over them. */
#ifndef DM_PLOT_OVERLAY_H
#define DM_PLOT_OVERLAY_H

#include "harness/store.h"

/* A solid line for each system of `real`, a dashed one of the same colour for each of `simulated`. Errors as
 * plot_write. */
gboolean plot_overlay_write(struct store_reader *real, struct store_reader *simulated, const char *path,
                            GError **error);

#endif
