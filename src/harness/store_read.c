/* Reads result databases; see store.h and store_schema.h. */
#include "core/error.h"
#include "harness/figures.h"
#include "harness/store_files.h"
#include "harness/store_schema.h"

struct store_reader {
  char *path;
  sqlite3 *db;
};

static gboolean read_failed(struct store_reader *reader, GError **error)
{
  return input_error(error, reader->path, 0, "cannot read the result database: %s",
                     sqlite3_errmsg(reader->db));
}

sqlite3_stmt *store_prepare(struct store_reader *reader, const char *sql, GError **error)
{
  sqlite3_stmt *statement = NULL;
  if (sqlite3_prepare_v2(reader->db, sql, -1, &statement, NULL) != SQLITE_OK)
    read_failed(reader, error);
  return statement;
}

int store_step(struct store_reader *reader, sqlite3_stmt *statement, GError **error)
{
  int code = sqlite3_step(statement);
  if (code == SQLITE_ROW)
    return 1;
  if (code == SQLITE_DONE)
    return 0;
  read_failed(reader, error);
  return -1;
}

const char *store_path(const struct store_reader *reader)
{
  return reader->path;
}

/* Value of a PRAGMA that answers with one integer. */
static gboolean read_pragma(struct store_reader *reader, const char *sql, int *value, GError **error)
{
  g_autoptr(sqlite3_stmt) statement = store_prepare(reader, sql, error);
  if (!statement)
    return FALSE;
  int row = store_step(reader, statement, error);
  *value = row == 1 ? sqlite3_column_int(statement, 0) : 0;
  return row >= 0;
}

static gboolean check_identity(struct store_reader *reader, GError **error)
{
  int application, version;
  if (!read_pragma(reader, "PRAGMA application_id", &application, error) ||
      !read_pragma(reader, "PRAGMA user_version", &version, error))
    return FALSE;
  if (application != STORE_APPLICATION_ID)
    return input_error(error, reader->path, 0,
                       "is no result database; expected a file that `run --out` wrote");
  if (version != STORE_VERSION)
    return input_error(error, reader->path, 0, "has layout %d; this program reads layout %d", version,
                       STORE_VERSION);
  return TRUE;
}

/* What a run or a sweep writes has another name until it is whole. */
static const char *why_no_file(const char *path)
{
  g_autofree char *partial = g_strconcat(path, ".partial", NULL), *tasks = g_strconcat(path, ".tasks", NULL);
  if (g_file_test(path, G_FILE_TEST_EXISTS))
    return "is not a file";
  if (g_file_test(tasks, G_FILE_TEST_IS_DIR))
    return "no such file yet: its sweep is on, or was killed and its command goes on with it";
  if (g_file_test(partial, G_FILE_TEST_EXISTS))
    return "no such file yet: its run is on, or was killed and left the .partial beside it";
  return "no such file";
}

struct store_reader *store_open(const char *path, GError **error)
{
  if (!g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
    input_error(error, path, 0, "%s", why_no_file(path));
    return NULL;
  }
  g_autoptr(StoreReader) reader = g_new0(struct store_reader, 1);
  reader->path = g_strdup(path);
  /* For writing where that is allowed: the log of a killed run must be folded in before it can be read. */
  g_autoptr(GError) failure = NULL;
  if (!store_open_file(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, &reader->db, &failure)) {
    input_error(error, path, 0, "cannot read the result database: %s", failure->message);
    return NULL;
  }
  sqlite3_busy_timeout(reader->db, 10000);
  /* The file may come from anywhere: its schema may not do more than select, and broken pages must not be
   * trusted. */
  const char *guards = "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA query_only=ON;";
  if (sqlite3_exec(reader->db, guards, NULL, NULL, NULL) != SQLITE_OK) {
    read_failed(reader, error);
    return NULL;
  }
  return check_identity(reader, error) ? g_steal_pointer(&reader) : NULL;
}

void store_close(struct store_reader *reader)
{
  sqlite3_close(reader->db);
  g_free(reader->path);
  g_free(reader);
}

static void stored_run_free(gpointer data)
{
  struct stored_run *run = data;
  g_free(run->experiment);
  g_free(run->system);
  g_free(run->backend);
  g_free(run->constants);
  g_free(run->notices);
  g_free(run->overrides);
  g_free(run->text);
  g_free(run->version);
  g_free(run->host);
  g_free(run->started);
  g_free(run);
}

static char *column_text(sqlite3_stmt *statement, int column)
{
  const char *text = (const char *)sqlite3_column_text(statement, column);
  return g_utf8_make_valid(text ? text : "", -1);
}

static struct stored_run *read_run(sqlite3_stmt *statement)
{
  struct stored_run *run = g_new0(struct stored_run, 1);
  int column = 0;
  run->id = sqlite3_column_int64(statement, column++);
  run->experiment = column_text(statement, column++);
  run->system = column_text(statement, column++);
  run->backend = column_text(statement, column++);
  g_autofree char *seed = column_text(statement, column++);
  run->seed = g_ascii_strtoull(seed, NULL, 10);
  run->constants = column_text(statement, column++);
  run->notices = column_text(statement, column++);
  run->overrides = column_text(statement, column++);
  run->text = column_text(statement, column++);
  run->version = column_text(statement, column++);
  run->host = column_text(statement, column++);
  run->started = column_text(statement, column++);
  run->finished = sqlite3_column_type(statement, column++) != SQLITE_NULL;
  run->interrupted = sqlite3_column_int(statement, column++) != 0;
  run->warmup_ns = sqlite3_column_int64(statement, column++);
  for (const struct figure_field *field = figure_fields; field->name; field++, column++) {
    if (field->integer)
      figure_set_integer(&run->figures, field, (uint64_t)MAX(sqlite3_column_int64(statement, column), 0));
    else
      figure_set_real(&run->figures, field, sqlite3_column_double(statement, column));
  }
  return run;
}

GPtrArray *store_runs(struct store_reader *reader, GError **error)
{
  g_autoptr(GString) sql =
      g_string_new("SELECT id, experiment, system, backend, seed, constants, notices, overrides, "
                   "experiment_text, version, host, started, ended, interrupted, warmup_ns");
  for (const struct figure_field *field = figure_fields; field->name; field++) {
    g_autofree char *column = figure_column(field);
    g_string_append_printf(sql, ", %s", column);
  }
  g_string_append(sql, " FROM run ORDER BY id");
  g_autoptr(sqlite3_stmt) statement = store_prepare(reader, sql->str, error);
  if (!statement)
    return NULL;
  g_autoptr(GPtrArray) runs = g_ptr_array_new_with_free_func(stored_run_free);
  int row;
  while ((row = store_step(reader, statement, error)) == 1)
    g_ptr_array_add(runs, read_run(statement));
  return row == 0 ? g_steal_pointer(&runs) : NULL;
}
