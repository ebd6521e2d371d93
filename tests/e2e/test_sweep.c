/* `sweep`: the same database however many processes make it and however often it is killed. */
#include "program.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>

#include "sweeps.h"

#define VARY  "--vary", "workload.rate_rps=40..80/10", "--vary", "cluster.gpu_servers=1,2"
#define TASKS 20

static ProgramOutcome *sweep(const char *folder, const char *out, const char *jobs)
{
  return program_run(folder, "sweep", "x.ini", VARY, "--out", out, "--jobs", jobs, "--json", NULL);
}

static char *without_wall_s(const char *json)
{
  g_autoptr(GRegex) wall = g_regex_new("\"wall_s\": *[-+.eE0-9]+", 0, 0, NULL);
  return g_regex_replace_literal(wall, json, -1, 0, "", 0, NULL);
}

Test(sweep, is_the_same_with_any_number_of_processes)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autoptr(ProgramOutcome) one = sweep(folder, "1.db", "1"), two = sweep(folder, "2.db", "2"),
                            many = sweep(folder, "9.db", "9");
  cr_assert(one->status == 0 && two->status == 0 && many->status == 0, "%s%s%s", one->err, two->err,
            many->err);
  g_autofree char *a = sweeps_dump(folder, "1.db"), *b = sweeps_dump(folder, "2.db"),
                  *c = sweeps_dump(folder, "9.db");
  cr_assert_str_eq(a, b);
  cr_assert_str_eq(a, c);
  g_autofree char *json_a = without_wall_s(one->out), *json_b = without_wall_s(many->out);
  cr_assert_str_eq(json_a, json_b);
  g_autofree char *left = folder_list(folder);
  cr_assert_str_eq(left, "1.db 2.db 9.db x.ini");
}

/* Each point is what `run` makes of it, and table setting says which it is. */
Test(sweep, points_are_runs)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autoptr(ProgramOutcome) swept =
      program_run(folder, "sweep", "x.ini", VARY, "--repeat", "2", "--seed", "5", "--set",
                  "output.requests=all", "--out", "x.db", "--quiet", NULL);
  cr_assert_eq(swept->status, 0, "%s", swept->err);
  g_autoptr(ProgramOutcome) run =
      program_run(folder, "run", "x.ini", "--set", "workload.rate_rps=70", "--set", "cluster.gpu_servers=2",
                  "--seed", "6", "--system", "distmind", "--out", "run.db", "--quiet", NULL);
  cr_assert_eq(run->status, 0, "%s", run->err);
  g_autofree char *ids = sweeps_query(
      folder, "x.db",
      "SELECT group_concat(run.id) FROM run JOIN setting a ON a.run = run.id AND a.key = 'workload.rate_rps' "
      "AND "
      "a.value = 70 JOIN setting b ON b.run = run.id AND b.key = 'cluster.gpu_servers' AND b.value = 2 "
      "WHERE system = 'distmind' AND seed = 6",
      NULL);
  cr_assert(g_ascii_isdigit(*ids) && !strchr(ids, ','), "\"%s\"", ids);
  const char *figures =
      "SELECT requests || ' ' || throughput_rps || ' ' || latency_ms_p99 || ' ' || net_bytes || ' ' || "
      "events || ' ' || (SELECT sum(end_ns) FROM request WHERE request.run = r.id) FROM run r WHERE id = ?1";
  g_autofree char *of_sweep = sweeps_query(folder, "x.db", figures, ids);
  g_autofree char *of_run = sweeps_query(folder, "run.db", figures, "1");
  cr_assert_str_eq(of_sweep, of_run);
}

/* Names and inodes of finished tasks: one that is done again is another file. */
static GHashTable *finished_tasks(const char *folder)
{
  GHashTable *tasks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
  g_autofree char *path = g_build_filename(folder, "x.db.tasks", NULL);
  g_autoptr(GDir) entries = g_dir_open(path, 0, NULL);
  for (const char *name = entries ? g_dir_read_name(entries) : NULL; name; name = g_dir_read_name(entries)) {
    g_autofree char *file = g_build_filename(path, name, NULL);
    GStatBuf info;
    if (g_str_has_suffix(name, ".db") && g_stat(file, &info) == 0)
      g_hash_table_insert(tasks, g_strdup(name),
                          g_strdup_printf("%lu %ld", (gulong)info.st_ino, (glong)info.st_mtim.tv_nsec));
  }
  return tasks;
}

