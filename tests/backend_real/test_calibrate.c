/* `calibrate` and `validate`: the files that are written, a tiny run end to end, and what is refused. */
#include "backend_real/calibrate.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>

#include "core/hardware.h"
#include "harness/experiment.h"
#include "harness/hardware_file.h"
#include "harness/profile_file.h"
#include "spawned.h"
#include "../harness/temporary.h"

static const char profile_text[] =
    "# model: tiny\n# batch: 2\n# warm_latency_ms: 1\n# note: stays\n# swap_extra_ms: 3\n"
    "layer,kind,param_bytes,compute_us\n"
    "a,conv,262144,300\nb,conv,0,100\nc,conv,524288,400\nd,fc,1048576,200\n";

static const char hardware_text[] =
    "[hardware]\ngpu = tiny_gpu   # a comment\ngpu_memory_gb = 1\nhost_memory_gb = 2\n"
    "gpus_per_server = 1\nnic_gbit_s = 7\ncontrol_us = 3\n";

static const char experiment_text[] =
    "[experiment]\nname = tiny\nsystems = distmind;pipeswitch\n[cluster]\nhardware = hardware/base.ini\n"
    "memory_hardware = hardware/base.ini\ngpu_servers = 1\nmemory_servers = 1\ngpu_model_gb = 0.004\n"
    "host_cache_gb = 0.006\nheartbeat_ms = 500\n[models]\ntiny = 8\n[workload]\nkind = poisson\nrate_rps = "
    "60\n"
    "duration_s = 1\n";

/* --- a folder with all that
 * ---------------------------------------------------------------------------------------*/

static void write_file(const char *folder, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename(folder, name, NULL), *parent = g_path_get_dirname(path);
  cr_assert_eq(g_mkdir_with_parents(parent, 0700), 0);
  cr_assert(g_file_set_contents(path, text, -1, NULL));
}

typedef char Site;

static void site_free(Site *site)
{
  tree_remove(site);
  g_free(site);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Site, site_free)

static Site *site_new(void)
{
  char *folder = g_dir_make_tmp("distmind-calibrate-XXXXXX", NULL);
  cr_assert_not_null(folder);
  write_file(folder, "profiles/tiny_gpu/tiny.csv", profile_text);
  write_file(folder, "hardware/base.ini", hardware_text);
  write_file(folder, "tiny.ini", experiment_text);
  return folder;
}

/* Runs a program with the words after "@" has become the folder. */
static Spawned *run(const Site *site, const char *program, const char *words)
{
  g_auto(GStrv) parts = g_strsplit(words, "@", -1);
  g_autofree char *line = g_strjoinv(site, parts);
  return spawn(program, line);
}

static void run_good(const Site *site, const char *program, const char *words)
{
  g_autoptr(Spawned) spawned = run(site, program, words);
  cr_assert_eq(spawned->status, 0, "%s %s: %s", program, words, spawned->err);
}

static void refused(const Site *site, const char *program, const char *words, const char *says)
{
  g_autoptr(Spawned) spawned = run(site, program, words);
  expect_refusal(spawned, says);
}

/* --- files
 * ----------------------------------------------------------------------------------------------------*/

static struct calibration calibration_of(const char *folder)
{
  struct calibration c = {.device = device_by_name("host", NULL),
                          .transport = transport_by_name("tcp", NULL),
                          .compute_scale = 0.5,
                          .machine = g_strdup("a machine"),
                          .busy = g_strdup("idle"),
                          .profiles = g_array_new(FALSE, TRUE, sizeof(struct calibrated_profile))};
  g_autofree char *profiles = g_build_filename(folder, "profiles/tiny_gpu", NULL);
  struct calibrated_profile of = {.profile = profile_load(profiles, "tiny", NULL)};
  cr_assert_not_null(of.profile);
  profile_scale(of.profile, 0, of.profile->timing[0].warm_ns * c.compute_scale);
  of.warm_ns = 560e3;
  of.verify_ns = 350e3;
  g_array_append_val(c.profiles, of);
  return c;
}

