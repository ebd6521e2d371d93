/* Writes result databases; see store.h.
 *
 * Rows are copied into one of two batches; a full batch, or one that is a second old, goes to the writer
 * thread, which writes it as one transaction while the other fills. All SQLite calls are made by one thread
 * at a time: by the writer while a batch is pending, else by the caller (who waits for that first). The
 * journal is a write-ahead log, so that a run killed at any instruction leaves whole batches, and people can
 * read the partial file during the run. */
#include "harness/store.h"
#include "core/error.h"
#include "harness/command.h"
#include "harness/figures.h"
#include "harness/machine.h"
#include "harness/output_file.h"
#include "harness/store_files.h"
#include "harness/store_rows.h"
#include "harness/store_schema.h"
#include "harness/store_setting.h"
#include <string.h>

#define CLOCK_ROWS_MASK 255 /* the clock is read every 256 rows */
#define BATCH_US        G_USEC_PER_SEC

struct store {
  char *path, *partial;
  sqlite3 *db;
  struct store_rows *rows;
  int64_t run;
  struct store_batch *filling;
  int64_t handed_us; /* when a batch last went to the writer */

  GThread *writer;
  GMutex lock; /* guards what follows */
  GCond changed;
  struct store_batch *pending; /* with the writer, or NULL */
  gboolean stopping;
  GError *failure; /* the first error of the writer; later rows are dropped */
  struct store_batch batch[2];
};

static gpointer writer_main(gpointer data)
{
  struct store *store = data;
  g_mutex_lock(&store->lock);
  for (;;) {
    while (!store->pending && !store->stopping)
      g_cond_wait(&store->changed, &store->lock);
    if (!store->pending)
      break;
    struct store_batch *batch = store->pending;
    gboolean failed = store->failure != NULL;
    g_mutex_unlock(&store->lock);
    GError *failure = NULL;
    if (failed)
      batch->requests = batch->usages = batch->decisions = 0;
    else
      store_rows_write(store->rows, batch, &failure);
    g_mutex_lock(&store->lock);
    if (failure)
      store->failure = failure;
    store->pending = NULL;
    g_cond_broadcast(&store->changed);
  }
  g_mutex_unlock(&store->lock);
  return NULL;
}

/* Gives the filling batch to the writer, waiting until it has done the one before. */
static void hand_over(struct store *store)
{
  store->handed_us = g_get_monotonic_time();
  struct store_batch *batch = store->filling;
  if (batch->requests + batch->usages + batch->decisions == 0)
    return;
  batch->run = store->run;
  g_mutex_lock(&store->lock);
  while (store->pending)
    g_cond_wait(&store->changed, &store->lock);
  store->pending = batch;
  g_cond_broadcast(&store->changed);
  g_mutex_unlock(&store->lock);
  store->filling = batch == &store->batch[0] ? &store->batch[1] : &store->batch[0];
}

/* Waits until all rows are written; after it the caller may use the database. FALSE + the writer's error. */
static gboolean drain(struct store *store, GError **error)
{
  hand_over(store);
  g_mutex_lock(&store->lock);
  while (store->pending)
    g_cond_wait(&store->changed, &store->lock);
  gboolean healthy = store->failure == NULL;
  if (!healthy)
    g_propagate_error(error, g_error_copy(store->failure));
  g_mutex_unlock(&store->lock);
  return healthy;
}

static inline void row_added(struct store *store, guint rows)
{
  if (rows == BATCH_ROWS ||
      ((rows & CLOCK_ROWS_MASK) == 0 && g_get_monotonic_time() - store->handed_us > BATCH_US))
    hand_over(store);
}

void store_request(struct store *store, const struct request_row *row)
{
  struct store_batch *batch = store->filling;
  batch->request[batch->requests++] = *row;
  row_added(store, batch->requests);
}

void store_usage(struct store *store, const struct usage_row *row)
{
  struct store_batch *batch = store->filling;
  batch->usage[batch->usages++] = *row;
  /* Usage rows are few and regular: they keep a slow run's partial file fresh. */
  if (batch->usages == BATCH_ROWS || g_get_monotonic_time() - store->handed_us > BATCH_US)
    hand_over(store);
}

void store_decision(struct store *store, const struct record *record)
{
  struct store_batch *batch = store->filling;
  batch->decision[batch->decisions++] = *record;
  row_added(store, batch->decisions);
}

static gboolean refuse_partial(const char *partial, GError **error)
{
  if (g_file_test(partial, G_FILE_TEST_EXISTS))
    return input_error(
        error, partial, 0,
        "is left from a run that was killed, or of one that still goes on; --force replaces it");
  return TRUE;
}

