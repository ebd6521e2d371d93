/* `validate`: a run laid beside itself, beside other hardware and other profiles, and what is refused. */
#include <criterion/criterion.h>
#include <sqlite3.h>
#include <string.h>

#include "site.h"

static void change(const Site *site, const char *name, const char *sql)
{
  g_autofree char *path = g_build_filename(site, name, NULL);
  sqlite3 *db;
  cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
  cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
  sqlite3_close(db);
}

/* A simulated run that passes for a real one: its figures are known to the last digit. */
static void run_as_real(const Site *site, const char *name, const char *options)
{
  g_autofree char *words = g_strdup_printf("run @/tiny.ini --out @/%s --force --quiet%s", name, options);
  site_run_good(site, "distmind-sim", words);
  change(site, name, "UPDATE run SET backend = 'real'");
}

/* The simulator's own run, replayed, is itself: every error is 0, whatever the load. */
static void same_as_itself(const Site *site, const char *sets, const char *load)
{
  g_autofree char *options = g_strconcat(" ", sets, NULL);
  run_as_real(site, "sim.db", options);
  g_autoptr(Spawned) v = site_run(site, "distmind-sim", "validate @/sim.db --json");
  cr_assert_eq(v->status, 0, "%s", v->err);
  g_autofree char *expected = g_strdup_printf("\"load\": \"%s\"", load);
  cr_assert(strstr(v->out, expected), "%s", v->out);
  guint errors = 0;
  for (const char *at = v->out; (at = strstr(at, "\"error_percent\": ")) != NULL; at++, errors++)
    cr_assert_eq(number_after(at, "\"error_percent\": "), 0, "%s: %s", sets, v->out);
  cr_assert_geq(errors, 30);
}

Test(validate, a_simulated_run_replayed_is_itself)
{
  g_autoptr(Site) site = site_new();
  site_write(site, "t.csv",
             "arrival_s,model\n5,tiny-3\n5.01,other\n5.5,tiny-3\n6.1,tiny\n6.2,more\n7,tiny-0\n");
  same_as_itself(site, "--set workload.rate_rps=400", "replayed");
  same_as_itself(site, "--set workload.kind=gamma --set workload.cv=3 --set experiment.warmup_s=0.25",
                 "replayed");
  g_autofree char *trace = g_strdup_printf("--trace %s/t.csv --set workload.duration_s=0", site);
  same_as_itself(site, trace, "replayed");
  same_as_itself(
      site, "--set workload.kind=shifting --set workload.outstanding=3 --set workload.shift_period_s=0.1",
      "simulated");
  same_as_itself(site, "--set workload.kind=closed --set workload.outstanding=3", "simulated");
}

Test(validate, other_hardware_and_profiles_show)
{
  g_autoptr(Site) site = site_new();
  site_write(site, "slow.ini", "[hardware]\ncontrol_us = 1003\nhost_memory_gb = 77\n");
  site_write(site, "slow/tiny.csv",
             "# warm_latency_ms: 3\nlayer,kind,param_bytes,compute_us\n"
             "a,conv,262144,300\nb,conv,0,100\nc,conv,524288,400\nd,fc,1048576,200\n");
  run_as_real(site, "sim.db", " --set workload.rate_rps=5");
  g_autoptr(Spawned) hop =
      site_run(site, "distmind-sim", "validate @/sim.db --system distmind --hardware @/slow.ini --json");
  const char *p50 = strstr(hop->out, "\"latency_ms_p50\": {");
  cr_assert_not_null(p50, "%s", hop->err);
  cr_assert_float_eq(number_after(p50, "\"simulated\": ") - number_after(p50, "\"real\": "), 4, 0.02,
                     "four messages of a millisecond more: %s", p50);
  g_autoptr(Spawned) slow =
      site_run(site, "distmind-sim", "validate @/sim.db --system pipeswitch --profiles @/slow --json");
  cr_assert_not(strstr(slow->out, "distmind\""));
  p50 = strstr(slow->out, "\"latency_ms_p50\": {");
  cr_assert_not_null(p50, "%s", slow->err);
  cr_assert_gt(number_after(p50, "\"simulated\": ") - number_after(p50, "\"real\": "), 1.9);
  cr_assert(strstr(slow->out, "\"verdict\": \"outside\"") ||
            strstr(slow->out, "\"verdict\": \"not judged\""));
}

