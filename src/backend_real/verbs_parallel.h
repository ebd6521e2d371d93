/* Memory registered, or taken back, on several threads: it pins pages, which takes tens of seconds per 100 GB
 * on one. */
#ifndef DM_VERBS_PARALLEL_H
#define DM_VERBS_PARALLEL_H

#include <glib.h>
#include <stdint.h>

/* Steps 0 to steps - 1, begun in this order, each once. */
struct verbs_steps {
  const char *what; /* "rxe0:1: memory is registered", in a line a second about how far it is */
  uint32_t steps;
  uint64_t bytes;      /* of all of them together */
  uint64_t bytes_step; /* of one, but the last may have fewer */
  /* On several threads at once. FALSE: none is begun any more. */
  gboolean (*step)(void *context, uint32_t i);
  void *context;
};

/* Returns when no step is under way. */
void verbs_parallel(const struct verbs_steps *steps);

#endif
