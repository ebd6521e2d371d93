/* Chrome trace events (opens in ui.perfetto.dev): one process a system, lanes for network, PCIe and compute a
 * GPU. */
#ifndef DM_TIMELINE_H
#define DM_TIMELINE_H

#include "core/model.h"
#include "core/record.h"

struct timeline;

/* Writes to path.partial; records outside [from_ns, to_ns] (to 0: no end) are dropped; at most 1 M events,
 * then a last event says that it was cut. */
struct timeline *timeline_create(const char *path, int64_t from_ns, int64_t to_ns, GError **error);
/* catalog is used until the next run begins or the timeline ends. */
void timeline_begin_run(struct timeline *timeline, const char *system, const struct catalog *catalog,
                        uint32_t gpus);
void timeline_record(struct timeline *timeline, const struct record *record);
/* Closes and renames to path; frees. */
gboolean timeline_finish(struct timeline *timeline, GError **error);
void timeline_abandon(struct timeline *timeline);

#endif
