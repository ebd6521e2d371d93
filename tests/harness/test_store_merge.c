/* Merging result databases: every row under its run's new number, and what damaged files do. */
#include "harness/store_merge.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

#include "core/error.h"
#include "fixture.h"
#include "harness/store_schema.h"
#include "harness/sweep_view.h"

struct lab {
  char *folder, *database, *out;
  GPtrArray *axes;
  GArray *facts;
};

static void lab_open(struct lab *lab)
{
  lab->folder = fixture_folder();
  lab->database = fixture_database(lab->folder, (struct fixture_options){0});
  lab->out = g_build_filename(lab->folder, "out.db", NULL);
  lab->axes = g_ptr_array_new_with_free_func((GDestroyNotify)axis_free);
  g_ptr_array_add(lab->axes, axis_parse("cluster.gpu_servers=1,2", NULL));
  g_ptr_array_add(lab->axes, axis_parse("workload.trace={a,b},c", NULL));
  lab->facts = sweep_facts_new();
  sweep_fact_add(lab->facts, "tasks", "17");
  sweep_fact_add(lab->facts, "program version", "1: 2");
}

static void lab_close(struct lab *lab)
{
  g_ptr_array_unref(lab->axes);
  g_array_unref(lab->facts);
  g_free(lab->database);
  g_free(lab->out);
  fixture_remove(lab->folder);
}

static gboolean merge(struct lab *lab, const struct merge_source *sources, size_t count, size_t *bad,
                      GError **error)
{
  return store_merge(lab->out, sources, count, lab->axes, lab->facts, bad, error);
}

/* The first column of the first row. */
static gint64 query(sqlite3 *db, const char *sql)
{
  sqlite3_stmt *statement = NULL;
  cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK, "%s: %s", sql,
               sqlite3_errmsg(db));
  cr_assert_eq(sqlite3_step(statement), SQLITE_ROW, "%s: %s", sql, sqlite3_errmsg(db));
  gint64 value = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  return value;
}

/* Columns of each table but the run's number; run is how a row says of which run it is. */
static const struct {
  const char *table, *run, *columns, *order;
} tables[] = {
    {"run", "id",
     "experiment, system, seed, typeof(seed), version, host, started, ended, interrupted, warmup_ns, "
     "constants, notices, "
     "overrides, experiment_text, experiment_path, cores, processes, requests, throughput_rps, "
     "latency_ms_p99, "
     "found_remote, loads_host, net_bytes, events, wall_s",
     "id"},
    {"setting", "run", "key, value, typeof(value)", "key"},
    {"model", "run", "id, name", "id"},
    {"request_data", "key >> 40",
     "key & 1099511627775, model, gpu, arrival_ns, dispatch_ns, start_ns, end_ns, outcome, found, slo_met",
     "key"},
    {"usage", "run", "time_ns, gpus_inference, gpus_training, gpus_held, net_bytes_s, queue, failed",
     "rowid"},
    {"decision_data", "run", "time_ns, kind, reason, request, model, server, gpu, part, source, a, b, c, d",
     "rowid"},
};

/* 1: run `now` of main has the rows of run `before` of old in a table, in the same order, at least one and no
 * more. */
static char *same_rows_sql(gsize table, gint now, gint before)
{
  GString *sql = g_string_new("WITH ");
  const char *const names[] = {"a", "b"}, *const schemas[] = {"main", "old"};
  const gint runs[] = {now, before};
  for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
    g_string_append_printf(sql, "%s%s AS (SELECT %s FROM %s.%s WHERE %s = %d ORDER BY %s)", i ? ", " : "",
                           names[i], tables[table].columns, schemas[i], tables[table].table,
                           tables[table].run, runs[i], tables[table].order);
  g_string_append(
      sql, " SELECT (SELECT count(*) FROM a) > 0 AND (SELECT count(*) FROM a) = (SELECT count(*) FROM b) AND "
           "NOT EXISTS (SELECT * FROM (SELECT row_number() OVER () AS n, * FROM a EXCEPT SELECT "
           "row_number() OVER () AS n, * FROM b))");
  return g_string_free(sql, FALSE);
}

Test(store_merge, copies_every_row_of_every_table)
{
  struct lab lab;
  lab_open(&lab);
  const struct merge_source sources[] = {
      {lab.database, 3}, {lab.database, 1}, {lab.database, 3}, {lab.database, 2}};
  size_t bad;
  g_autoptr(GError) error = NULL;
  cr_assert(merge(&lab, sources, G_N_ELEMENTS(sources), &bad, &error), "%s", error ? error->message : "");
  sqlite3 *db;
  g_autofree char *attach = g_strdup_printf("ATTACH '%s' AS old", lab.database);
  cr_assert_eq(sqlite3_open(lab.out, &db), SQLITE_OK);
  cr_assert_eq(sqlite3_exec(db, attach, NULL, NULL, NULL), SQLITE_OK);
  cr_assert_eq(query(db, "SELECT count(*) FROM run"), G_N_ELEMENTS(sources));
  for (gsize t = 0; t < G_N_ELEMENTS(tables); t++)
    for (gsize i = 0; i < G_N_ELEMENTS(sources); i++) {
      g_autofree char *sql = same_rows_sql(t, (gint)i + 1, (gint)sources[i].run);
      gboolean empty = g_str_equal(tables[t].table, "decision_data") && sources[i].run != 2;
      cr_assert_eq(query(db, sql), !empty, "%s of run %zu", tables[t].table, i + 1);
    }
  sqlite3_close(db);
  lab_close(&lab);
}

