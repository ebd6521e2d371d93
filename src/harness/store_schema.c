/* Schema of result databases; see store_schema.h. */
#include "harness/store_schema.h"
#include "core/grouping.h"
#include "harness/figures.h"

static const char *const tables_sql =
    "CREATE TABLE model(run INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY(run, id)) "
    "WITHOUT "
    "ROWID;"
    "CREATE TABLE setting(run INTEGER NOT NULL, key TEXT NOT NULL, value, PRIMARY KEY(run, key)) WITHOUT "
    "ROWID;"
    "CREATE TABLE request_data(key INTEGER PRIMARY KEY, model INTEGER, gpu INTEGER, arrival_ns INTEGER, "
    "dispatch_ns INTEGER, start_ns INTEGER, end_ns INTEGER, outcome INTEGER, found INTEGER, slo_met INTEGER);"
    "CREATE TABLE usage(run INTEGER NOT NULL, time_ns INTEGER, gpus_inference REAL, gpus_training REAL, "
    "gpus_held REAL, "
    "net_bytes_s REAL, pcie_bytes_s REAL, queue INTEGER, training_steps INTEGER, completed INTEGER, rejected "
    "INTEGER, "
    "failed INTEGER);"
    "CREATE TABLE decision_data(run INTEGER NOT NULL, time_ns INTEGER, kind INTEGER, reason INTEGER, request "
    "INTEGER, "
    "model INTEGER, server INTEGER, gpu INTEGER, part INTEGER, source INTEGER, a INTEGER, b INTEGER, c "
    "INTEGER, "
    "d INTEGER);";

static const char *const request_view_sql = "CREATE VIEW request AS SELECT r.key >> %d AS run, u.system AS "
                                            "system, r.key & %lld AS id, m.name AS model, "
                                            "r.gpu AS gpu, r.arrival_ns AS arrival_ns, r.dispatch_ns AS "
                                            "dispatch_ns, r.start_ns AS start_ns, r.end_ns AS end_ns, "
                                            "CASE WHEN r.outcome = %d THEN (r.end_ns - r.arrival_ns) / 1e6 "
                                            "END AS latency_ms, %s AS outcome, %s AS found, "
                                            "r.slo_met AS slo_met, r.key AS key FROM request_data r LEFT "
                                            "JOIN model m ON m.run = r.key >> %d AND m.id = r.model "
                                            "LEFT JOIN run u ON u.id = r.key >> %d;";

static const char *const decision_view_sql =
    "CREATE VIEW decision AS SELECT d.run AS run, u.system AS system, d.time_ns AS time_ns, %s AS kind, %s "
    "AS reason, "
    "d.request AS request, m.name AS model, d.server AS server, d.gpu AS gpu, d.part AS part, %s AS source, "
    "d.a AS a, "
    "d.b AS b, d.c AS c, d.d AS d, d.rowid AS seq FROM decision_data d LEFT JOIN model m ON m.run = d.run "
    "AND m.id = d.model "
    "LEFT JOIN run u ON u.id = d.run;";

/* "CASE column WHEN 0 THEN 'text' … END": the file carries the names of the program that wrote it. */
static char *names_case(const char *column, int count, const char *(*name)(int))
{
  g_autoptr(GString) sql = g_string_new("CASE ");
  g_string_append(sql, column);
  for (int i = 0; i < count; i++) {
    char *arm = sqlite3_mprintf(" WHEN %d THEN %Q", i, name(i));
    g_string_append(sql, arm);
    sqlite3_free(arm);
  }
  g_string_append(sql, " END");
  return g_strdup(sql->str);
}

static const char *name_of_outcome(int i)
{
  return outcome_name((enum outcome)i);
}

static const char *name_of_found(int i)
{
  return found_name((enum found)i);
}

static const char *name_of_kind(int i)
{
  return record_kind_name((enum record_kind)i);
}

static const char *name_of_reason(int i)
{
  return record_reason_text((enum record_reason)i);
}

static const char *name_of_source(int i)
{
  static const char *const names[LOAD_SOURCES] = {
      [SOURCE_HOST] = "host", [SOURCE_REMOTE] = "remote", [SOURCE_SSD] = "ssd"};
  return names[i];
}

static void append_run_table(GString *sql)
{
  /* seed has no type, as SQLite would turn one above 2^63 in a typed column into a floating-point number. */
  g_string_append(
      sql, "CREATE TABLE run(id INTEGER PRIMARY KEY, experiment TEXT, system TEXT, backend TEXT, seed, "
           "version TEXT, host TEXT, started TEXT, ended TEXT, interrupted INTEGER, warmup_ns INTEGER, "
           "constants TEXT, notices TEXT, overrides TEXT, experiment_text TEXT, experiment_path TEXT, "
           "cores INTEGER, processes INTEGER");
  for (const struct figure_field *field = figure_fields; field->name; field++) {
    g_autofree char *column = figure_column(field);
    g_string_append_printf(sql, ", %s %s", column, field->integer ? "INTEGER" : "REAL");
  }
  g_string_append(sql, ");");
}

char *store_schema_sql(void)
{
  g_autoptr(GString) sql = g_string_new(tables_sql);
  append_run_table(sql);
  g_autofree char *outcome = names_case("r.outcome", OUTCOME_COUNT, name_of_outcome);
  g_autofree char *found = names_case("r.found", FOUND_COUNT, name_of_found);
  g_autofree char *kind = names_case("d.kind", RECORD_KIND_COUNT, name_of_kind);
  g_autofree char *reason = names_case("d.reason", REASON_COUNT, name_of_reason);
  g_autofree char *source = names_case("d.source", LOAD_SOURCES, name_of_source);
  g_string_append_printf(sql, request_view_sql, REQUEST_ID_BITS, REQUEST_ID_MAX, OUTCOME_COMPLETED, outcome,
                         found, REQUEST_ID_BITS, REQUEST_ID_BITS);
  g_string_append_printf(sql, decision_view_sql, kind, reason, source);
  g_string_append_printf(sql, "PRAGMA application_id=%d; PRAGMA user_version=%d;", STORE_APPLICATION_ID,
                         STORE_VERSION);
  return g_strdup(sql->str);
}
