/* Checks of runs; see outcome_check.h. */
#include "outcome_check.h"

#include <criterion/criterion.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

gint64 outcome_ask(ClusterLab *lab, const char *database, const char *sql)
{
  g_autofree char *path = lab_path(lab, database);
  sqlite3 *db;
  sqlite3_stmt *statement;
  cr_assert_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK, "%s", path);
  cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK, "%s: %s", sql,
               sqlite3_errmsg(db));
  cr_assert_eq(sqlite3_step(statement), SQLITE_ROW, "%s: %s", sql, sqlite3_errmsg(db));
  gint64 number = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return number;
}

/* The first number of the key: one run, so one. */
static gint64 json_number(const char *json, const char *key)
{
  g_autofree char *quoted = g_strdup_printf("\"%s\":", key);
  const char *at = strstr(json, quoted);
  cr_assert_not_null(at, "no %s in %s", key, json);
  return strtoll(at + strlen(quoted), NULL, 10);
}

struct run_sums outcome_check(ClusterLab *lab, const struct process *client, const char *database,
                              const char *what)
{
  g_autofree char *json = process_out(client), *log = process_log(client);
  cr_assert(client->ended && client->status == 0, "%s: status %d: %s", what, client->status, log);
  struct run_sums s = {.requests = json_number(json, "requests"),
                       .completed = json_number(json, "completed"),
                       .rejected = json_number(json, "rejected"),
                       .failed = json_number(json, "failed")};
  cr_assert_gt(s.requests, 0, "%s", what);
  cr_assert_eq(s.requests, s.completed + s.rejected + s.failed, "%s: %s", what, json);
#define ASK(sql) outcome_ask(lab, database, "SELECT count(*) FROM request WHERE " sql)
  cr_assert_eq(ASK("1"), s.requests, "%s: rows", what);
  cr_assert_eq(outcome_ask(lab, database, "SELECT count(DISTINCT id) FROM request"), s.requests, "%s: ids",
               what);
  cr_assert_eq(outcome_ask(lab, database, "SELECT max(id) + 1 FROM request"), s.requests, "%s: ids", what);
  cr_assert_eq(ASK("outcome = 'completed'"), s.completed, "%s", what);
  cr_assert_eq(ASK("outcome = 'rejected'"), s.rejected, "%s", what);
  s.lost = ASK("outcome = 'lost'");
  s.timed_out = ASK("outcome = 'timed_out'");
  cr_assert_eq(s.lost + s.timed_out, s.failed, "%s: %s", what, log);
  cr_assert_eq(ASK("outcome = 'completed' AND NOT (dispatch_ns >= arrival_ns AND start_ns >= dispatch_ns AND "
                   "end_ns > arrival_ns AND gpu >= 0)"),
               0, "%s: times", what);
#undef ASK
  return s;
}

void outcome_failed(const struct process *client, const char *says, const char *what)
{
  g_autofree char *log = process_log(client);
  cr_assert(client->ended && client->status == 1, "%s: status %d: %s", what, client->status, log);
  cr_assert(strstr(log, says), "%s: expected \"%s\" in: %s", what, says, log);
}
