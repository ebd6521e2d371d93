/* --print-config is the same experiment again, and the experiments that ship load. */
#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

#include "experiment_text.h"

/* Writes text as FOLDER/NAME and returns its path. */
static char *write_file(const char *folder, const char *name, const char *text)
{
  char *path = g_build_filename(folder, name, NULL);
  cr_assert(g_file_set_contents(path, text, -1, NULL));
  return path;
}

/* What --print-config prints must load, from any folder, to what it was printed from; and print the same
 * again. */
static void round_trip(const char *path, const char *system, const char *const *sets)
{
  g_autofree char *folder = g_dir_make_tmp("printed-XXXXXX", NULL);
  g_autoptr(GError) error = NULL;
  g_autofree char *printed = experiment_print_config(path, system, (char **)sets, &error);
  cr_assert_not_null(printed, "%s: %s", path, error ? error->message : "");
  g_autofree char *copy = write_file(folder, "elsewhere.ini", printed);
  g_autoptr(Experiment) first = experiment_load(path, system, (char **)sets, NULL);
  g_autoptr(Experiment) second = experiment_load(copy, system, NULL, &error);
  cr_assert_not_null(second, "%s printed: %s", path, error ? error->message : "");
  g_autofree char *a = experiment_describe(first);
  g_autofree char *b = experiment_describe(second);
  cr_expect_str_eq(a, b, "%s", path);
  g_unlink(copy);
  g_rmdir(folder);
}

Test(experiment, printed_config_is_the_same_experiment)
{
  g_autofree char *folder = g_dir_make_tmp("experiment-XXXXXX", NULL);
  g_autofree char *kinds = g_build_filename(folder, "hardware", NULL);
  g_mkdir(kinds, 0700);
  g_autofree char *own = write_file(kinds, "own.ini", "[hardware]\ngpu = l4\nnic_gbit_s = 3\n");
  g_autofree char *trace = write_file(folder, "t.csv", "arrival_s\n0\n");
  g_autofree char *path =
      write_file(folder, "e.ini",
                 "[cluster]\nhardware = own\ngpu_servers = 2;1*hardware/own.ini;2*h200\nnic_gbit_s = 4\n"
                 "memory_hardware = own\n[models]\ngpt2 = 3\nbert_base = 2\n[workload]\nkind = trace\n"
                 "trace = t.csv\nduration_s = 0\nzipf = 0.3333333333333333\n[events]\n"
                 "b = at 0.1 add gpu_server 1 of own\na = at 0.1 set cluster.host_cache_gb 2\n"
                 "[slo]\nabsolute_ms = 30\n[system mps]\nzipf = 2\ncluster.mps_queue_max = 7\n");
  static const char *const sets[] = {"workload.cv=0.7", "cluster.launch_us=1.25", NULL};
  g_autoptr(Experiment) e = experiment_load(path, "", NULL, NULL);
  cr_assert_not_null(e);
  cr_expect_eq(e->hardware_count, 2, "one file by two names is one kind");
  cr_expect_eq(e->hardware[0].nic_bytes_s, 5e8);
  round_trip(path, "", NULL);
  round_trip(path, "mps", sets);
  static const char *const typed[] = {"workload.trace=t.csv", "cluster.hardware=hardware/own.ini", NULL};
  round_trip(path, "", typed);
  const char *const made[] = {own, trace, path};
  for (gsize i = 0; i < G_N_ELEMENTS(made); i++)
    g_unlink(made[i]);
  g_rmdir(kinds);
  g_rmdir(folder);
}

Test(experiment, printed_config_tells_sources_and_defaults)
{
  static const char *const sets[] = {"workload.zipf=0.5", "cluster.nic_gbit_s=7", NULL};
  g_autofree char *folder = g_dir_make_tmp("sources-XXXXXX", NULL);
  g_autofree char *path = write_file(folder, "e.ini", experiment_base);
  g_autofree char *text = experiment_print_config(path, "mps", (char **)sets, NULL);
  g_autofree char *rate = g_strdup_printf("rate_rps = 10   # %s:5, 1/s; ", path);
  const char *const lines[] = {rate,
                               "zipf = 0.5   # --set; ",
                               "nic_gbit_s = 7   # --set\n",
                               "seed = 1   # default; ",
                               "#   nic_gbit_s = 100   # overridden above; ",
                               "name = e   # the file's name; ",
                               "#   spine_oversubscription = 1   # "};
  for (gsize i = 0; i < G_N_ELEMENTS(lines); i++)
    cr_expect(strstr(text, lines[i]), "no line \"%s\" in:\n%s", lines[i], text);
  for (const struct setting *row = experiment_settings; row->key; row++) {
    g_autofree char *line = g_strdup_printf("\n%s = ", row->key);
    cr_expect(strstr(text, line) && strstr(text, row->help), "no line for %s.%s", row->section, row->key);
  }
  g_unlink(path);
  g_rmdir(folder);
}

/* Shipped experiments, those of folders below too; their traces may be absent, then kind and file are taken
 * away. */
static void check_shipped(const char *folder, int *found)
{
  g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
  const char *name;
  while (dir && (name = g_dir_read_name(dir))) {
    if (!g_str_has_suffix(name, ".ini"))
      continue;
    g_autofree char *path = g_build_filename(folder, name, NULL);
    static const char *const stand_in[] = {"workload.trace=" DM_SOURCE_DIR "/Makefile", NULL};
    static const char *const jobs[] = {"training.trace=" DM_SOURCE_DIR "/Makefile", NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(Experiment) e = experiment_load(path, "", NULL, &error);
    const char *const *sets = e ? NULL : strstr(error->message, "training.trace") ? jobs : stand_in;
    round_trip(path, "", sets);
    round_trip(path, "distmind", sets);
    g_autofree char *text = NULL;
    g_autofree char *command = g_strdup("# build/distmind-sim run experiments/");
    cr_assert(g_file_get_contents(path, &text, NULL, NULL));
    cr_expect(g_str_has_prefix(text, command), "%s does not begin with its command", name);
    ++*found;
  }
}

Test(experiment, shipped_files_load)
{
  int found = 0;
  check_shipped(DM_SOURCE_DIR "/experiments", &found);
  check_shipped(DM_SOURCE_DIR "/experiments/scenarios", &found);
  cr_expect_geq(found, 11);
}