static gboolean create_tables(struct store *store, GError **error)
{
  g_autofree char *schema = store_schema_sql();
  sqlite3_busy_timeout(store->db, 10000); /* somebody may be reading the partial file */
  if (!store_execute(
          store->db,
          "PRAGMA page_size=4096; PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA cache_size=-16384; "
          "PRAGMA wal_autocheckpoint=4096;",
          error) ||
      !store_execute(store->db, schema, error))
    return FALSE;
  store->rows = store_rows_new(store->db, error);
  return store->rows != NULL;
}

static void store_free(struct store *store)
{
  if (store->writer) {
    g_mutex_lock(&store->lock);
    store->stopping = TRUE;
    g_cond_broadcast(&store->changed);
    g_mutex_unlock(&store->lock);
    g_thread_join(store->writer);
  }
  store_rows_free(store->rows);
  sqlite3_close(store->db);
  g_clear_error(&store->failure);
  store_batch_clear(&store->batch[0]);
  store_batch_clear(&store->batch[1]);
  g_mutex_clear(&store->lock);
  g_cond_clear(&store->changed);
  g_free(store->path);
  g_free(store->partial);
  g_free(store);
}

struct store *store_create(const char *path, gboolean force, GError **error)
{
  g_autofree char *partial = g_strconcat(path, ".partial", NULL);
  if (!output_file_check(path, force, error) || (!force && !refuse_partial(partial, error)))
    return NULL;
  store_remove(partial);
  struct store *store = g_new0(struct store, 1);
  store->path = g_strdup(path);
  store->partial = g_steal_pointer(&partial);
  g_mutex_init(&store->lock);
  g_cond_init(&store->changed);
  store_batch_init(&store->batch[0]);
  store_batch_init(&store->batch[1]);
  store->filling = &store->batch[0];
  store->handed_us = g_get_monotonic_time();
  GError *failure = NULL;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (!store_open_file(store->partial, flags, &store->db, &failure) || !create_tables(store, &failure)) {
    input_error(error, store->partial, 0, "cannot create the result database: %s", failure->message);
    g_clear_error(&failure);
    store_abandon(store);
    return NULL;
  }
  store->writer = g_thread_new("store", writer_main, store);
  return store;
}

static void bind_text(sqlite3_stmt *statement, const char *name, const char *text)
{
  sqlite3_bind_text(statement, sqlite3_bind_parameter_index(statement, name), text ? text : "", -1,
                    SQLITE_TRANSIENT);
}

/* Seconds are enough: the run's own times are in its rows. */
static char *now_text(void)
{
  g_autoptr(GDateTime) now = g_date_time_new_now_utc();
  return g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
}

/* Runs a statement made once. */
static gboolean finish_statement(struct store *store, sqlite3_stmt *statement, GError **error)
{
  if (sqlite3_step(statement) == SQLITE_DONE)
    return TRUE;
  return store_sqlite_failed(store->db, error);
}

static gboolean insert_run(struct store *store, const struct run_info *info, GError **error)
{
  g_autoptr(sqlite3_stmt) statement = NULL;
  const char *sql =
      "INSERT INTO run(id, experiment, system, backend, seed, version, host, started, interrupted, "
      "warmup_ns, constants, notices, overrides, experiment_text, experiment_path, cores, processes) "
      "VALUES(:id, :experiment, :system, :backend, :seed, :version, :host, :started, 0, :warmup, :constants, "
      ":notices, :overrides, :text, :path, :cores, :processes)";
  if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK)
    return store_sqlite_failed(store->db, error);
  g_autofree char *started = now_text();
  g_autofree char *seed = g_strdup_printf("%" G_GUINT64_FORMAT, info->seed);
  sqlite3_bind_int64(statement, 1, store->run);
  bind_text(statement, ":experiment", info->experiment);
  bind_text(statement, ":system", info->system);
  bind_text(statement, ":backend", info->backend);
  if (info->seed <= INT64_MAX)
    sqlite3_bind_int64(statement, sqlite3_bind_parameter_index(statement, ":seed"), (int64_t)info->seed);
  else
    bind_text(statement, ":seed", seed);
  bind_text(statement, ":version", program_version());
  bind_text(statement, ":host", g_get_host_name());
  bind_text(statement, ":started", started);
  sqlite3_bind_int64(statement, sqlite3_bind_parameter_index(statement, ":warmup"), info->warmup_ns);
  bind_text(statement, ":constants", info->constants);
  bind_text(statement, ":notices", info->notices);
  bind_text(statement, ":overrides", info->overrides);
  bind_text(statement, ":text", info->text);
  bind_text(statement, ":path", info->path);
  sqlite3_bind_int64(statement, sqlite3_bind_parameter_index(statement, ":cores"), machine_cores());
  sqlite3_bind_int64(statement, sqlite3_bind_parameter_index(statement, ":processes"), info->processes);
  return finish_statement(store, statement, error);
}

