/* Merging result databases; see store_merge.h.
 *
 * Each source is attached, its run copied under its new number in one transaction, and detached again. The
 * file that is written is thrown away if anything fails, so it needs no journal. */
#include "harness/store_merge.h"

#include <string.h>

#include "core/error.h"
#include "harness/figures.h"
#include "harness/store_files.h"
#include "harness/store_rows.h"
#include "harness/store_schema.h"

static const char *const sweep_tables_sql =
    "CREATE TABLE axis(position INTEGER PRIMARY KEY, key TEXT NOT NULL, choices TEXT NOT NULL);"
    "CREATE TABLE sweep(position INTEGER PRIMARY KEY, name TEXT NOT NULL, value TEXT NOT NULL);";

/* --- facts
 * ----------------------------------------------------------------------------------------------------------*/

static void fact_clear(gpointer data)
{
  struct sweep_fact *fact = data;
  g_free(fact->name);
  g_free(fact->value);
}

GArray *sweep_facts_new(void)
{
  GArray *facts = g_array_new(FALSE, TRUE, sizeof(struct sweep_fact));
  g_array_set_clear_func(facts, fact_clear);
  return facts;
}

void sweep_fact_add(GArray *facts, const char *name, const char *value)
{
  struct sweep_fact fact = {g_strdup(name), g_strdup(value)};
  g_array_append_val(facts, fact);
}

/* --- writing
 * --------------------------------------------------------------------------------------------------------*/

/* The columns of run but its number. */
static char *run_columns(void)
{
  GString *columns = g_string_new(
      "experiment, system, backend, seed, version, host, started, ended, interrupted, warmup_ns, constants, "
      "notices, overrides, experiment_text, experiment_path, cores, processes");
  for (const struct figure_field *field = figure_fields; field->name; field++) {
    g_autofree char *column = figure_column(field);
    g_string_append_printf(columns, ", %s", column);
  }
  return g_string_free(columns, FALSE);
}

/* Statements that copy run :from of the attached database as run :to. Rows of decisions keep their order. */
static char *copy_sql(int64_t from, int64_t to)
{
  g_autofree char *columns = run_columns();
  return g_strdup_printf(
      "INSERT INTO main.run(id, %1$s) SELECT %3$" G_GINT64_FORMAT
      ", %1$s FROM source.run WHERE id = %2$" G_GINT64_FORMAT ";"
      "INSERT INTO main.setting SELECT %3$" G_GINT64_FORMAT
      ", key, value FROM source.setting WHERE run = %2$" G_GINT64_FORMAT ";"
      "INSERT INTO main.model SELECT %3$" G_GINT64_FORMAT
      ", id, name FROM source.model WHERE run = %2$" G_GINT64_FORMAT ";"
      "INSERT INTO main.request_data SELECT key - (%2$" G_GINT64_FORMAT " << %4$d) + (%3$" G_GINT64_FORMAT
      " << %4$d), model, gpu, arrival_ns, dispatch_ns, start_ns, end_ns, outcome, found, slo_met FROM "
      "source.request_data WHERE key BETWEEN %2$" G_GINT64_FORMAT " << %4$d AND %2$" G_GINT64_FORMAT
      " << %4$d | %5$lld ORDER BY key;"
      "INSERT INTO main.usage SELECT %3$" G_GINT64_FORMAT
      ", time_ns, gpus_inference, gpus_training, gpus_held, net_bytes_s, pcie_bytes_s, queue, "
      "training_steps, "
      "completed, rejected, failed FROM source.usage WHERE run = %2$" G_GINT64_FORMAT " ORDER BY rowid;"
      "INSERT INTO main.decision_data SELECT %3$" G_GINT64_FORMAT
      ", time_ns, kind, reason, request, model, server, gpu, part, source, a, b, c, d FROM "
      "source.decision_data "
      "WHERE run = %2$" G_GINT64_FORMAT " ORDER BY rowid;",
      columns, from, to, REQUEST_ID_BITS, REQUEST_ID_MAX);
}

static gboolean copy_attached(sqlite3 *db, int64_t from, int64_t to, GError **error)
{
  g_autofree char *sql = copy_sql(from, to);
  int before = sqlite3_total_changes(db);
  if (!store_execute(db, "BEGIN", error))
    return FALSE;
  if (store_execute(db, sql, error)) {
    if (sqlite3_total_changes(db) > before)
      return store_execute(db, "COMMIT", error);
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "holds no run %" G_GINT64_FORMAT, from);
  }
  sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
  return FALSE;
}

static gboolean copy_run(sqlite3 *db, const struct merge_source *source, int64_t to, GError **error)
{
  if (!g_file_test(source->path, G_FILE_TEST_IS_REGULAR)) { /* ATTACH would create it */
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: no such file", source->path);
    return FALSE;
  }
  g_autofree char *name = store_sqlite_path(source->path);
  char *attach = sqlite3_mprintf("ATTACH %Q AS source", name);
  gboolean good = store_execute(db, attach, error);
  sqlite3_free(attach);
  if (good) {
    good = copy_attached(db, source->run, to, error);
    sqlite3_exec(db, "DETACH source", NULL, NULL, NULL);
  }
  if (!good)
    g_prefix_error(error, "%s: ", source->path);
  return good;
}

