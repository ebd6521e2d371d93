/* Puts runs of several result databases into one, and says of what sweep they are.
 *
 * A sweep's database is one of runs with two tables more: `axis`, what was varied, and `sweep`, by which
 * another sweep is told from this one. results/README.md documents both. */
#ifndef DM_STORE_MERGE_H
#define DM_STORE_MERGE_H

#include "harness/store.h"
#include "harness/vary.h"

struct merge_source {
  const char *path;
  int64_t run; /* its number there */
};

/* One fact of a sweep's identity: two sweeps are the same where all facts are. */
struct sweep_fact {
  char *name, *value;
};

/* Writes `path` by way of path.partial, both of which may be there already; runs get the numbers 1, 2, … in
 * the order of sources. axes: of struct axis *; facts: of struct sweep_fact. FALSE + error that names the
 * source where one is damaged (its index in *bad, else count). */
gboolean store_merge(const char *path, const struct merge_source *sources, size_t count,
                     const GPtrArray *axes, const GArray *facts, size_t *bad, GError **error);

/* Of a database that may be of a sweep or not: its axes (none: no sweep's) and facts. Free with
 * g_ptr_array_unref, g_array_unref. NULL + error. */
GPtrArray *store_axes(struct store_reader *reader, GError **error);
GArray *store_facts(struct store_reader *reader, GError **error);
/* An empty list of facts that owns their texts, and one more of them. */
GArray *sweep_facts_new(void);
void sweep_fact_add(GArray *facts, const char *name, const char *value);

#endif
