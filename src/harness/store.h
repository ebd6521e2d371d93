/* The result database: SQLite, one transaction a batch into FILE.db.partial, checkpointed into one plain
 * FILE.db at the end. Tables run, request, usage, decision are documented in results/README.md and stable. */
#ifndef DM_STORE_H
#define DM_STORE_H

#include "harness/results.h"
#include "core/model.h"

struct store;

/* Creates PATH.partial. An existing PATH, or the PATH.partial of a run that was killed or still goes on, is
 * refused without force (DM_ERROR_INPUT). A thread of its own writes, so that the caller's core goes on with
 * the run. */
struct store *store_create(const char *path, gboolean force, GError **error);
/* Begins the rows of one system; model names are taken from the catalog. */
gboolean store_begin_run(struct store *store, const struct run_info *info, const struct catalog *catalog,
                         GError **error);
/* Hot paths: buffered, no allocation per row; an error is kept and returned by store_end_run. */
void store_request(struct store *store, const struct request_row *row);
void store_usage(struct store *store, const struct usage_row *row);
void store_decision(struct store *store, const struct record *record);
/* Replaces the notices that store_begin_run took: what is known only after the run (skipped rows, sorted
 * input). */
void store_notices(struct store *store, const char *notices);
/* Writes the figures; interrupted: TRUE where Ctrl-C ended the run early. */
gboolean store_end_run(struct store *store, const struct figures *figures, gboolean interrupted,
                       GError **error);
/* Checkpoints and renames to PATH. Frees store. */
gboolean store_finish(struct store *store, GError **error);
/* Removes the partial file (bad input). Frees store. */
void store_abandon(struct store *store);

/* Reading back. */
struct stored_run {
  int64_t id;
  char *experiment, *system, *backend, *constants, *notices;
  uint64_t seed;
  gboolean interrupted;
  struct figures figures;
  gboolean finished; /* FALSE: the program was killed before the figures were known (all 0) */
  char *overrides, *text, *version, *host, *started;
  int64_t warmup_ns;
};
struct store_reader;
struct store_reader *store_open(const char *path, GError **error);
void store_close(struct store_reader *reader);
/* All runs, in order; free with g_ptr_array_unref. */
GPtrArray *store_runs(struct store_reader *reader, GError **error);

#endif
