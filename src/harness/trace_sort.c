/* Sorting a trace by arrival through a temporary file; see trace_sort.h. */
#include "harness/trace_sort.h"

#include "harness/sqlite_temporary.h"

#define SORTING "sorting a trace through a temporary file"

struct trace_sort {
  sqlite3 *database;
  sqlite3_stmt *insert, *select;
};

struct trace_sort *trace_sort_new(GError **error)
{
  sqlite3 *database = sqlite_open_temporary(error);
  if (!database)
    return NULL;
  struct trace_sort *sort = g_new0(struct trace_sort, 1);
  sort->database = database;
  /* sequence is the rowid, so the order of the file breaks ties. */
  if (sqlite3_exec(
          database,
          "CREATE TABLE row (sequence INTEGER PRIMARY KEY, arrival INTEGER, model TEXT, input INTEGER,"
          " output INTEGER, service INTEGER, gpus REAL, duration INTEGER, line INTEGER)",
          NULL, NULL, NULL) != SQLITE_OK ||
      sqlite3_prepare_v2(database,
                         "INSERT INTO row (arrival, model, input, output, service, gpus, duration, line)"
                         " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                         -1, &sort->insert, NULL) != SQLITE_OK ||
      sqlite3_prepare_v2(database,
                         "SELECT arrival, model, input, output, service, gpus, duration, line FROM row"
                         " ORDER BY arrival, sequence",
                         -1, &sort->select, NULL) != SQLITE_OK) {
    sqlite_failed(database, SORTING, error);
    trace_sort_free(sort);
    return NULL;
  }
  return sort;
}

void trace_sort_free(struct trace_sort *sort)
{
  if (!sort)
    return;
  sqlite3_finalize(sort->insert);
  sqlite3_finalize(sort->select);
  sqlite3_close(sort->database);
  g_free(sort);
}

gboolean trace_sort_add(struct trace_sort *sort, const struct trace_row *row, GError **error)
{
  sqlite3_bind_int64(sort->insert, 1, row->arrival_ns);
  sqlite3_bind_text(sort->insert, 2, row->model, -1, SQLITE_STATIC);
  sqlite3_bind_int64(sort->insert, 3, row->input_tokens);
  sqlite3_bind_int64(sort->insert, 4, row->output_tokens);
  sqlite3_bind_int64(sort->insert, 5, row->service_ns);
  sqlite3_bind_double(sort->insert, 6, row->gpus);
  sqlite3_bind_int64(sort->insert, 7, row->duration_ns);
  sqlite3_bind_int64(sort->insert, 8, row->line);
  int status = sqlite3_step(sort->insert);
  sqlite3_reset(sort->insert);
  return status == SQLITE_DONE || sqlite_failed(sort->database, SORTING, error);
}

gboolean trace_sort_begin(struct trace_sort *sort, GError **error)
{
  return sqlite3_reset(sort->select) == SQLITE_OK || sqlite_failed(sort->database, SORTING, error);
}

int trace_sort_next(struct trace_sort *sort, struct trace_row *row, GError **error)
{
  int status = sqlite3_step(sort->select);
  if (status == SQLITE_DONE)
    return 0;
  if (status != SQLITE_ROW) {
    sqlite_failed(sort->database, SORTING, error);
    return -1;
  }
  *row = (struct trace_row){
      .arrival_ns = sqlite3_column_int64(sort->select, 0),
      .model = (const char *)sqlite3_column_text(sort->select, 1),
      .input_tokens = sqlite3_column_int64(sort->select, 2),
      .output_tokens = sqlite3_column_int64(sort->select, 3),
      .service_ns = sqlite3_column_int64(sort->select, 4),
      .gpus = sqlite3_column_double(sort->select, 5),
      .duration_ns = sqlite3_column_int64(sort->select, 6),
      .line = (unsigned)sqlite3_column_int64(sort->select, 7),
  };
  return 1;
}