Test(calibrate, a_hardware_file_has_the_bases_keys_and_the_measured_ones)
{
  g_autoptr(Site) site = site_new();
  struct calibration c = calibration_of(site);
  struct hardware hw;
  g_autofree char *base = g_build_filename(site, "hardware/base.ini", NULL);
  calibration_set(&c, KEY_NIC, 12.34567, "measured: so");
  calibration_set(&c, KEY_NET_STREAM, 0, "measured: nothing");
  g_autofree char *text = calibration_hardware_text(&c, base, NULL);
  cr_assert_not_null(text);
  cr_assert(hardware_parse("here.ini", text, strlen(text), &hw, NULL), "%s", text);
  cr_assert_str_eq(hw.gpu, "tiny_gpu");
  cr_assert_eq(hw.host_memory_bytes, 2 * BYTES_PER_GB);
  cr_assert_float_eq(hw.nic_bytes_s, 12.35e9 / 8, 1);
  cr_assert_eq(hw.control_ns, 3000, "not measured: the base's");
  cr_assert(strstr(text, "# measured: so\nnic_gbit_s = 12.35\n"));
  calibration_clear(&c);
}

Test(calibrate, a_profile_has_the_measured_latency_and_no_layer_faster_than_its_bytes_are_checked)
{
  g_autoptr(Site) site = site_new();
  struct calibration c = calibration_of(site);
  const struct calibrated_profile *of = &g_array_index(c.profiles, struct calibrated_profile, 0);
  g_autofree char *base = g_build_filename(site, "profiles/tiny_gpu/tiny.csv", NULL);
  g_autofree char *text = calibration_profile_text(&c, of, base, NULL);
  struct profile *p = profile_parse("tiny.csv", "tiny", text, strlen(text), NULL);
  cr_assert_not_null(p, "%s", text);
  cr_assert_float_eq(p->timing[0].warm_ns, 560e3 / 0.5, 1, "as it ran at compute_scale 0.5");
  cr_assert_eq(p->layers, 4);
  cr_assert_eq(p->param_bytes, of->profile->param_bytes);
  /* a, b and c as they were (150, 50, 200 us); d's bytes take 4/7 of 350 us to check, more than its 100. */
  cr_assert_float_eq(p->timing[0].layer_ns[3] / p->timing[0].layer_ns[2], 1.0, 1e-3);
  cr_assert_float_eq(p->timing[0].layer_ns[0] / p->timing[0].layer_ns[1], 3.0, 1e-3);
  cr_assert(strstr(text, "# note: stays\n"));
  cr_assert_gt(of->profile->timing[0].swap_extra_ns, 0);
  cr_assert_eq(p->timing[0].swap_extra_ns, 0, "real moves are no framework's");
  g_autofree char *again_path = g_build_filename(site, "again.csv", NULL);
  cr_assert(g_file_set_contents(again_path, text, -1, NULL));
  g_autofree char *again = calibration_profile_text(&c, of, again_path, NULL);
  cr_assert_eq(strstr(strstr(again, "# warm_latency_ms") + 1, "# warm_latency_ms"), NULL, "given twice: %s",
               again);
  profile_free(p);
  calibration_clear(&c);
}

/* --- end to end
 * -------------------------------------------------------------------------------------------------*/

static double number_after(const char *text, const char *key)
{
  const char *at = strstr(text, key);
  cr_assert_not_null(at, "%s is not in: %s", key, text);
  return g_ascii_strtod(at + strlen(key), NULL);
}

static void check_hardware(const Site *site, struct hardware *hw)
{
  g_autofree char *path = g_build_filename(site, "here.ini", NULL);
  g_autoptr(GError) error = NULL;
  cr_assert(hardware_read(path, hw, &error), "%s", error ? error->message : "");
  cr_assert(hw->nic_bytes_s > 1e7 && hw->nic_bytes_s < 0.4e9, "paced to 2 Gbit/s: %g bytes/s",
            hw->nic_bytes_s);
  cr_assert(hw->pcie_bytes_s > 1e7 && hw->pcie_bytes_s < 1e12, "%g", hw->pcie_bytes_s);
  cr_assert(hw->control_ns > 1e3 && hw->control_ns < 100e6, "%g", hw->control_ns);
  cr_assert(hw->net_stream_ns >= 0 && hw->net_group_ns >= 0 && hw->group_sync_ns >= 0);
}