static void expect_kept(GHashTable *before, GHashTable *after)
{
  GHashTableIter iter;
  gpointer name, inode;
  g_hash_table_iter_init(&iter, before);
  while (g_hash_table_iter_next(&iter, &name, &inode))
    cr_assert_str_eq(g_hash_table_lookup(after, name) ? (char *)g_hash_table_lookup(after, name) : "gone",
                     inode, "%s was done again", (char *)name);
}

/* Starts the sweep and ends it by a signal after a while; TRUE: it was done before. */
static gboolean cut_short(const char *folder, int signal_number, gint64 after_us)
{
  const char *arguments[] = {"sweep", "x.ini", VARY, "--out", "x.db", "--jobs", "2", "--quiet", NULL};
  struct program *program = program_start(folder, arguments);
  g_usleep((gulong)after_us);
  program_signal(program, signal_number);
  g_autoptr(ProgramOutcome) outcome = program_finish(program);
  cr_assert(outcome->status == 0 || outcome->status == 128 + signal_number, "%d: %s", outcome->status,
            outcome->err);
  return outcome->status == 0;
}

Test(sweep, killed_again_and_again_it_loses_and_doubles_nothing)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  gint64 began = g_get_monotonic_time();
  g_autoptr(ProgramOutcome) whole = sweep(folder, "whole.db", "2");
  gint64 length = g_get_monotonic_time() - began;
  cr_assert_eq(whole->status, 0, "%s", whole->err);
  GRand *random = sweeps_random("sweep killed again and again");
  g_autofree char *whole_path = g_build_filename(folder, "x.db", NULL);
  g_autoptr(GHashTable) before = finished_tasks(folder);
  gboolean done = FALSE;
  for (guint kills = 0; kills < 12 && !done; kills++) {
    done = cut_short(folder, SIGKILL, (gint64)(g_rand_double(random) * (double)length / 2));
    g_autoptr(GHashTable) after = finished_tasks(folder);
    /* From where all is in the database, the tasks' files go. */
    if (!done && !g_file_test(whole_path, G_FILE_TEST_EXISTS))
      expect_kept(before, after);
    g_hash_table_unref(before);
    before = g_steal_pointer(&after);
  }
  g_rand_free(random);
  g_autoptr(ProgramOutcome) last = sweep(folder, "x.db", "2");
  cr_assert_eq(last->status, 0, "%s", last->err);
  g_autofree char *expected = sweeps_dump(folder, "whole.db"), *resumed = sweeps_dump(folder, "x.db");
  cr_assert_str_eq(expected, resumed);
  g_autofree char *json = without_wall_s(whole->out), *resumed_json = without_wall_s(last->out);
  cr_assert_str_eq(json, resumed_json);
  g_autofree char *left = folder_list(folder);
  cr_assert_str_eq(left, "whole.db x.db x.ini", "left behind: %s", left);
}

