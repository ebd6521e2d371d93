/* Batches of rows into SQLite; see store_rows.h. */
#include "harness/store_rows.h"
#include "core/error.h"
#include "harness/store_schema.h"

#define REQUEST_COLUMNS  10
#define REQUESTS_AT_ONCE 64

struct store_rows {
  sqlite3 *db;
  sqlite3_stmt *insert_request, *insert_requests, *insert_usage, *insert_decision;
};

void store_batch_init(struct store_batch *batch)
{
  batch->request = g_new(struct request_row, BATCH_ROWS);
  batch->usage = g_new(struct usage_row, BATCH_ROWS);
  batch->decision = g_new(struct record, BATCH_ROWS);
}

void store_batch_clear(struct store_batch *batch)
{
  g_free(batch->request);
  g_free(batch->usage);
  g_free(batch->decision);
}

gboolean store_sqlite_failed(sqlite3 *db, GError **error)
{
  g_set_error_literal(error, DM_ERROR, DM_ERROR_FAILED, sqlite3_errmsg(db));
  return FALSE;
}

gboolean store_execute(sqlite3 *db, const char *sql, GError **error)
{
  return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK || store_sqlite_failed(db, error);
}

static gboolean prepare(struct store_rows *rows, const char *sql, sqlite3_stmt **statement, GError **error)
{
  return sqlite3_prepare_v3(rows->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL) == SQLITE_OK ||
         store_sqlite_failed(rows->db, error);
}

static char *insert_requests_sql(guint count)
{
  g_autoptr(GString) sql = g_string_new("INSERT INTO request_data VALUES");
  for (guint i = 0; i < count; i++)
    g_string_append_printf(sql, "%s(?,?,?,?,?,?,?,?,?,?)", i ? "," : "");
  return g_strdup(sql->str);
}

struct store_rows *store_rows_new(sqlite3 *db, GError **error)
{
  struct store_rows *rows = g_new0(struct store_rows, 1);
  rows->db = db;
  g_autofree char *one = insert_requests_sql(1), *many = insert_requests_sql(REQUESTS_AT_ONCE);
  if (prepare(rows, one, &rows->insert_request, error) &&
      prepare(rows, many, &rows->insert_requests, error) &&
      prepare(rows, "INSERT INTO usage VALUES(?,?,?,?,?,?,?,?,?,?,?,?)", &rows->insert_usage, error) &&
      prepare(rows, "INSERT INTO decision_data VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)", &rows->insert_decision,
              error))
    return rows;
  store_rows_free(rows);
  return NULL;
}

void store_rows_free(struct store_rows *rows)
{
  if (!rows)
    return;
  sqlite3_finalize(rows->insert_request);
  sqlite3_finalize(rows->insert_requests);
  sqlite3_finalize(rows->insert_usage);
  sqlite3_finalize(rows->insert_decision);
  g_free(rows);
}

static gboolean insert(struct store_rows *rows, sqlite3_stmt *statement, GError **error)
{
  gboolean done = sqlite3_step(statement) == SQLITE_DONE || store_sqlite_failed(rows->db, error);
  sqlite3_reset(statement);
  return done;
}

/* Absent values (-1 of times, NO_INDEX, TIME_NEVER) are NULL in the database. A NULL must be bound, as
 * bindings stay. */
static void bind_time(sqlite3_stmt *statement, int column, int64_t ns)
{
  if (ns < 0)
    sqlite3_bind_null(statement, column);
  else
    sqlite3_bind_int64(statement, column, ns);
}

static void bind_index(sqlite3_stmt *statement, int column, uint32_t index)
{
  if (index == NO_INDEX)
    sqlite3_bind_null(statement, column);
  else
    sqlite3_bind_int64(statement, column, index);
}

static void bind_number(sqlite3_stmt *statement, int column, int64_t number)
{
  if (number == TIME_NEVER)
    sqlite3_bind_null(statement, column);
  else
    sqlite3_bind_int64(statement, column, number);
}

/* SQLite's integers are signed: a count above 2^63 saturates. */
static void bind_count(sqlite3_stmt *statement, int column, uint64_t count)
{
  sqlite3_bind_int64(statement, column, (int64_t)MIN(count, (uint64_t)INT64_MAX));
}