Test(store_merge, says_of_what_sweep_it_is)
{
  struct lab lab;
  lab_open(&lab);
  size_t bad;
  cr_assert(merge(&lab, &(struct merge_source){lab.database, 2}, 1, &bad, NULL));
  g_autoptr(StoreReader) reader = store_open(lab.out, NULL), plain = store_open(lab.database, NULL);
  g_autoptr(GPtrArray) axes = store_axes(reader, NULL), none = store_axes(plain, NULL);
  g_autoptr(GArray) facts = store_facts(reader, NULL), no_facts = store_facts(plain, NULL);
  cr_assert_eq(axes->len, 2);
  const struct axis *second = axes->pdata[1];
  cr_assert(g_str_equal(second->key, "workload.trace") && g_str_equal(second->values[0], "a,b"));
  cr_assert_eq(facts->len, 2);
  cr_assert_str_eq(g_array_index(facts, struct sweep_fact, 1).value, "1: 2");
  cr_assert_eq(none->len + no_facts->len, 0, "a database of `run` is no sweep's");
  g_autoptr(SweepView) view = sweep_view_read(reader, NULL);
  cr_assert(view && view->tasks == 17 && view->runs->len == 1);
  cr_assert_null(sweep_view_read(plain, NULL));
  lab_close(&lab);
}

static void expect_failure(struct lab *lab, const struct merge_source *sources, size_t count, size_t bad_one)
{
  size_t bad;
  g_autoptr(GError) error = NULL;
  g_autofree char *partial = g_strconcat(lab->out, ".partial", NULL);
  cr_assert_not(merge(lab, sources, count, &bad, &error));
  cr_assert_eq(bad, bad_one);
  cr_assert(strstr(error->message, sources[bad_one].path), "%s", error->message);
  cr_assert_not(g_file_test(partial, G_FILE_TEST_EXISTS));
}

Test(store_merge, names_the_source_that_is_not_there)
{
  struct lab lab;
  lab_open(&lab);
  g_autofree char *missing = g_build_filename(lab.folder, "missing.db", NULL);
  g_autofree char *text = g_build_filename(lab.folder, "it's a text.db", NULL);
  cr_assert(g_file_set_contents(text, "no database at all, but long enough to be looked at", -1, NULL));
  expect_failure(&lab, (struct merge_source[]){{lab.database, 1}, {missing, 1}}, 2, 1);
  expect_failure(&lab, (struct merge_source[]){{text, 1}, {lab.database, 1}}, 2, 0);
  expect_failure(&lab, (struct merge_source[]){{lab.database, 1}, {lab.database, 4}}, 2, 1);
  cr_assert_not(g_file_test(missing, G_FILE_TEST_EXISTS), "it was created");
  cr_assert_not(g_file_test(lab.out, G_FILE_TEST_EXISTS));
  /* What was there stays as it was. */
  cr_assert(g_file_set_contents(lab.out, "before", -1, NULL));
  expect_failure(&lab, (struct merge_source[]){{missing, 1}}, 1, 0);
  g_autofree char *before = fixture_read(lab.out);
  cr_assert_str_eq(before, "before");
  lab_close(&lab);
}

/* Cuts the file short, or changes some of its bytes. */
static void damage(char *bytes, gsize *length, GRand *random)
{
  if (g_rand_boolean(random)) {
    *length = (gsize)g_rand_int_range(random, 0, (gint)*length);
    return;
  }
  gint changes = g_rand_int_range(random, 1, 40);
  gsize end = g_rand_boolean(random) ? *length : 4096; /* half of them in the header and schema */
  for (gint i = 0; i < changes; i++)
    bytes[g_rand_int_range(random, 0, (gint)end)] = (char)g_rand_int(random);
}

Test(store_merge, survives_damaged_files)
{
  struct lab lab;
  lab_open(&lab);
  g_autofree char *whole = NULL, *path = g_build_filename(lab.folder, "damaged.db", NULL);
  g_autofree char *partial = g_strconcat(lab.out, ".partial", NULL);
  gsize size;
  guint failed = 0;
  cr_assert(g_file_get_contents(lab.database, &whole, &size, NULL));
  GRand *random = g_rand_new_with_seed(11);
  for (guint round = 0; round < 150; round++) {
    gsize length = size;
    g_autofree char *bytes = g_memdup2(whole, size);
    damage(bytes, &length, random);
    cr_assert(g_file_set_contents(path, bytes, (gssize)length, NULL));
    size_t bad;
    g_autoptr(GError) error = NULL;
    const struct merge_source sources[] = {{lab.database, 1}, {path, 2}};
    if (merge(&lab, sources, 2, &bad, &error)) {
      g_unlink(lab.out);
      continue;
    }
    failed++;
    cr_assert(bad == 1 && strstr(error->message, path), "round %u: %s", round, error->message);
    cr_assert_not(g_file_test(lab.out, G_FILE_TEST_EXISTS) || g_file_test(partial, G_FILE_TEST_EXISTS));
  }
  cr_assert_gt(failed, 75, "only %u were noticed", failed);
  g_rand_free(random);
  lab_close(&lab);
}