Test(sweep, interrupt_keeps_what_is_done)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  const char *arguments[] = {"sweep",    "x.ini", "--vary",  "workload.duration_s=10,20,1000000",
                             "--system", "ideal", "--out",   "x.db",
                             "--jobs",   "1",     "--quiet", NULL};
  struct program *program = program_start(folder, arguments);
  cr_assert(folder_await(folder, ".tasks"));
  g_autofree char *tasks = g_build_filename(folder, "x.db.tasks", NULL);
  cr_assert(folder_await(tasks, "task-000001.db"));
  g_autoptr(ProgramOutcome) early = program_run(folder, "report", "x.db", NULL);
  expect_refused(early, "x.db: no such file yet: its sweep is on", NULL);
  program_signal(program, SIGINT);
  g_autoptr(ProgramOutcome) outcome = program_finish(program);
  cr_assert_eq(outcome->status, 130, "%d: %s", outcome->status, outcome->err);
  cr_assert(strstr(outcome->err, "2 of 3 runs are kept"), "%s", outcome->err);
  g_autofree char *left = folder_list(folder);
  cr_assert_str_eq(left, "x.db x.ini", "left behind: %s", left);
  g_autofree char *started =
      sweeps_query(folder, "x.db", "SELECT group_concat(started || ' ' || wall_s) FROM run", NULL);
  /* Once more: the two are there still, and not done again. */
  struct program *again = program_start(folder, arguments);
  cr_assert(folder_await(folder, ".tasks") && folder_await(tasks, "task-000002.db.partial"));
  program_signal(again, SIGTERM);
  g_autoptr(ProgramOutcome) second = program_finish(again);
  cr_assert_eq(second->status, 130, "%d: %s", second->status, second->err);
  g_autofree char *kept =
      sweeps_query(folder, "x.db", "SELECT group_concat(started || ' ' || wall_s) FROM run", NULL);
  cr_assert_str_eq(started, kept);
  g_autoptr(ProgramOutcome) report = program_run(folder, "report", "x.db", NULL);
  cr_assert(report->status == 0 && strstr(report->out, "2 of 3 runs"), "%s%s", report->out, report->err);
}

Test(sweep, a_run_that_fails_stops_no_other)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  for (guint round = 0; round < 2; round++) { /* the second time only what failed is tried */
    g_autoptr(ProgramOutcome) outcome = program_run(
        folder, "sweep", "x.ini", "--vary", "cluster.host_memory_gb=0.1,50", "--out", "x.db", "--json", NULL);
    cr_assert_eq(outcome->status, 1, "%d: %s", outcome->status, outcome->err);
    cr_assert(strstr(outcome->err, "failed at cluster.host_memory_gb=0.1, distmind: ") &&
                  strstr(outcome->err, "1 of 4 runs failed"),
              "%s", outcome->err);
    g_autofree char *failed = sweeps_query(
        folder, NULL, "SELECT ?1 ->> '$.failed[0].system' || (?1 ->> '$.failed[0].settings')", outcome->out);
    cr_assert_str_eq(failed, "distmind{\"cluster.host_memory_gb\":0.1}");
    g_autofree char *runs = sweeps_query(folder, "x.db", "SELECT count(*) FROM run", NULL);
    cr_assert_str_eq(runs, "3");
  }
}

/* A file that a crash of the machine spoiled, and one that is of another sweep, are no results. */
Test(sweep, does_spoiled_files_again)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autoptr(ProgramOutcome) whole = sweep(folder, "whole.db", "2");
  while (cut_short(folder, SIGKILL, whole->status == 0 ? 60000 : 0) == FALSE) {
    g_autoptr(GHashTable) tasks = finished_tasks(folder);
    if (g_hash_table_size(tasks) < 2)
      continue;
    g_autofree char *list = g_build_filename(folder, "x.db.tasks", NULL);
    g_autofree char *names = folder_list(list);
    g_auto(GStrv) each = g_strsplit(names, " ", -1);
    guint spoiled = 0;
    g_autofree char *other = g_build_filename(folder, "whole.db", NULL), *bytes = NULL;
    gsize length;
    cr_assert(g_file_get_contents(other, &bytes, &length, NULL));
    for (char **name = each; *name && spoiled < 2; name++)
      if (g_str_has_suffix(*name, ".db")) {
        g_autofree char *path = g_build_filename(list, *name, NULL);
        cr_assert(g_file_set_contents(path, bytes, (gssize)(spoiled++ ? length : 5000), NULL));
      }
    break;
  }
  g_autoptr(ProgramOutcome) last = sweep(folder, "x.db", "2");
  cr_assert_eq(last->status, 0, "%s", last->err);
  g_autofree char *expected = sweeps_dump(folder, "whole.db"), *resumed = sweeps_dump(folder, "x.db");
  cr_assert_str_eq(expected, resumed);
}

