/* `sweep`: the same database however many processes make it, what is refused, and what becomes of it. Sweeps
 * that are cut short: test_sweep_resumed.c. */
#include "program.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>

#include "sweeps.h"

Test(sweep, is_the_same_with_any_number_of_processes)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autoptr(ProgramOutcome) one = sweeps_run(folder, "1.db", "1"), two = sweeps_run(folder, "2.db", "2"),
                            many = sweeps_run(folder, "9.db", "9");
  cr_assert(one->status == 0 && two->status == 0 && many->status == 0, "%s%s%s", one->err, two->err,
            many->err);
  g_autofree char *a = sweeps_dump(folder, "1.db"), *b = sweeps_dump(folder, "2.db"),
                  *c = sweeps_dump(folder, "9.db");
  cr_assert_str_eq(a, b);
  cr_assert_str_eq(a, c);
  g_autofree char *json_a = sweeps_without_wall_s(one->out), *json_b = sweeps_without_wall_s(many->out);
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
      program_run(folder, "sweep", "x.ini", SWEEPS_VARY, "--repeat", "2", "--seed", "5", "--set",
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

Test(sweep, another_sweep_is_told_from_this_one)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autoptr(ProgramOutcome) first =
      program_run(folder, SWEEPS_SMALL, "--vary", "workload.rate_rps=1,2", NULL);
  cr_assert_eq(first->status, 0, "%s", first->err);
  g_autofree char *before = sweeps_dump(folder, "x.db");
  g_autoptr(ProgramOutcome) vary = program_run(folder, SWEEPS_SMALL, "--vary", "workload.rate_rps=1,3", NULL);
  expect_refused(vary, "x.db", "workload.rate_rps=1,2", "workload.rate_rps=1,3", "--force", NULL);
  g_autoptr(ProgramOutcome) set = program_run(folder, SWEEPS_SMALL, "--vary", "workload.rate_rps=1,2",
                                              "--set", "workload.duration_s=9", NULL);
  expect_refused(set, "x.db", "settings was", "--force", NULL);
  g_autofree char *path = g_build_filename(folder, "x.ini", NULL), *text = NULL;
  cr_assert(g_file_get_contents(path, &text, NULL, NULL));
  g_autofree char *changed = g_strconcat(text, "# a word\n", NULL);
  folder_write(folder, "x.ini", changed);
  g_autoptr(ProgramOutcome) file = program_run(folder, SWEEPS_SMALL, "--vary", "workload.rate_rps=1,2", NULL);
  expect_refused(file, "x.db", "experiment file", "--force", NULL);
  g_autofree char *after = sweeps_dump(folder, "x.db");
  cr_assert_str_eq(before, after);
  g_autoptr(ProgramOutcome) forced =
      program_run(folder, SWEEPS_SMALL, "--vary", "workload.rate_rps=3", "--force", NULL);
  cr_assert_eq(forced->status, 0, "%s", forced->err);
  g_autofree char *runs = sweeps_query(folder, "x.db", "SELECT count(*) || ' ' || overrides FROM run", NULL);
  cr_assert(g_str_has_prefix(runs, "1 ") && g_str_has_suffix(runs, "workload.rate_rps=3"), "%s", runs);
  g_autoptr(ProgramOutcome) run = program_run(folder, "run", "x.ini", "--quiet", "--out", "r.db", NULL);
  cr_assert_eq(run->status, 0, "%s", run->err);
  g_autoptr(ProgramOutcome) over = program_run(folder, "sweep", "x.ini", "--vary", "workload.rate_rps=1",
                                               "--out", "r.db", "--quiet", NULL);
  expect_refused(over, "r.db", "no sweep's", "--force", NULL);
}

/* --merge takes what a detached job left, and leaves nothing where there was none. */
Test(sweep, merge_of_nothing_leaves_nothing)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autoptr(ProgramOutcome) given =
      program_run(folder, SWEEPS_SMALL, "--vary", "workload.rate_rps=1", "--merge", NULL);
  expect_refused(given, "x.db.tasks", "nothing to merge", NULL);
  g_autoptr(ProgramOutcome) own =
      program_run(folder, "sweep", "x.ini", "--vary", "workload.rate_rps=1", "--merge", NULL);
  expect_refused(own, "results/", "nothing to merge", NULL);
  g_autofree char *left = folder_list(folder), *tasks = g_build_filename(folder, "x.db.tasks", NULL);
  cr_assert_str_eq(left, "x.ini", "left behind: %s", left);

  cr_assert_eq(g_mkdir(tasks, 0777), 0);
  g_autoptr(ProgramOutcome) other =
      program_run(folder, SWEEPS_SMALL, "--vary", "workload.rate_rps=1", "--merge", NULL);
  expect_refused(other, "x.db.tasks", "expected the folder of a sweep", NULL);
  cr_assert_eq(g_rmdir(tasks), 0, "a folder that is no sweep's was written to");

  g_autoptr(ProgramOutcome) swept = program_run(folder, SWEEPS_SMALL, "--vary", "workload.rate_rps=1", NULL);
  g_autoptr(ProgramOutcome) merged =
      program_run(folder, SWEEPS_SMALL, "--vary", "workload.rate_rps=1", "--merge", NULL);
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
      program_run(folder, "sweep", "x.ini", SWEEPS_VARY, "--repeat", "2", "--out", "x.db", "--quiet", NULL);
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
