/* The shipped scenarios: each is run as it is, and its property read from the result database. */
#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <sqlite3.h>

#include "backend_sim/run.h"
#include "core/world.h"

struct scenario {
  char *folder, *path;
  sqlite3 *db;
  struct figures figures;
};

/* Runs experiments/NAME.ini under a system; sets: as for experiment_load. */
static struct scenario experiment_run(const char *name, const char *system, char **sets)
{
  struct scenario s = {0};
  g_autoptr(GError) error = NULL;
  g_autofree char *file = g_strdup_printf("experiments/%s.ini", name);
  g_autofree char *path = resolve_path(file, "");
  cr_assert(path, "%s is not there", file);
  g_autoptr(Experiment) e = experiment_load(path, system, sets, &error);
  cr_assert(e, "%s", error ? error->message : "");
  g_autoptr(Setup) setup = setup_new(e, WORLD_SSD | WORLD_PAGEABLE | WORLD_SPACE_SHARING, FALSE, &error);
  cr_assert(setup, "%s", error ? error->message : "");
  s.folder = g_dir_make_tmp("distmind-scenario-XXXXXX", NULL);
  s.path = g_build_filename(s.folder, "out.db", NULL);
  struct run_info info = {.experiment = e->name,
                          .system = e->system,
                          .backend = "sim",
                          .text = e->text,
                          .overrides = e->overrides,
                          .constants = setup->constants,
                          .notices = setup->notices};
  volatile sig_atomic_t interrupted = 0;
  struct run_outputs outputs = {
      .store = store_create(s.path, FALSE, &error), .quiet = TRUE, .interrupted = &interrupted};
  cr_assert(outputs.store && store_begin_run(outputs.store, &info, setup->catalog, &error));
  g_autofree char *notices = NULL;
  cr_assert(run_system(setup, &info, &outputs, &s.figures, &notices, &error), "%s",
            error ? error->message : "");
  cr_assert(store_end_run(outputs.store, &s.figures, FALSE, &error) && store_finish(outputs.store, &error));
  cr_assert_eq(sqlite3_open_v2(s.path, &s.db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  cr_assert(s.figures.requests > 0);
  cr_assert_eq(s.figures.completed, s.figures.requests);
  return s;
}

static struct scenario scenario_run(const char *name, char **sets)
{
  g_autofree char *file = g_build_filename("scenarios", name, NULL);
  return experiment_run(file, "distmind", sets);
}

static void scenario_clear(struct scenario *s)
{
  sqlite3_close(s->db);
  g_unlink(s->path);
  g_rmdir(s->folder);
  g_free(s->path);
  g_free(s->folder);
}

/* The one value that the query has. */
static char *ask_text(const struct scenario *s, const char *sql)
{
  sqlite3_stmt *statement = NULL;
  cr_assert_eq(sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL), SQLITE_OK, "%s", sqlite3_errmsg(s->db));
  cr_assert_eq(sqlite3_step(statement), SQLITE_ROW, "no row: %s", sql);
  cr_assert_neq(sqlite3_column_type(statement, 0), SQLITE_NULL, "NULL: %s", sql);
  char *text = g_strdup((const char *)sqlite3_column_text(statement, 0));
  sqlite3_finalize(statement);
  return text;
}

static int64_t ask(const struct scenario *s, const char *sql)
{
  g_autofree char *text = ask_text(s, sql);
  return g_ascii_strtoll(text, NULL, 10);
}

static void assert_text(const struct scenario *s, const char *sql, const char *expected)
{
  g_autofree char *text = ask_text(s, sql);
  cr_assert_str_eq(text, expected, "%s: %s instead of %s", sql, text, expected);
}

static int64_t load_ns(const struct scenario *s, int request)
{
  g_autofree char *sql =
      g_strdup_printf("SELECT b FROM decision WHERE kind = 'loaded' AND request = %d", request);
  return ask(s, sql);
}

/* Requests 0 to 3 load alone; 4, 5 (server 0), 6 (server 1) and 7 (resident) come together. */
Test(scenarios, load_slows_others_only_by_the_shared_link)
{
  struct scenario s = scenario_run("load-beside-work", NULL);
  int64_t alone = load_ns(&s, 0), transfer = 80 * NS_PER_MS; /* 1 GB at 12.5 GB/s */
  cr_assert_gt(alone, transfer);
  for (int request = 1; request < 4; request++)
    cr_assert_eq(load_ns(&s, request), alone);
  cr_assert_leq(ABS(load_ns(&s, 4) - (alone + transfer)), 2);
  cr_assert_leq(ABS(load_ns(&s, 5) - (alone + transfer)), 2);
  cr_assert_eq(load_ns(&s, 6), alone);
  /* Four control messages of 25 us, 20 ms of compute. */
  assert_text(&s, "SELECT found FROM request WHERE id = 7", "resident");
  cr_assert_eq(ask(&s, "SELECT end_ns - arrival_ns FROM request WHERE id = 7"),
               20 * NS_PER_MS + 100 * NS_PER_US);
  scenario_clear(&s);
}

#define EVICTED(where)                                                                                       \
  "SELECT group_concat(substr(model, 12), '') FROM (SELECT model FROM decision WHERE kind = 'evict' AND "    \
  "gpu " where " ORDER BY seq)"

/* Models 0 to 3 are used four times each, first; 4 to 7 once each, last. */
static void assert_evictions(const char *policy, const char *cache_victims)
{
  g_autofree char *set = g_strconcat("cache.policy=", policy, NULL);
  struct scenario s = scenario_run("evict-for-one-gb", (char *[]){set, NULL});
  assert_text(&s, EVICTED("IS NOT NULL"), "0123");
  assert_text(&s, EVICTED("IS NULL"), cache_victims);
  cr_assert_eq(s.figures.evictions, 8);
  cr_assert_eq(ask(&s, "SELECT count(*) FROM decision WHERE kind = 'evict' AND request = 20"), 8);
  cr_assert_eq(
      ask(&s, "SELECT min(total) = 1000000000 AND max(total) = 1000000000 FROM (SELECT sum(a) AS total FROM "
              "decision WHERE kind = 'evict' GROUP BY gpu)"),
      1);
  scenario_clear(&s);
}

Test(scenarios, eviction_takes_no_more_than_needed_oldest_first)
{
  assert_evictions("lru", "0123");
}

Test(scenarios, eviction_takes_no_more_than_needed_least_valuable_first)
{
  assert_evictions("weighted", "4567");
  struct scenario s = scenario_run("evict-for-one-gb", NULL); /* DistMind's own */
  assert_text(&s, EVICTED("IS NULL"), "4567");
  cr_assert_gt(ask(&s, "SELECT min(c) FROM decision WHERE kind = 'evict' AND gpu IS NULL"), 0);
  scenario_clear(&s);
}

Test(scenarios, unrelated_loads_run_at_once)
{
  struct scenario s = scenario_run("two-loads-at-once", NULL);
  int64_t alone = load_ns(&s, 2);
  cr_assert_gt(alone, 80 * NS_PER_MS); /* 1 GB over PCIe */
  cr_assert_eq(ask(&s, "SELECT count(DISTINCT gpu) FROM request WHERE id < 2"), 2);
  cr_assert_eq(
      ask(&s, "SELECT max(time_ns) - min(time_ns) FROM decision WHERE kind = 'load' AND request < 2"), 0);
  cr_assert_eq(load_ns(&s, 0), alone);
  cr_assert_eq(load_ns(&s, 1), alone);
  scenario_clear(&s);
}

Test(scenarios, ten_requests_cause_one_load)
{
  struct scenario s = scenario_run("ten-for-one-load", NULL);
  cr_assert_eq(s.figures.loads_remote + s.figures.loads_host, 1);
  cr_assert_eq(s.figures.loads_remote, 1);
  cr_assert_eq(s.figures.net_bytes, 250000000);
  cr_assert_eq(s.figures.found[FOUND_REMOTE], 1);
  cr_assert_eq(s.figures.found[FOUND_JOINED] + s.figures.found[FOUND_RESIDENT], 9);
  scenario_clear(&s);
}

Test(scenarios, ten_requests_cross_the_network_once_for_eight_gpus)
{
  struct scenario one = scenario_run("ten-for-one-load", NULL);
  struct scenario s = scenario_run("ten-for-one-load", (char *[]){"cluster.gpus_per_server=8", NULL});
  cr_assert_eq(s.figures.loads_remote, 1);
  cr_assert_eq(s.figures.net_bytes, 250000000);
  cr_assert_lt(s.figures.latency_ms.max,
               one.figures.latency_ms.max); /* another GPU takes it only where that pays */
  scenario_clear(&one);
  scenario_clear(&s);
}

#define HOLDERS(from, to)                                                                                    \
  "SELECT count(DISTINCT gpu) FROM request WHERE model = 'quarter_gb-0' AND arrival_ns BETWEEN " from        \
  "e9 AND " to "e9"

/* 2.5 GPUs' worth of requests for it from 1 to 4 s, 0.2 before and after. */
Test(scenarios, hot_model_gets_the_replicas_that_it_needs)
{
  struct scenario s = scenario_run("hot-model", NULL);
  cr_assert_eq(ask(&s, HOLDERS("0", "0.99")), 1);
  cr_assert_eq(ask(&s, HOLDERS("1.5", "3.99")), 3);
  cr_assert_eq(ask(&s, HOLDERS("5", "7")), 1);
  /* No queue builds up on them, and the others lose nothing meanwhile. */
  cr_assert_lt(ask(&s, "SELECT max(latency_ms) FROM request WHERE arrival_ns BETWEEN 1.5e9 AND 3.99e9"), 10);
  cr_assert_geq(ask(&s, "SELECT count(*) FROM decision WHERE kind = 'evict' AND gpu IS NOT NULL AND model = "
                        "'quarter_gb-0' AND time_ns > 4e9"),
                2);
  cr_assert_eq(ask(&s, "SELECT count(*) FROM decision WHERE kind = 'load' AND time_ns > 5e9"), 0);
  scenario_clear(&s);
}

Test(scenarios, missing_model_goes_where_least_is_evicted)
{
  struct scenario s = scenario_run("least-evicted", NULL);
  assert_text(&s, "SELECT group_concat(gpu, '') FROM (SELECT gpu FROM request WHERE id < 13 ORDER BY id)",
              "0000000011111");
  cr_assert_eq(ask(&s, "SELECT gpu FROM request WHERE id = 13"), 1);
  cr_assert_eq(ask(&s, "SELECT b FROM decision WHERE kind = 'dispatch' AND request = 13"), 0);
  assert_text(&s, "SELECT group_concat(model) FROM decision WHERE kind = 'evict'", "quarter_gb-8");
  scenario_clear(&s);
}

Test(scenarios, slower_link_changes_the_result_by_as_much)
{
  struct scenario s = scenario_run("link-fast-to-slow", NULL);
  cr_assert_eq(load_ns(&s, 0), 8 * NS_PER_MS);
  cr_assert_eq(load_ns(&s, 1), 4 * NS_PER_MS + 4 * NS_PER_S);
  cr_assert_eq(load_ns(&s, 2), 8 * NS_PER_S);
  scenario_clear(&s);
  /* The same link slow from the start, by a setting. */
  struct scenario slow = scenario_run("link-fast-to-slow", (char *[]){"cluster.nic_gbit_s=1", NULL});
  cr_assert_eq(load_ns(&slow, 0), 8 * NS_PER_S);
  scenario_clear(&slow);
}

/* Every request finds another model on the GPU: what leaves, what comes, and what the framework takes beyond
 * both were foreseen. Control messages and two transfers' setup are not in a forecast. */
Test(scenarios, forecasts_of_ray_know_a_whole_switch)
{
  char *sets[] = {(char *)"cluster.hardware=h200", (char *)"output.decisions=all",
                  (char *)"output.requests=all",   (char *)"workload.duration_s=3",
                  (char *)"experiment.warmup_s=0", NULL};
  struct scenario s = experiment_run("paper/05-pipelining", "ray", sets);
#define OFF "abs(d.a - (r.end_ns - r.dispatch_ns))"
#define SWITCHES                                                                                             \
  "FROM decision d JOIN request r ON d.request = r.id WHERE d.kind = 'dispatch' AND r.found = 'host'"
  cr_assert_gt(ask(&s, "SELECT count(*) " SWITCHES), 10);
  cr_assert_gt(ask(&s, "SELECT min(r.end_ns - r.dispatch_ns) " SWITCHES), 177 * NS_PER_MS); /* measured */
  cr_assert_lt(ask(&s, "SELECT max(" OFF ") " SWITCHES), 100 * NS_PER_US);
  scenario_clear(&s);
}