static const struct {
  const char *vary, *option, *value, *message;
} refused[] = {
    {"cluster.gpu_server=1,2", "--jobs", "1", "nearest is \"gpu_servers\""},
    {"cluster.gpu_servers=1,x", "--jobs", "1", "found \"x\""},
    {"cluster.gpu_servers=", "--jobs", "1", "empty value"},
    {"cluster.gpu_servers=1,1", "--jobs", "1", "there twice"},
    {"cluster.gpu_servers", "--jobs", "1", "found no \"=\""},
    {"experiment.systems=ideal", "--jobs", "1", "expected --system"},
    {"output.timeline=a.json", "--jobs", "1", "no timelines"},
    {"cluster.gpu_servers=1", "--vary", "gpu_servers=2", "varied twice"},
    {"cluster.gpu_servers=1", "--set", "gpu_servers=2", "set by --set"},
    {"cluster.gpu_servers=1", "--set", "gpu_servers", "no \"=\""},
    {"experiment.seed=1,2", "--repeat", "3", "experiment.seed is varied twice"},
    {"experiment.seed=1,2", "--seed", "3", "set by --set, --trace or --seed"},
    {"cluster.gpu_servers=1", "--repeat", "100000", "from 1 to 10000"},
    {"cluster.gpu_servers=1", "--repeat", "-1", "from 1 to 10000"},
    {"cluster.gpu_servers=1", "--jobs", "-1", "from 1 to 1024"},
    {"cluster.gpu_servers=1", "--seed", "-1", "found \"-1\""},
    {"cluster.gpu_servers=1", "--jobs", "0", "from 1 to 1024"},
    {"cluster.gpu_servers=1", "--repeat", "0", "from 1 to 10000"},
    {"cluster.gpu_servers=1", "--jobs", "5000", "from 1 to 1024"},
    {"cluster.gpu_servers=1", "--jobs", "two", "two"},
    {"cluster.gpu_servers=1", "--system", "distmin", "distmind"},
    {"experiment.seed=1..60000", "--vary", "workload.rate_rps=1,2", "at most 100000 points"},
    {"cluster.gpu_servers=1", "--share", "1/1", "K below N"},
    {"cluster.gpu_servers=1", "--share", "0/2", "folder of a sweep"},
    {"cluster.gpu_servers=1", "--slurm-options", "-p x", "are for --slurm"},
    {"cluster.gpu_servers=1", "--out", "no/such/folder.db", "No such file or directory"},
    {"cluster.gpu_servers=1", "--out", "x.ini", "x.ini"},
};

Test(sweep, refuses_bad_options_and_leaves_nothing)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  for (gsize i = 0; i < G_N_ELEMENTS(refused); i++) {
    gboolean has_out = g_str_equal(refused[i].option, "--out");
    g_autoptr(ProgramOutcome) outcome =
        program_run(folder, "sweep", "x.ini", "--vary", refused[i].vary, refused[i].option, refused[i].value,
                    has_out ? NULL : "--out", "x.db", NULL);
    expect_refused(outcome, refused[i].message, NULL);
    g_autofree char *left = folder_list(folder);
    cr_assert_str_eq(left, "x.ini", "%s %s left behind: %s", refused[i].option, refused[i].value, left);
  }
  g_autoptr(ProgramOutcome) quote =
      program_run(folder, "sweep", "x.ini", "--vary", "gpu_servers=1", "--slurm", "--slurm-options",
                  "--comment='", "--out", "x.db", NULL);
  expect_refused(quote, "--slurm-options", "quote", NULL);
  /* Whether Slurm is there or not: it takes no such job. */
  g_autoptr(ProgramOutcome) job =
      program_run(folder, "sweep", "x.ini", "--vary", "cluster.gpu_servers=1", "--slurm", "--slurm-options",
                  "--no-such-option-of-sbatch", "--out", "x.db", NULL);
  g_autofree char *after = folder_list(folder);
  cr_assert(job->status == 1 && strstr(job->err, "sbatch"), "%s", job->err);
  cr_assert_str_eq(after, "x.ini", "left behind by a job that could not be submitted: %s", after);
  g_autoptr(ProgramOutcome) nothing = program_run(folder, "sweep", "x.ini", NULL);
  expect_refused(nothing, "--vary", NULL);
}