Test(validate, medians_over_databases_of_one_experiment)
{
  g_autoptr(Site) site = site_new();
  run_as_real(site, "1.db", " --seed 1");
  run_as_real(site, "2.db", " --seed 2");
  run_as_real(site, "3.db", " --seed 3");
  g_autoptr(Spawned) v = site_run(site, "distmind-sim", "validate @/1.db @/2.db @/3.db");
  cr_assert_eq(v->status, 0, "%s", v->err);
  cr_assert(strstr(v->out, "medians of 3 runs"), "%s", v->out);
  run_as_real(site, "4.db", " --set experiment.name=other");
  site_refused(site, "distmind-sim", "validate @/1.db @/4.db",
               "expected a run of the experiment tiny as before, found other");
}

/* A line of each kind and system, and its place in the key. */
Test(validate, the_figure_has_real_and_simulated_latencies)
{
  g_autoptr(Site) site = site_new();
  run_as_real(site, "sim.db", "");
  site_run_good(site, "distmind-sim", "validate @/sim.db --plot @/cdf.svg");
  g_autofree char *path = g_build_filename(site, "cdf.svg", NULL), *svg = NULL;
  cr_assert(g_file_get_contents(path, &svg, NULL, NULL));
  static const char *const lines[] = {"distmind, real", "distmind, simulated", "pipeswitch, real",
                                      "pipeswitch, simulated"};
  for (guint i = 0; i < G_N_ELEMENTS(lines); i++)
    cr_expect(strstr(svg, lines[i]), "no line \"%s\"", lines[i]);
}

/* --- what is refused */

/* A good database, changed by a statement, is refused. */
static void refused_after(const Site *site, const char *sql, const char *says)
{
  g_autofree char *good = g_build_filename(site, "good.db", NULL),
                  *bad = g_build_filename(site, "bad.db", NULL);
  g_autofree char *bytes = NULL;
  gsize size;
  cr_assert(g_file_get_contents(good, &bytes, &size, NULL) &&
            g_file_set_contents(bad, bytes, (gssize)size, NULL));
  change(site, "bad.db", sql);
  site_refused(site, "distmind-sim", "validate @/bad.db", says);
}

Test(validate, malformed_databases_are_refused)
{
  g_autoptr(Site) site = site_new();
  run_as_real(site, "good.db", "");
  static const struct {
    const char *sql, *says;
  } cases[] = {
      {"DELETE FROM request_data WHERE key & 0xff = 7", "request 7 is not stored"},
      {"DELETE FROM request_data", "holds no request of system distmind"},
      {"UPDATE request_data SET arrival_ns = -5", "expected an arrival"},
      {"UPDATE request_data SET arrival_ns = 9223372036854775807 WHERE key & 0xff = 9",
       "request 9: expected an arrival"},
      {"UPDATE request_data SET arrival_ns = 0 WHERE key & 0xff = 9", "request 9: expected an arrival"},
      {"UPDATE request_data SET arrival_ns = 'soon'", "request"},
      {"UPDATE request_data SET model = 4000000000", "expected a model below 8"},
      {"UPDATE request_data SET model = NULL", "request"},
      {"UPDATE model SET name = 'big-1'", "expected one of the experiment's"},
      {"DELETE FROM model WHERE id = 3", "model 3"},
      {"UPDATE run SET window_s = 1e300", "window_s is out of bounds"},
      {"UPDATE run SET window_s = -1", "window_s is out of bounds"},
      {"UPDATE run SET id = id + 9999999", "expected run ids"},
      {"UPDATE run SET id = -id", "expected run ids"},
      {"UPDATE run SET ended = NULL", "was killed"},
      {"UPDATE run SET experiment_text = '[cluster]'", "the experiment that it holds"},
      {"UPDATE run SET experiment_text = replace(experiment_text, 'tiny = 8', 'gone = 8')", "gone"},
      {"UPDATE run SET overrides = 'cluster.hardware=nowhere.ini'", "nowhere"},
      {"UPDATE run SET system = 'nosuch'", "nosuch"},
      {"UPDATE run SET experiment_path = NULL", "expected experiment_path"},
      {"UPDATE run SET cores = 0", "expected experiment_path, cores and processes"},
      {"UPDATE run SET processes = -3", "expected experiment_path, cores and processes"},
      {"ALTER TABLE run DROP COLUMN cores", "older version"},
      {"DELETE FROM run", "holds no run"},
      {"UPDATE run SET backend = 'simulated'", "expected a run of distmind-real, found a simulated one"},
      {"PRAGMA user_version = 9", "layout 9"},
  };
  for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
    refused_after(site, cases[i].sql, cases[i].says);
}

