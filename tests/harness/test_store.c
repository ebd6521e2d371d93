/* The result database: what is written is read back, one plain file is left, and a killed run leaves whole
 * batches. */
#include "harness/store.h"
#include "core/error.h"
#include "fixture.h"
#include "harness/store_schema.h"
#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int64_t query_number(struct store_reader *reader, const char *sql)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(sqlite3_stmt) statement = store_prepare(reader, sql, &error);
  cr_assert_not_null(statement, "%s: %s", sql, error ? error->message : "");
  cr_assert_eq(store_step(reader, statement, &error), 1, "%s", sql);
  return sqlite3_column_int64(statement, 0);
}

static guint files_in(const char *folder)
{
  guint count = 0;
  GDir *dir = g_dir_open(folder, 0, NULL);
  while (g_dir_read_name(dir))
    count++;
  g_dir_close(dir);
  return count;
}

Test(store, leaves_one_file_that_reads_back)
{
  char *folder = fixture_folder();
  g_autofree char *path = fixture_database(folder, (struct fixture_options){0});
  cr_assert_eq(files_in(folder), 1, "journals are left");
  g_autoptr(GError) error = NULL;
  g_autoptr(StoreReader) reader = store_open(path, &error);
  cr_assert_not_null(reader, "%s", error ? error->message : "");
  g_autoptr(GPtrArray) runs = store_runs(reader, &error);
  cr_assert_eq(runs->len, FIXTURE_SYSTEMS);
  for (unsigned i = 0; i < FIXTURE_SYSTEMS; i++) {
    const struct stored_run *run = runs->pdata[i];
    struct run_info info = fixture_info(i);
    struct figures figures = fixture_figures(i);
    cr_assert_arr_eq(&run->figures, &figures, sizeof figures);
    cr_assert_str_eq(run->system, info.system);
    cr_assert_str_eq(run->text, info.text);
    cr_assert_str_eq(run->overrides, info.overrides);
    cr_assert_str_eq(run->constants, info.constants);
    cr_assert_str_eq(run->notices, info.notices);
    cr_assert_eq(run->seed, info.seed, "a seed above 2^63 is kept");
    cr_assert(run->finished && !run->interrupted);
  }
  fixture_remove(folder);
}

/* Every stored request equals the row that was given, absent times included. */
static void check_request(sqlite3_stmt *statement, unsigned system, uint64_t id)
{
  static const char *const models[] = {"resnet152-0", "resnet152-1", "resnet152-2",
                                       "resnet152-3", "bert-0",      "bert-1"};
  struct request_row row = fixture_request(system, id);
  const int64_t numbers[] = {(int64_t)id,    row.gpu == NO_INDEX ? -1 : (int64_t)row.gpu,
                             row.arrival_ns, row.dispatch_ns,
                             row.start_ns,   row.end_ns,
                             row.slo_met};
  for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
    cr_assert_eq(sqlite3_column_int64(statement, (int)i), numbers[i], "request %lu, column %zu", id, i);
  cr_assert_str_eq((const char *)sqlite3_column_text(statement, 7), models[row.model]);
  cr_assert_str_eq((const char *)sqlite3_column_text(statement, 8), outcome_name(row.outcome));
  if (row.outcome == OUTCOME_COMPLETED) {
    cr_assert_str_eq((const char *)sqlite3_column_text(statement, 9), found_name(row.found));
    cr_assert_eq(sqlite3_column_double(statement, 10), (double)(row.end_ns - row.arrival_ns) / 1e6);
  } else {
    cr_assert_eq(sqlite3_column_type(statement, 9), SQLITE_NULL);
    cr_assert_eq(sqlite3_column_type(statement, 10), SQLITE_NULL);
  }
}

Test(store, keeps_every_request)
{
  char *folder = fixture_folder();
  g_autofree char *path = fixture_database(folder, (struct fixture_options){0});
  g_autoptr(GError) error = NULL;
  g_autoptr(StoreReader) reader = store_open(path, &error);
  g_autoptr(sqlite3_stmt) statement = store_prepare(
      reader,
      "SELECT id, coalesce(gpu, -1), arrival_ns, coalesce(dispatch_ns, -1), coalesce(start_ns, -1), end_ns, "
      "slo_met, model, outcome, found, latency_ms FROM request WHERE system = 'mps' ORDER BY id",
      &error);
  for (uint64_t id = 0; id < FIXTURE_REQUESTS; id++) {
    cr_assert_eq(store_step(reader, statement, &error), 1);
    check_request(statement, 2, id);
  }
  cr_assert_eq(store_step(reader, statement, &error), 0);
  cr_assert_eq(query_number(reader, "SELECT count(*) FROM usage WHERE run = 2"), 100);
  cr_assert_eq(query_number(reader, "SELECT count(*) FROM decision WHERE d IS NULL AND kind = 'dispatch'"),
               1);
  cr_assert_eq(query_number(reader, "SELECT b FROM decision WHERE kind = 'evict' AND model = 'bert-1'"),
               1500000000);
  fixture_remove(folder);
}