#define SMALL "sweep", "x.ini", "--system", "ideal", "--out", "x.db", "--quiet"

Test(sweep, another_sweep_is_told_from_this_one)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autoptr(ProgramOutcome) first = program_run(folder, SMALL, "--vary", "workload.rate_rps=1,2", NULL);
  cr_assert_eq(first->status, 0, "%s", first->err);
  g_autofree char *before = sweeps_dump(folder, "x.db");
  g_autoptr(ProgramOutcome) vary = program_run(folder, SMALL, "--vary", "workload.rate_rps=1,3", NULL);
  expect_refused(vary, "x.db", "workload.rate_rps=1,2", "workload.rate_rps=1,3", "--force", NULL);
  g_autoptr(ProgramOutcome) set =
      program_run(folder, SMALL, "--vary", "workload.rate_rps=1,2", "--set", "workload.duration_s=9", NULL);
  expect_refused(set, "x.db", "settings was", "--force", NULL);
  g_autofree char *path = g_build_filename(folder, "x.ini", NULL), *text = NULL;
  cr_assert(g_file_get_contents(path, &text, NULL, NULL));
  g_autofree char *changed = g_strconcat(text, "# a word\n", NULL);
  folder_write(folder, "x.ini", changed);
  g_autoptr(ProgramOutcome) file = program_run(folder, SMALL, "--vary", "workload.rate_rps=1,2", NULL);
  expect_refused(file, "x.db", "experiment file", "--force", NULL);
  g_autofree char *after = sweeps_dump(folder, "x.db");
  cr_assert_str_eq(before, after);
  g_autoptr(ProgramOutcome) forced =
      program_run(folder, SMALL, "--vary", "workload.rate_rps=3", "--force", NULL);
  cr_assert_eq(forced->status, 0, "%s", forced->err);
  g_autofree char *runs = sweeps_query(folder, "x.db", "SELECT count(*) || ' ' || overrides FROM run", NULL);
  cr_assert(g_str_has_prefix(runs, "1 ") && g_str_has_suffix(runs, "workload.rate_rps=3"), "%s", runs);
  g_autoptr(ProgramOutcome) run = program_run(folder, "run", "x.ini", "--quiet", "--out", "r.db", NULL);
  cr_assert_eq(run->status, 0, "%s", run->err);
  g_autoptr(ProgramOutcome) over = program_run(folder, "sweep", "x.ini", "--vary", "workload.rate_rps=1",
                                               "--out", "r.db", "--quiet", NULL);
  expect_refused(over, "r.db", "no sweep's", "--force", NULL);
}

/* --force says so once: killed before its end, the new sweep goes on without it, over the old database. */
Test(sweep, a_forced_sweep_is_resumed_without_force)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autoptr(ProgramOutcome) first = program_run(folder, SMALL, "--vary", "workload.rate_rps=1,2", NULL);
  cr_assert_eq(first->status, 0, "%s", first->err);
  const char *arguments[] = {SMALL, "--vary", "workload.duration_s=10,1000000", "--force", "--jobs",
                             "1",   NULL};
  struct program *program = program_start(folder, arguments);
  g_autofree char *tasks = g_build_filename(folder, "x.db.tasks", NULL);
  cr_assert(folder_await(folder, ".tasks") && folder_await(tasks, "task-000001.db.partial"));
  program_signal(program, SIGKILL);
  g_autoptr(ProgramOutcome) killed = program_finish(program);
  cr_assert_eq(killed->status, 128 + SIGKILL, "%s", killed->err);
  g_autofree char *old = sweeps_query(folder, "x.db", "SELECT choices FROM axis", NULL);
  cr_assert_str_eq(old, "1,2", "what was there is gone before there is anything new");
  arguments[9] = NULL; /* without --force and --jobs */
  g_autofree char *wal = g_build_filename(tasks, "task-000001.db.partial-wal", NULL);
  g_unlink(wal); /* of the one that was killed: it would be taken for the next one's */
  struct program *again = program_start(folder, arguments);
  cr_assert(folder_await(tasks, "task-000001.db.partial-wal"));
  program_signal(again, SIGINT);
  g_autoptr(ProgramOutcome) outcome = program_finish(again);
  cr_assert_eq(outcome->status, 130, "%s", outcome->err);
  g_autofree char *now =
      sweeps_query(folder, "x.db", "SELECT choices || (SELECT count(*) FROM run) FROM axis", NULL);
  cr_assert_str_eq(now, "10,10000001");
}

