/* `run` as a user has it: the same bytes twice, one JSON object, a readable database, and what Ctrl-C keeps.
 */
#include "program.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>

static const char experiment[] = "[experiment]\n"
                                 "name = e2e\n"
                                 "seed = 3\n"
                                 "systems = ideal;distmind\n"
                                 "[cluster]\n"
                                 "hardware = h200\n"
                                 "gpu_servers = 2\n"
                                 "gpus_per_server = 2\n"
                                 "memory_servers = 2\n"
                                 "gpu_models_max = 1\n"
                                 "[models]\n"
                                 "resnet152 = 8\n"
                                 "bert_base = 4\n"
                                 "[workload]\n"
                                 "kind = poisson\n"
                                 "rate_rps = 100\n"
                                 "duration_s = 5\n";

/* A run of hours of virtual time: no machine is done with it before the test has seen it start. */
#define ENDLESS "workload.duration_s=100000"

/* JSON without the one value that is no function of input and seed. */
static char *without_wall_s(const char *json)
{
  g_autoptr(GRegex) wall = g_regex_new("\"wall_s\": *[-+.eE0-9]+", 0, 0, NULL);
  char *same = g_regex_replace_literal(wall, json, -1, 0, "\"wall_s\":", 0, NULL);
  cr_assert_str_neq(same, json, "no wall_s in: %s", json);
  return same;
}

static gint64 query(const char *folder, const char *database, const char *statement)
{
  g_autofree char *path = g_build_filename(folder, database, NULL);
  sqlite3 *db = NULL;
  sqlite3_stmt *row = NULL;
  cr_assert_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK, "%s cannot be opened",
               path);
  cr_assert_eq(sqlite3_prepare_v2(db, statement, -1, &row, NULL), SQLITE_OK, "%s: %s", statement,
               sqlite3_errmsg(db));
  cr_assert_eq(sqlite3_step(row), SQLITE_ROW, "%s: %s", statement, sqlite3_errmsg(db));
  gint64 value = sqlite3_column_int64(row, 0);
  sqlite3_finalize(row);
  sqlite3_close(db);
  return value;
}

Test(run, twice_gives_the_same_bytes)
{
  g_autoptr(Folder) folder = folder_new();
  folder_write(folder, "x.ini", experiment);
  g_autoptr(ProgramOutcome) first = program_run(folder, "run", "x.ini", "--json", "--out", "1.db", NULL);
  g_autoptr(ProgramOutcome) again = program_run(folder, "run", "x.ini", "--json", "--out", "2.db", NULL);
  g_autoptr(ProgramOutcome) other =
      program_run(folder, "run", "x.ini", "--json", "--out", "3.db", "--seed", "4", NULL);
  cr_assert_eq(first->status, 0, "%s", first->err);
  cr_assert_eq(again->status, 0, "%s", again->err);
  cr_assert_eq(other->status, 0, "%s", other->err);
  g_autofree char *first_json = without_wall_s(first->out), *again_json = without_wall_s(again->out);
  cr_assert_str_eq(first_json, again_json);
  g_autofree char *other_json = without_wall_s(other->out);
  cr_assert_str_neq(first_json, other_json, "another seed, yet the same result");
}

Test(run, json_is_one_object_and_nothing_else)
{
  g_autoptr(Folder) folder = folder_new();
  folder_write(folder, "x.ini", experiment);
  g_autoptr(ProgramOutcome) outcome = program_run(folder, "run", "x.ini", "--json", "--out", "x.db", NULL);
  cr_assert_eq(outcome->status, 0, "%s", outcome->err);
  g_autofree char *trimmed = g_strstrip(g_strdup(outcome->out));
  cr_assert(g_str_has_prefix(trimmed, "{") && g_str_has_suffix(trimmed, "}"), "%s", outcome->out);
  /* Read by SQLite, whose parser of JSON is not the one that the project writes for. */
  sqlite3 *db = NULL;
  sqlite3_stmt *row = NULL;
  cr_assert_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
  sqlite3_prepare_v2(
      db,
      "SELECT count(*) FROM json_each(?1, '$.runs') WHERE value ->> 'requests' ="
      " (value ->> 'completed') + (value ->> 'rejected') + (value ->> 'failed') AND value ->> 'requests' > 0",
      -1, &row, NULL);
  sqlite3_bind_text(row, 1, outcome->out, -1, SQLITE_STATIC);
  cr_assert_eq(sqlite3_step(row), SQLITE_ROW, "%s", sqlite3_errmsg(db));
  cr_assert_eq(sqlite3_column_int(row, 0), 2, "both systems, each with all its requests accounted for: %s",
               outcome->out);
  sqlite3_finalize(row);
  sqlite3_close(db);
}