/* A store that has begun a run and taken `rows` requests. */
static struct store *store_with(const char *path, uint64_t rows)
{
  g_autoptr(GError) error = NULL;
  struct store *store = store_create(path, FALSE, &error);
  cr_assert_not_null(store);
  struct catalog *catalog = fixture_catalog();
  struct run_info info = fixture_info(1);
  cr_assert(store_begin_run(store, &info, catalog, &error));
  catalog_free(catalog);
  for (uint64_t id = 0; id < rows; id++) {
    struct request_row row = fixture_request(1, id);
    store_request(store, &row);
  }
  return store;
}

Test(store, killed_run_leaves_whole_batches)
{
  char *folder = fixture_folder();
  g_autofree char *path = g_build_filename(folder, "run.db", NULL);
  g_autofree char *partial = g_strconcat(path, ".partial", NULL);
  pid_t child = fork();
  if (child == 0) {
    store_with(path, 100000);
    kill(getpid(), SIGKILL);
  }
  int status;
  waitpid(child, &status, 0);
  cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  cr_assert(!g_file_test(path, G_FILE_TEST_EXISTS));
  g_autoptr(GError) error = NULL;
  g_autoptr(StoreReader) reader = store_open(partial, &error);
  cr_assert_not_null(reader, "%s", error ? error->message : "");
  int64_t rows = query_number(reader, "SELECT count(*) FROM request");
  cr_assert(rows >= 4 * 16384 && rows % 256 == 0, "%ld rows: no whole batches", rows);
  cr_assert_eq(query_number(reader, "SELECT max(id) + 1 FROM request"), rows,
               "batches are missing in between");
  g_autoptr(GPtrArray) runs = store_runs(reader, &error);
  cr_assert(!((struct stored_run *)runs->pdata[0])->finished);
  g_autoptr(GError) again = NULL;
  cr_assert_null(store_create(path, FALSE, &again), "what the killed run left is overwritten");
  cr_assert(g_error_matches(again, DM_ERROR, DM_ERROR_INPUT));
  fixture_remove(folder);
}

Test(store, slow_runs_are_readable_within_seconds)
{
  char *folder = fixture_folder();
  g_autofree char *path = g_build_filename(folder, "run.db", NULL);
  g_autofree char *partial = g_strconcat(path, ".partial", NULL);
  struct store *store = store_with(path, 10);
  g_usleep(1100000);
  store_usage(store, &(struct usage_row){.time_ns = 1});
  g_autoptr(GError) error = NULL;
  g_autoptr(StoreReader) reader = store_open(partial, &error);
  for (int i = 0; i < 100 && query_number(reader, "SELECT count(*) FROM request") < 10; i++)
    g_usleep(20000);
  cr_assert_eq(query_number(reader, "SELECT count(*) FROM request"), 10);
  g_clear_pointer(&reader, store_close);
  store_abandon(store);
  cr_assert_eq(files_in(folder), 0, "abandoning leaves files");
  fixture_remove(folder);
}

Test(store, refuses_and_forces)
{
  char *folder = fixture_folder();
  g_autofree char *path = g_build_filename(folder, "run.db", NULL);
  g_file_set_contents(path, "precious", -1, NULL);
  g_autoptr(GError) error = NULL;
  cr_assert_null(store_create(path, FALSE, &error));
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
  cr_assert(strstr(error->message, "run.db"));
  cr_assert_eq(files_in(folder), 1);
  struct store *store = store_create(path, TRUE, NULL);
  cr_assert_not_null(store);
  g_autofree char *during = fixture_read(path);
  cr_assert_str_eq(during, "precious", "the old file stays until the new one is whole");
  cr_assert(store_finish(store, NULL));
  g_autoptr(StoreReader) reader = store_open(path, NULL);
  cr_assert_not_null(reader);
  g_autofree char *nowhere = g_build_filename(folder, "no", "folder", "x.db", NULL);
  g_autoptr(GError) missing = NULL;
  cr_assert_null(store_create(nowhere, FALSE, &missing));
  cr_assert(g_error_matches(missing, DM_ERROR, DM_ERROR_INPUT));
  fixture_remove(folder);
}