/* --merge takes what a detached job left, and leaves nothing where there was none. */
Test(sweep, merge_of_nothing_leaves_nothing)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autoptr(ProgramOutcome) given =
      program_run(folder, SMALL, "--vary", "workload.rate_rps=1", "--merge", NULL);
  expect_refused(given, "x.db.tasks", "nothing to merge", NULL);
  g_autoptr(ProgramOutcome) own =
      program_run(folder, "sweep", "x.ini", "--vary", "workload.rate_rps=1", "--merge", NULL);
  expect_refused(own, "results/", "nothing to merge", NULL);
  g_autofree char *left = folder_list(folder), *tasks = g_build_filename(folder, "x.db.tasks", NULL);
  cr_assert_str_eq(left, "x.ini", "left behind: %s", left);

  cr_assert_eq(g_mkdir(tasks, 0777), 0);
  g_autoptr(ProgramOutcome) other =
      program_run(folder, SMALL, "--vary", "workload.rate_rps=1", "--merge", NULL);
  expect_refused(other, "x.db.tasks", "expected the folder of a sweep", NULL);
  cr_assert_eq(g_rmdir(tasks), 0, "a folder that is no sweep's was written to");

  g_autoptr(ProgramOutcome) swept = program_run(folder, SMALL, "--vary", "workload.rate_rps=1", NULL);
  g_autoptr(ProgramOutcome) merged =
      program_run(folder, SMALL, "--vary", "workload.rate_rps=1", "--merge", NULL);
  cr_assert(swept->status == 0 && merged->status == 0, "%s%s", swept->err, merged->err);
  cr_assert_str_eq(swept->out, merged->out, "merged already: shown again");
  g_autofree char *after = folder_list(folder);
  cr_assert_str_eq(after, "x.db x.ini", "left behind: %s", after);
}

Test(sweep, figures_of_a_sweep)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autoptr(ProgramOutcome) swept =
      program_run(folder, "sweep", "x.ini", VARY, "--repeat", "2", "--out", "x.db", "--quiet", NULL);
  cr_assert_eq(swept->status, 0, "%s", swept->err);
  g_autoptr(ProgramOutcome) plot = program_run(folder, "plot", "x.db", "sweep", "--x", "gpu_servers", "--y",
                                               "latency_ms.p99", "-o", "x.svg", NULL);
  cr_assert_eq(plot->status, 0, "%s", plot->err);
  g_autofree char *path = g_build_filename(folder, "x.svg", NULL), *svg = NULL;
  cr_assert(g_file_get_contents(path, &svg, NULL, NULL));
  cr_assert(strstr(svg, "cluster.gpu_servers") && strstr(svg, "distmind, rate_rps 40") &&
            strstr(svg, "latency_ms.p99"));
  g_autoptr(ProgramOutcome) wrong =
      program_run(folder, "plot", "x.db", "sweep", "--x", "zipf", "-o", "y.svg", NULL);
  expect_refused(wrong, "\"zipf\" was not varied", NULL);
  g_autoptr(ProgramOutcome) other =
      program_run(folder, "plot", "x.db", "found", "--y", "events", "-o", "y.svg", NULL);
  expect_refused(other, "for the kind sweep", NULL);
  g_autoptr(ProgramOutcome) bars = program_run(folder, "plot", "x.db", "found", "-o", "y.svg", NULL);
  expect_refused(bars, "several runs of", "kind sweep", NULL);
  g_autoptr(ProgramOutcome) story = program_run(folder, "explain", "x.db", "1", NULL);
  expect_refused(story, "several runs of", NULL);
}