/* A row of a number and two texts. */
static gboolean insert_texts(sqlite3 *db, const char *sql, guint number, const char *a, const char *b,
                             GError **error)
{
  g_autoptr(sqlite3_stmt) statement = NULL;
  if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
    return store_sqlite_failed(db, error);
  sqlite3_bind_int64(statement, 1, number);
  sqlite3_bind_text(statement, 2, a, -1, SQLITE_TRANSIENT);
  sqlite3_bind_text(statement, 3, b, -1, SQLITE_TRANSIENT);
  return sqlite3_step(statement) == SQLITE_DONE || store_sqlite_failed(db, error);
}

static gboolean write_sweep(sqlite3 *db, const GPtrArray *axes, const GArray *facts, GError **error)
{
  for (guint i = 0; i < axes->len; i++) {
    const struct axis *axis = axes->pdata[i];
    g_autofree char *text = axis_text(axis);
    if (!insert_texts(db, "INSERT INTO axis VALUES(?, ?, ?)", i + 1, axis->key, text, error))
      return FALSE;
  }
  for (guint i = 0; i < facts->len; i++) {
    const struct sweep_fact *fact = &g_array_index(facts, struct sweep_fact, i);
    if (!insert_texts(db, "INSERT INTO sweep VALUES(?, ?, ?)", i + 1, fact->name, fact->value, error))
      return FALSE;
  }
  return TRUE;
}

/* Sources may be damaged: their schema may not do more than select, and broken pages must not be trusted. */
static sqlite3 *create(const char *partial, GError **error)
{
  sqlite3 *db = NULL;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  g_autofree char *schema = store_schema_sql();
  GError *failure = NULL;
  if (store_open_file(partial, flags, &db, &failure) &&
      store_execute(db,
                    "PRAGMA page_size=4096; PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; "
                    "PRAGMA cache_size=-16384; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;",
                    &failure) &&
      store_execute(db, schema, &failure) && store_execute(db, sweep_tables_sql, &failure))
    return db;
  input_error(error, partial, 0, "cannot create the result database: %s", failure->message);
  g_clear_error(&failure);
  sqlite3_close(db);
  return NULL;
}

gboolean store_merge(const char *path, const struct merge_source *sources, size_t count,
                     const GPtrArray *axes, const GArray *facts, size_t *bad, GError **error)
{
  g_autofree char *partial = g_strconcat(path, ".partial", NULL);
  *bad = count;
  store_remove(partial);
  sqlite3 *db = create(partial, error);
  if (!db)
    return FALSE;
  gboolean good = TRUE;
  for (size_t i = 0; i < count && good; i++) {
    good = copy_run(db, &sources[i], (int64_t)i + 1, error);
    if (!good)
      *bad = i;
  }
  if (good && !(write_sweep(db, axes, facts, error) && store_execute(db, STORE_INDEX_SQL, error))) {
    good = FALSE;
    g_prefix_error(error, "%s: ", partial);
  }
  sqlite3_close(db);
  if (good && store_rename(partial, path, error))
    return TRUE;
  store_remove(partial);
  return FALSE;
}

/* --- reading
 * --------------------------------------------------------------------------------------------------------*/

/* TRUE: the table is there; FALSE with error set: it cannot be said. */
static gboolean has_table(struct store_reader *reader, const char *name, GError **error)
{
  g_autoptr(sqlite3_stmt) statement =
      store_prepare(reader, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", error);
  if (!statement)
    return FALSE;
  sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
  return store_step(reader, statement, error) == 1;
}

GPtrArray *store_axes(struct store_reader *reader, GError **error)
{
  g_autoptr(GError) failure = NULL;
  g_autoptr(GPtrArray) axes = g_ptr_array_new_with_free_func((GDestroyNotify)axis_free);
  if (!has_table(reader, "axis", &failure)) {
    if (!failure)
      return g_steal_pointer(&axes);
    g_propagate_error(error, g_steal_pointer(&failure));
    return NULL;
  }
  g_autoptr(sqlite3_stmt) statement =
      store_prepare(reader, "SELECT key || '=' || choices FROM axis ORDER BY position", error);
  int row = statement ? 1 : -1;
  while (row == 1 && (row = store_step(reader, statement, error)) == 1) {
    const char *text = (const char *)sqlite3_column_text(statement, 0);
    struct axis *axis = axis_parse(text ? text : "", error);
    if (!axis)
      return NULL;
    g_ptr_array_add(axes, axis);
  }
  return row == 0 ? g_steal_pointer(&axes) : NULL;
}

GArray *store_facts(struct store_reader *reader, GError **error)
{
  g_autoptr(GError) failure = NULL;
  g_autoptr(GArray) facts = sweep_facts_new();
  if (!has_table(reader, "sweep", &failure)) {
    if (!failure)
      return g_steal_pointer(&facts);
    g_propagate_error(error, g_steal_pointer(&failure));
    return NULL;
  }
  g_autoptr(sqlite3_stmt) statement =
      store_prepare(reader, "SELECT name, value FROM sweep ORDER BY position", error);
  int row = statement ? 1 : -1;
  while (row == 1 && (row = store_step(reader, statement, error)) == 1) {
    const char *name = (const char *)sqlite3_column_text(statement, 0);
    const char *value = (const char *)sqlite3_column_text(statement, 1);
    sweep_fact_add(facts, name ? name : "", value ? value : "");
  }
  return row == 0 ? g_steal_pointer(&facts) : NULL;
}