static const struct {
  const char *program, *words, *says;
} bad_usage[] = {
    {"distmind-sim", "validate", "expected REAL.db"},
    {"distmind-sim", "validate @/none.db", "no such file"},
    {"distmind-sim", "validate @/text.db", "text.db"},
    {"distmind-sim", "validate @/good.db --system mps", "holds no run of system mps"},
    {"distmind-sim", "validate @/good.db --hardware @/bad.ini", "bad.ini:2"},
    {"distmind-sim", "validate @/good.db --hardware @/none.ini", "none.ini"},
    {"distmind-sim", "validate @/good.db --profiles @/none", "none"},
    {"distmind-sim", "validate @/good.db --plot @/x.bmp", ".png, .svg or .pdf"},
    {"distmind-real", "calibrate", "expected -o HARDWARE.ini"},
    {"distmind-real", "calibrate -o @/x.ini --pace -1", "--pace"},
    {"distmind-real", "calibrate -o @/x.ini --device host --ssd-folder @/none", "--ssd-folder"},
    {"distmind-real", "calibrate -o @/x.ini --device abacus", "abacus"},
    {"distmind-real", "calibrate -o @/x.ini --only network,abacus", "found \"abacus\""},
    {"distmind-real", "calibrate -o @/x.ini --only=", "found \"\""},
    {"distmind-real", "calibrate -o @/x.ini --only network --profiles @/p", "measures none"},
    {"distmind-real", "calibrate -o @/x.ini --only ssd", "expected --ssd-folder"},
    {"distmind-real", "calibrate -o @/x.ini --only network --ssd-folder @", "does not measure it"},
    {"distmind-real", "calibrate -o @/x.ini --device host --base @/none.ini", "none.ini"},
    {"distmind-real", "calibrate -o @/none/x.ini --device host",
     "x.ini: cannot write: No such file or directory"},
    {"distmind-real", "calibrate -o @/x.ini --device host --profiles @/good.db/p", "cannot be made"},
    {"distmind-real", "calibrate -o @/good.db --device host --profiles @/new", "exists already"},
    {"distmind-real",
     "calibrate -o @/x.ini --device host --base @/hardware/base.ini --profiles @/profiles/tiny_gpu",
     "expected another folder"},
};

Test(validate, bad_usage_is_refused)
{
  g_autoptr(Site) site = site_new();
  run_as_real(site, "good.db", "");
  site_write(site, "text.db", "no database");
  site_write(site, "bad.ini", "[hardware]\ncontrol_us = -1\n");
  for (guint i = 0; i < G_N_ELEMENTS(bad_usage); i++)
    site_refused(site, bad_usage[i].program, bad_usage[i].words, bad_usage[i].says);
  g_autofree char *unmade = g_build_filename(site, "new", NULL);
  cr_assert_not(g_file_test(unmade, G_FILE_TEST_EXISTS), "a folder is left, with nothing in it");
}