static gboolean insert_models(struct store *store, const struct catalog *catalog, GError **error)
{
  g_autoptr(sqlite3_stmt) statement = NULL;
  if (sqlite3_prepare_v2(store->db, "INSERT INTO model VALUES(?, ?, ?)", -1, &statement, NULL) != SQLITE_OK)
    return store_sqlite_failed(store->db, error);
  for (uint32_t id = 0; id < catalog_models(catalog); id++) {
    g_autofree char *name = catalog_model_name(catalog, id);
    sqlite3_bind_int64(statement, 1, store->run);
    sqlite3_bind_int64(statement, 2, id);
    sqlite3_bind_text(statement, 3, name, -1, SQLITE_TRANSIENT);
    if (!finish_statement(store, statement, error))
      return FALSE;
    sqlite3_reset(statement);
  }
  return TRUE;
}

gboolean store_begin_run(struct store *store, const struct run_info *info, const struct catalog *catalog,
                         GError **error)
{
  gboolean begun = drain(store, error); /* of the run before, whose number its rows bear */
  store->run++;
  begun = begun && store_execute(store->db, "BEGIN", error) && insert_run(store, info, error) &&
          insert_models(store, catalog, error) &&
          store_settings(store->db, store->run, info->overrides, error) &&
          store_execute(store->db, "COMMIT", error);
  if (begun)
    return TRUE;
  sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
  g_prefix_error(error, "%s: ", store->partial);
  return FALSE;
}

void store_notices(struct store *store, const char *notices)
{
  g_autoptr(sqlite3_stmt) statement = NULL;
  if (!drain(store, NULL))
    return;
  if (sqlite3_prepare_v2(store->db, "UPDATE run SET notices = ? WHERE id = ?", -1, &statement, NULL) ==
      SQLITE_OK) {
    sqlite3_bind_text(statement, 1, notices, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(statement, 2, store->run);
    if (sqlite3_step(statement) == SQLITE_DONE)
      return;
  }
  store_sqlite_failed(store->db, &store->failure); /* the writer is idle: store_end_run reports it */
}

static char *update_sql(void)
{
  g_autoptr(GString) sql = g_string_new("UPDATE run SET ended = ?, interrupted = ?");
  for (const struct figure_field *field = figure_fields; field->name; field++) {
    g_autofree char *column = figure_column(field);
    g_string_append_printf(sql, ", %s = ?", column);
  }
  g_string_append(sql, " WHERE id = ?");
  return g_strdup(sql->str);
}

static gboolean update_run(struct store *store, const struct figures *figures, gboolean interrupted,
                           GError **error)
{
  g_autoptr(sqlite3_stmt) statement = NULL;
  g_autofree char *sql = update_sql();
  if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK)
    return store_sqlite_failed(store->db, error);
  g_autofree char *ended = now_text();
  int column = 1;
  sqlite3_bind_text(statement, column++, ended, -1, SQLITE_TRANSIENT);
  sqlite3_bind_int(statement, column++, interrupted ? 1 : 0);
  for (const struct figure_field *field = figure_fields; field->name; field++, column++) {
    if (field->integer)
      sqlite3_bind_int64(statement, column,
                         (int64_t)MIN(figure_integer(figures, field), (uint64_t)INT64_MAX));
    else
      sqlite3_bind_double(statement, column, figure_real(figures, field));
  }
  sqlite3_bind_int64(statement, column, store->run);
  return finish_statement(store, statement, error);
}

gboolean store_end_run(struct store *store, const struct figures *figures, gboolean interrupted,
                       GError **error)
{
  if (drain(store, error) && update_run(store, figures, interrupted, error))
    return TRUE;
  g_prefix_error(error, "%s: ", store->partial);
  return FALSE;
}

/* One plain file: the log is folded in and removed. */
static gboolean seal(struct store *store, GError **error)
{
  if (!drain(store, error) || !store_execute(store->db, STORE_INDEX_SQL, error))
    return FALSE;
  store_rows_free(g_steal_pointer(&store->rows));
  return store_execute(store->db, "PRAGMA journal_mode=DELETE", error);
}

gboolean store_finish(struct store *store, GError **error)
{
  gboolean finished = seal(store, error);
  if (!finished)
    g_prefix_error(error, "%s: ", store->partial);
  g_autofree char *path = g_strdup(store->path);
  g_autofree char *partial = g_strdup(store->partial);
  store_free(store);
  return finished && store_rename(partial, path, error);
}

void store_abandon(struct store *store)
{
  g_autofree char *partial = g_strdup(store->partial);
  store_free(store);
  store_remove(partial);
}