/* The network alone was measured again. */
static struct hardware check_renewed(const Site *site, const struct hardware *first)
{
  g_autofree char *path = g_build_filename(site, "again.ini", NULL);
  struct hardware again;
  cr_assert(hardware_read(path, &again, NULL));
  cr_expect_eq(again.pcie_bytes_s, first->pcie_bytes_s);
  cr_expect_eq(again.control_ns, first->control_ns);
  cr_expect_eq(again.ssd_bytes_s, first->ssd_bytes_s);
  return again;
}

/* One tiny cluster, calibrated, run and laid beside its simulation: values that make sense, nothing lost; how
 * far they agree is the machine's, and not judged here. */
Test(calibrate, a_tiny_run_end_to_end)
{
  g_autoptr(Site) site = site_new();
  struct hardware hw;
  g_autofree char *ssd = g_build_filename(site, "ssd", NULL);
  cr_assert_eq(g_mkdir(ssd, 0700), 0);
  run_good(site, "distmind-real",
           "calibrate -o @/here.ini --profiles @/measured --base @/hardware/base.ini --device host --pace 2 "
           "--ssd-folder @/ssd --quiet");
  check_hardware(site, &hw);
  cr_assert(hw.ssd_bytes_s > 1e6 && hw.ssd_bytes_s < 1e12 && hw.ssd_bytes > 1e6, "%g", hw.ssd_bytes_s);
  cr_assert_eq(g_rmdir(ssd), 0, "the file that was measured stays");
  g_autofree char *folder = g_build_filename(site, "measured", NULL);
  struct profile *p = profile_load(folder, "tiny", NULL);
  cr_assert_not_null(p);
  cr_assert_geq(p->timing[0].warm_ns, 1e6, "an inference is never faster than its profile");
  profile_free(p);
  refused(site, "distmind-real", "calibrate -o @/here.ini --base @/hardware/base.ini",
          "here.ini: exists already");
  run_good(site, "distmind-real",
           "calibrate -o @/again.ini --base @/here.ini --only network --device host --pace 4 --quiet");
  struct hardware again = check_renewed(site, &hw);
  cr_expect_gt(again.nic_bytes_s, 1.5 * hw.nic_bytes_s, "paced to twice as much: %g", again.nic_bytes_s);
  run_good(site, "distmind-real",
           "run @/tiny.ini --local --device host --pace 2 --out @/real.db --quiet --set "
           "cluster.hardware=@/here.ini");
  g_autoptr(Spawned) v =
      run(site, "distmind-sim", "validate @/real.db --hardware @/here.ini --profiles @/measured --json");
  cr_assert_eq(v->status, 0, "%s", v->err);
  cr_assert(strstr(v->out, "\"load\": \"replayed\""));
  cr_assert_eq(number_after(v->out, "\"processes\": "), 4);
  const char *completed = strstr(v->out, "\"completed\": {");
  cr_assert_not_null(completed, "%s", v->out);
  cr_assert_gt(number_after(completed, "\"real\": "), 20);
  cr_assert_eq(number_after(completed, "\"real\": "), number_after(completed, "\"simulated\": "), "%s",
               v->out);
}

/* --- validate against itself
 * -------------------------------------------------------------------------------------*/

/* The simulator's own run, replayed, is itself: every error is 0, whatever the load. */
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
  run_good(site, "distmind-sim", words);
  change(site, name, "UPDATE run SET backend = 'real'");
}

