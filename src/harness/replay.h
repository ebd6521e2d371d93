/* The arrivals of a stored run, to be sent once more: when each request came and for which model, as table
 * request of the result database has it. */
#ifndef DM_REPLAY_H
#define DM_REPLAY_H

#include "core/model.h"
#include "harness/arrivals.h"
#include "harness/store.h"

struct replay {
  struct arrival *arrival; /* [count], in order of time */
  uint64_t count;
  int64_t span_ns; /* end of the window in which the run counted arrivals */
};

/* Models are found by name in the catalog. NULL + DM_ERROR_INPUT: rows are missing (output.requests was not
 * all), out of order or of models that the catalog lacks. */
struct replay *replay_read(struct store_reader *reader, const struct stored_run *run,
                           const struct catalog *catalog, GError **error);
void replay_free(struct replay *replay);
typedef struct replay Replay; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Replay, replay_free)

#endif