/* Binds one row's columns, the first of which is the parameter after `at`. */
static void bind_request(sqlite3_stmt *statement, int at, int64_t run, const struct request_row *row)
{
  sqlite3_bind_int64(statement, at + 1, run << REQUEST_ID_BITS | (int64_t)row->id);
  bind_index(statement, at + 2, row->model);
  bind_index(statement, at + 3, row->gpu);
  bind_time(statement, at + 4, row->arrival_ns);
  bind_time(statement, at + 5, row->dispatch_ns);
  bind_time(statement, at + 6, row->start_ns);
  bind_time(statement, at + 7, row->end_ns);
  sqlite3_bind_int(statement, at + 8, (int)row->outcome);
  bind_index(statement, at + 9, row->outcome == OUTCOME_COMPLETED ? row->found : NO_INDEX);
  sqlite3_bind_int(statement, at + 10, row->slo_met ? 1 : 0);
}

static gboolean check_ids(const struct store_batch *batch, GError **error)
{
  for (guint i = 0; i < batch->requests; i++)
    if (batch->request[i].id > REQUEST_ID_MAX) {
      g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "cannot store more than %lld requests a run",
                  REQUEST_ID_MAX + 1);
      return FALSE;
    }
  return TRUE;
}

/* Many rows a statement, then what is left one by one: beginning a statement costs as much as a row does. */
static gboolean write_requests(struct store_rows *rows, const struct store_batch *batch, GError **error)
{
  if (!check_ids(batch, error))
    return FALSE;
  for (guint i = 0; i < batch->requests;) {
    gboolean many = batch->requests - i >= REQUESTS_AT_ONCE;
    sqlite3_stmt *statement = many ? rows->insert_requests : rows->insert_request;
    for (int k = 0; k < (many ? REQUESTS_AT_ONCE : 1); k++)
      bind_request(statement, k * REQUEST_COLUMNS, batch->run, &batch->request[i++]);
    if (!insert(rows, statement, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean write_usages(struct store_rows *rows, const struct store_batch *batch, GError **error)
{
  sqlite3_stmt *statement = rows->insert_usage;
  for (guint i = 0; i < batch->usages; i++) {
    const struct usage_row *row = &batch->usage[i];
    sqlite3_bind_int64(statement, 1, batch->run);
    sqlite3_bind_int64(statement, 2, row->time_ns);
    sqlite3_bind_double(statement, 3, row->gpus_inference);
    sqlite3_bind_double(statement, 4, row->gpus_training);
    sqlite3_bind_double(statement, 5, row->gpus_held);
    sqlite3_bind_double(statement, 6, row->net_bytes_s);
    sqlite3_bind_double(statement, 7, row->pcie_bytes_s);
    bind_count(statement, 8, row->queue);
    bind_count(statement, 9, row->training_steps);
    bind_count(statement, 10, row->completed);
    bind_count(statement, 11, row->rejected);
    bind_count(statement, 12, row->failed);
    if (!insert(rows, statement, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean write_decisions(struct store_rows *rows, const struct store_batch *batch, GError **error)
{
  sqlite3_stmt *statement = rows->insert_decision;
  for (guint i = 0; i < batch->decisions; i++) {
    const struct record *record = &batch->decision[i];
    sqlite3_bind_int64(statement, 1, batch->run);
    sqlite3_bind_int64(statement, 2, record->time_ns);
    sqlite3_bind_int(statement, 3, (int)record->kind);
    sqlite3_bind_int(statement, 4, (int)record->reason);
    if (record->request == UINT64_MAX)
      sqlite3_bind_null(statement, 5);
    else
      bind_count(statement, 5, record->request);
    bind_index(statement, 6, record->model);
    bind_index(statement, 7, record->server);
    bind_index(statement, 8, record->gpu);
    bind_index(statement, 9, record->group);
    bind_index(statement, 10, record->source);
    bind_number(statement, 11, record->a);
    bind_number(statement, 12, record->b);
    bind_number(statement, 13, record->c);
    bind_number(statement, 14, record->d);
    if (!insert(rows, statement, error))
      return FALSE;
  }
  return TRUE;
}

gboolean store_rows_write(struct store_rows *rows, struct store_batch *batch, GError **error)
{
  gboolean written = store_execute(rows->db, "BEGIN", error) && write_requests(rows, batch, error) &&
                     write_usages(rows, batch, error) && write_decisions(rows, batch, error) &&
                     store_execute(rows->db, "COMMIT", error);
  if (!written)
    sqlite3_exec(rows->db, "ROLLBACK", NULL, NULL, NULL);
  batch->requests = batch->usages = batch->decisions = 0;
  return written;
}
