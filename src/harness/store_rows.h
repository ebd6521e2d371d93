/* Batches of result rows, and how one is written to the database as one transaction. Private to the result
 * store. */
#ifndef DM_STORE_ROWS_H
#define DM_STORE_ROWS_H

#include <sqlite3.h>
#include "harness/results.h"

#define BATCH_ROWS 16384 /* room of a batch for rows of each kind */

struct store_batch {
  int64_t run;
  struct request_row *request;
  struct usage_row *usage;
  struct record *decision;
  guint requests, usages, decisions;
};

void store_batch_init(struct store_batch *batch);
void store_batch_clear(struct store_batch *batch);

/* Prepared statements. Errors are DM_ERROR_FAILED without a file name. */
struct store_rows;
struct store_rows *store_rows_new(sqlite3 *db, GError **error);
void store_rows_free(struct store_rows *rows);
/* All rows of the batch or none; empties it either way. */
gboolean store_rows_write(struct store_rows *rows, struct store_batch *batch, GError **error);

/* Sets DM_ERROR_FAILED from the last SQLite error; returns FALSE. */
gboolean store_sqlite_failed(sqlite3 *db, GError **error);
gboolean store_execute(sqlite3 *db, const char *sql, GError **error);

#endif