Test(run, database_holds_every_request_and_is_not_overwritten)
{
  g_autoptr(Folder) folder = folder_new();
  folder_write(folder, "x.ini", experiment);
  g_autoptr(ProgramOutcome) outcome = program_run(folder, "run", "x.ini", "--quiet", "--out", "x.db", NULL);
  cr_assert_eq(outcome->status, 0, "%s", outcome->err);
  g_autofree char *left = folder_list(folder);
  cr_assert_str_eq(left, "x.db x.ini", "left behind: %s", left);
  cr_assert_eq(query(folder, "x.db", "SELECT count(*) FROM run"), 2);
  cr_assert_eq(query(folder, "x.db", "SELECT count(*) FROM request"),
               query(folder, "x.db", "SELECT sum(requests) FROM run"));
  g_autoptr(ProgramOutcome) refused = program_run(folder, "run", "x.ini", "--quiet", "--out", "x.db", NULL);
  expect_refused(refused, "x.db", "--force", NULL);
  g_autoptr(ProgramOutcome) forced =
      program_run(folder, "run", "x.ini", "--quiet", "--out", "x.db", "--force", NULL);
  cr_assert_eq(forced->status, 0, "%s", forced->err);
}

Test(run, interrupt_keeps_what_was_done)
{
  g_autoptr(Folder) folder = folder_new();
  folder_write(folder, "x.ini", experiment);
  const char *arguments[] = {"run",   "x.ini", "--system", "ideal",   "--set",
                             ENDLESS, "--out", "x.db",     "--quiet", NULL};
  struct program *program = program_start(folder, arguments);
  cr_assert(folder_await(folder, ".partial"), "no partial database");
  g_usleep(G_USEC_PER_SEC / 2);
  program_signal(program, SIGINT);
  g_autoptr(ProgramOutcome) outcome = program_finish(program);
  cr_assert_eq(outcome->status, 130, "exit status %d: %s", outcome->status, outcome->err);
  g_autofree char *left = folder_list(folder);
  cr_assert_str_eq(left, "x.db x.ini", "left behind: %s", left);
  cr_assert_gt(query(folder, "x.db", "SELECT count(*) FROM request"), 0);
  cr_assert_eq(query(folder, "x.db", "SELECT requests = completed + rejected + failed FROM run"), 1);
  g_autoptr(ProgramOutcome) report = program_run(folder, "report", "x.db", NULL);
  cr_assert_eq(report->status, 0, "%s", report->err);
}

Test(run, kill_leaves_a_readable_partial_database)
{
  g_autoptr(Folder) folder = folder_new();
  folder_write(folder, "x.ini", experiment);
  const char *arguments[] = {"run",   "x.ini", "--system", "ideal",   "--set",
                             ENDLESS, "--out", "x.db",     "--quiet", NULL};
  struct program *program = program_start(folder, arguments);
  cr_assert(folder_await(folder, ".partial"), "no partial database");
  g_usleep(G_USEC_PER_SEC / 2);
  program_signal(program, SIGKILL);
  g_autoptr(ProgramOutcome) outcome = program_finish(program);
  cr_assert_eq(outcome->status, 128 + SIGKILL, "it ended before: %s", outcome->err);
  g_autofree char *path = g_build_filename(folder, "x.db", NULL);
  cr_assert_not(g_file_test(path, G_FILE_TEST_EXISTS), "a killed run has no finished database");
  cr_assert_gt(query(folder, "x.db.partial", "SELECT count(*) FROM request"), 0);
}