Test(store, duplicate_rows_fail_the_run_and_keep_the_rest)
{
  char *folder = fixture_folder();
  g_autofree char *path = g_build_filename(folder, "run.db", NULL);
  struct store *store = store_with(path, 10);
  struct request_row row = fixture_request(1, 3);
  store_request(store, &row);
  struct figures figures = fixture_figures(1);
  g_autoptr(GError) error = NULL;
  cr_assert(!store_end_run(store, &figures, FALSE, &error));
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_FAILED));
  g_autoptr(GError) finish = NULL;
  cr_assert(!store_finish(store, &finish));
  cr_assert(g_error_matches(finish, DM_ERROR, DM_ERROR_FAILED));
  fixture_remove(folder);
}

Test(store, notices_can_be_replaced)
{
  char *folder = fixture_folder();
  g_autofree char *path = g_build_filename(folder, "run.db", NULL);
  struct store *store = store_with(path, 10);
  struct figures figures = fixture_figures(1);
  store_notices(store, "12 rows skipped");
  cr_assert(store_end_run(store, &figures, TRUE, NULL));
  cr_assert(store_finish(store, NULL));
  g_autoptr(StoreReader) reader = store_open(path, NULL);
  g_autoptr(GPtrArray) runs = store_runs(reader, NULL);
  const struct stored_run *run = runs->pdata[0];
  cr_assert_str_eq(run->notices, "12 rows skipped");
  cr_assert(run->finished && run->interrupted);
  fixture_remove(folder);
}

/* Each file is refused as bad input, in one line that names it, whatever is in it. */
Test(store, foreign_files_are_bad_input)
{
  char *folder = fixture_folder();
  g_autofree char *good = fixture_database(folder, (struct fixture_options){0});
  g_autofree char *path = g_build_filename(folder, "bad.db", NULL);
  char *bytes;
  gsize length;
  cr_assert(g_file_get_contents(good, &bytes, &length, NULL));
  for (unsigned i = 0; i < 40; i++) {
    g_autofree char *broken = g_memdup2(bytes, length);
    gsize keep = i == 0 ? 0 : i == 1 ? 50 : length;
    for (gsize at = 90 + i * 64; i > 1 && at < length; at += 1000 + 37 * i)
      broken[at] = (char)(at * i);
    g_file_set_contents(path, broken, (gssize)keep, NULL);
    g_autoptr(GError) error = NULL;
    struct store_reader *reader = store_open(path, &error);
    g_autoptr(GPtrArray) runs = reader ? store_runs(reader, &error) : NULL;
    cr_assert(runs || g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
    cr_assert(runs || g_str_has_prefix(error->message, path));
    cr_assert(i > 1 || !runs, "an empty or cut file is taken for a result database");
    g_clear_pointer(&reader, store_close);
  }
  g_free(bytes);
  g_autoptr(GError) missing = NULL;
  cr_assert_null(store_open("/nonexistent.db", &missing));
  cr_assert(g_error_matches(missing, DM_ERROR, DM_ERROR_INPUT));
  fixture_remove(folder);
}

/* The schema that results/README.md tells people about: every ```sql block runs and yields rows. */
Test(store, queries_of_the_readme_run)
{
  char *folder = fixture_folder();
  g_autofree char *path = fixture_database(folder, (struct fixture_options){0});
  g_autoptr(StoreReader) reader = store_open(path, NULL);
  g_autofree char *readme = fixture_read(DM_SOURCE_DIR "/results/README.md");
  g_auto(GStrv) blocks = g_strsplit(readme, "```sql\n", -1);
  unsigned queries = 0;
  for (char **block = blocks + 1; *blocks && *block; block++) {
    g_autofree char *sql = g_strndup(*block, (gsize)(strstr(*block, "```") - *block));
    g_autoptr(GError) error = NULL;
    g_autoptr(sqlite3_stmt) statement = store_prepare(reader, sql, &error);
    cr_assert_not_null(statement, "%s\n%s", sql, error ? error->message : "");
    cr_assert_eq(store_step(reader, statement, &error), 1, "no row: %s", sql);
    queries++;
  }
  cr_assert_geq(queries, 8);
  fixture_remove(folder);
}