static void same_as_itself(const Site *site, const char *sets, const char *load)
{
  g_autofree char *options = g_strconcat(" ", sets, NULL);
  run_as_real(site, "sim.db", options);
  g_autoptr(Spawned) v = run(site, "distmind-sim", "validate @/sim.db --json");
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
  write_file(site, "t.csv",
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
  write_file(site, "slow.ini", "[hardware]\ncontrol_us = 1003\nhost_memory_gb = 77\n");
  write_file(site, "slow/tiny.csv",
             "# warm_latency_ms: 3\nlayer,kind,param_bytes,compute_us\n"
             "a,conv,262144,300\nb,conv,0,100\nc,conv,524288,400\nd,fc,1048576,200\n");
  run_as_real(site, "sim.db", " --set workload.rate_rps=5");
  g_autoptr(Spawned) hop =
      run(site, "distmind-sim", "validate @/sim.db --system distmind --hardware @/slow.ini --json");
  const char *p50 = strstr(hop->out, "\"latency_ms_p50\": {");
  cr_assert_not_null(p50, "%s", hop->err);
  cr_assert_float_eq(number_after(p50, "\"simulated\": ") - number_after(p50, "\"real\": "), 4, 0.02,
                     "four messages of a millisecond more: %s", p50);
  g_autoptr(Spawned) slow =
      run(site, "distmind-sim", "validate @/sim.db --system pipeswitch --profiles @/slow --json");
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
  g_autoptr(Spawned) v = run(site, "distmind-sim", "validate @/1.db @/2.db @/3.db");
  cr_assert_eq(v->status, 0, "%s", v->err);
  cr_assert(strstr(v->out, "medians of 3 runs"), "%s", v->out);
  run_as_real(site, "4.db", " --set experiment.name=other");
  refused(site, "distmind-sim", "validate @/1.db @/4.db",
          "expected a run of the experiment tiny as before, found other");
}

/* --- what is refused
 * ---------------------------------------------------------------------------------------------*/

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
  refused(site, "distmind-sim", "validate @/bad.db", says);
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

Test(validate, bad_usage_is_refused)
{
  g_autoptr(Site) site = site_new();
  run_as_real(site, "good.db", "");
  write_file(site, "text.db", "no database");
  write_file(site, "bad.ini", "[hardware]\ncontrol_us = -1\n");
  refused(site, "distmind-sim", "validate", "expected REAL.db");
  refused(site, "distmind-sim", "validate @/none.db", "no such file");
  refused(site, "distmind-sim", "validate @/text.db", "text.db");
  refused(site, "distmind-sim", "validate @/good.db --system mps", "holds no run of system mps");
  refused(site, "distmind-sim", "validate @/good.db --hardware @/bad.ini", "bad.ini:2");
  refused(site, "distmind-sim", "validate @/good.db --hardware @/none.ini", "none.ini");
  refused(site, "distmind-sim", "validate @/good.db --profiles @/none", "none");
  refused(site, "distmind-sim", "validate @/good.db --plot @/x.bmp", ".png, .svg or .pdf");
  refused(site, "distmind-real", "calibrate", "expected -o HARDWARE.ini");
  refused(site, "distmind-real", "calibrate -o @/x.ini --pace -1", "--pace");
  refused(site, "distmind-real", "calibrate -o @/x.ini --device host --ssd-folder @/none", "--ssd-folder");
  refused(site, "distmind-real", "calibrate -o @/x.ini --device abacus", "abacus");
  refused(site, "distmind-real", "calibrate -o @/x.ini --only network,abacus", "found \"abacus\"");
  refused(site, "distmind-real", "calibrate -o @/x.ini --only=", "found \"\"");
  refused(site, "distmind-real", "calibrate -o @/x.ini --only network --profiles @/p", "measures none");
  refused(site, "distmind-real", "calibrate -o @/x.ini --only ssd", "expected --ssd-folder");
  refused(site, "distmind-real", "calibrate -o @/x.ini --only network --ssd-folder @", "does not measure it");
  refused(site, "distmind-real", "calibrate -o @/x.ini --device host --base @/none.ini", "none.ini");
  refused(site, "distmind-real", "calibrate -o @/none/x.ini --device host",
          "x.ini: cannot write: No such file or directory");
  refused(site, "distmind-real", "calibrate -o @/x.ini --device host --profiles @/good.db/p",
          "cannot be made");
  refused(site, "distmind-real", "calibrate -o @/good.db --device host --profiles @/new", "exists already");
  g_autofree char *unmade = g_build_filename(site, "new", NULL);
  cr_assert_not(g_file_test(unmade, G_FILE_TEST_EXISTS), "a folder is left, with nothing in it");
  refused(site, "distmind-real",
          "calibrate -o @/x.ini --device host --base @/hardware/base.ini --profiles @/profiles/tiny_gpu",
          "expected another folder");
}
