#include "sweeps.h"

#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdio.h>

void sweeps_write_experiment(const char *folder)
{
  folder_write(folder, "x.ini",
               "[experiment]\n"
               "name = e2e-sweep\n"
               "systems = ideal;distmind\n"
               "[cluster]\n"
               "hardware = h200\n"
               "gpu_servers = 1\n"
               "gpus_per_server = 1\n"
               "memory_servers = 2\n"
               "gpu_models_max = 1\n"
               "[models]\n"
               "resnet152 = 6\n"
               "[workload]\n"
               "kind = poisson\n"
               "rate_rps = 60\n"
               "duration_s = 60\n"
               "[slo]\n"
               "multiple = 3\n");
}

ProgramOutcome *sweeps_run(const char *folder, const char *out, const char *jobs)
{
  return program_run(folder, "sweep", "x.ini", SWEEPS_VARY, "--out", out, "--jobs", jobs, "--json", NULL);
}

char *sweeps_without_wall_s(const char *json)
{
  g_autoptr(GRegex) wall = g_regex_new("\"wall_s\": *[-+.eE0-9]+", 0, 0, NULL);
  return g_regex_replace_literal(wall, json, -1, 0, "", 0, NULL);
}

static sqlite3 *open_database(const char *folder, const char *database)
{
  g_autofree char *path = database ? g_build_filename(folder, database, NULL) : g_strdup(":memory:");
  sqlite3 *db = NULL;
  int flags = database ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  cr_assert_eq(sqlite3_open_v2(path, &db, flags, NULL), SQLITE_OK, "%s cannot be opened", path);
  return db;
}

static void append_rows(GString *text, sqlite3 *db, const char *sql)
{
  sqlite3_stmt *statement = NULL;
  int code;
  cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK, "%s: %s", sql,
               sqlite3_errmsg(db));
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    for (int i = 0; i < sqlite3_column_count(statement); i++)
      g_string_append_printf(text, "%s|", (const char *)sqlite3_column_text(statement, i));
    g_string_append_c(text, '\n');
  }
  cr_assert_eq(code, SQLITE_DONE, "%s: %s", sql, sqlite3_errmsg(db));
  sqlite3_finalize(statement);
}

char *sweeps_dump(const char *folder, const char *database)
{
  sqlite3 *db = open_database(folder, database);
  g_autofree char *columns = sweeps_query(folder, database,
                                          "SELECT group_concat(name) FROM pragma_table_info('run') WHERE "
                                          "name NOT IN ('started', 'ended', 'host', 'wall_s')",
                                          NULL);
  g_autofree char *runs = g_strdup_printf("SELECT %s FROM run ORDER BY id", columns);
  GString *text = g_string_new(NULL);
  append_rows(text, db, runs);
  append_rows(text, db, "SELECT run, key, value, typeof(value) FROM setting ORDER BY run, key");
  append_rows(text, db, "SELECT * FROM model ORDER BY run, id");
  append_rows(text, db, "SELECT * FROM request_data ORDER BY key");
  append_rows(text, db, "SELECT * FROM axis ORDER BY position");
  append_rows(text, db, "SELECT * FROM sweep ORDER BY position");
  sqlite3_close(db);
  return g_string_free(text, FALSE);
}

char *sweeps_query(const char *folder, const char *database, const char *sql, const char *text)
{
  sqlite3 *db = open_database(folder, database);
  sqlite3_stmt *statement = NULL;
  cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK, "%s: %s", sql,
               sqlite3_errmsg(db));
  if (text)
    sqlite3_bind_text(statement, 1, text, -1, SQLITE_STATIC);
  cr_assert_eq(sqlite3_step(statement), SQLITE_ROW, "%s: %s", sql, sqlite3_errmsg(db));
  char *value = g_strdup((const char *)sqlite3_column_text(statement, 0));
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return value;
}

GRand *sweeps_random(const char *test)
{
  const char *given = g_getenv("DISTMIND_SEED");
  guint32 seed = given ? (guint32)g_ascii_strtoull(given, NULL, 10) : (guint32)g_get_real_time();
  fprintf(stderr, "%s: DISTMIND_SEED=%u\n", test, seed);
  return g_rand_new_with_seed(seed);
}
