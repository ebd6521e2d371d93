/* `sweep` and `plan` look at every point's experiment before the first run: one line, and nothing written. */
#include "program.h"
#include "sweeps.h"

#include <criterion/criterion.h>
#include <string.h>

static ProgramOutcome *start(const char *folder, gboolean plan, const char *options)
{
  g_autofree char *line = g_strdup_printf("%s x.ini --out y.db --quiet %s %s", plan ? "plan" : "sweep",
                                          plan ? "--hold requests>=1" : "", options);
  g_auto(GStrv) words = g_strsplit_set(line, " ", -1);
  g_autoptr(GPtrArray) arguments = g_ptr_array_new();
  for (char **word = words; *word; word++)
    if (**word)
      g_ptr_array_add(arguments, *word);
  g_ptr_array_add(arguments, NULL);
  return program_finish(program_start(folder, (const char *const *)arguments->pdata));
}

static void expect_nothing_written(const char *folder, const char *options)
{
  g_autofree char *left = folder_list(folder);
  cr_assert_str_eq(left, "t.csv x.ini", "%s left behind: %s", options, left);
}

static char *filled_folder(void)
{
  char *folder = folder_new();
  sweeps_write_experiment(folder);
  folder_write(folder, "t.csv", "arrival_s\n0\n0.5\n1\n");
  return folder;
}

static const struct {
  const char *options, *point, *defect;
} invalid[] = {
    /* wrong everywhere, whatever the value */
    {"--vary models.nosuch=1,2", "at models.nosuch=1, ideal: ", "no profile \"nosuch\""},
    {"--vary cluster.gpu_servers=1,2 --set models.nosuch=1",
     "at cluster.gpu_servers=1, ideal: ", "\"nosuch\""},
    {"--vary cluster.gpu_servers=1,2 --set training.model=nosuch --set training.batch_ms=5",
     "at cluster.gpu_servers=1, ideal: ", "\"nosuch\""},
    /* at one point */
    {"--vary cluster.hardware=h200,nosuch", "at cluster.hardware=nosuch, ideal: ", "cannot find hardware"},
    {"--vary cluster.gpu_servers=1,2 --vary workload.duration_s=1,0",
     "workload.duration_s=0, ideal: ", "expected above 0"},
    /* each value is right beside the first of the others */
    {"--vary workload.kind=poisson,trace --vary workload.trace=t.csv,none",
     "at workload.kind=trace, workload.trace=none, ideal: ", "expected workload.trace = FILE"},
    /* beside the seeds too */
    {"--vary cluster.hardware=h200,nosuch --vary experiment.seed=1..1000",
     "at cluster.hardware=nosuch, experiment.seed=1, ideal: ", "cannot find hardware"},
};

Test(sweep_check, an_invalid_point_is_refused_before_any_runs)
{
  g_autoptr(Folder) folder = filled_folder();
  for (gsize i = 0; i < G_N_ELEMENTS(invalid); i++)
    for (int plan = 0; plan <= 1; plan++) {
      if (plan && strstr(invalid[i].options, "duration_s=1,0"))
        continue; /* descends, which a plan refuses before */
      g_autoptr(ProgramOutcome) outcome = start(folder, plan, invalid[i].options);
      expect_refused(outcome, invalid[i].point, invalid[i].defect, NULL);
      expect_nothing_written(folder, invalid[i].options);
    }
}

Test(sweep_check, a_fail_event_needs_heartbeats)
{
  g_autoptr(Folder) folder = filled_folder();
  g_autofree char *path = g_build_filename(folder, "x.ini", NULL), *text = NULL;
  cr_assert(g_file_get_contents(path, &text, NULL, NULL));
  g_autofree char *more = g_strconcat(text, "[events]\nloss = at 10 fail memory_server 0\n", NULL);
  folder_write(folder, "x.ini", more);
  for (int plan = 0; plan <= 1; plan++) {
    g_autoptr(ProgramOutcome) outcome =
        start(folder, plan, "--vary cluster.heartbeat_ms=0,100 --system distmind");
    expect_refused(outcome, "at cluster.heartbeat_ms=0, distmind: ", "a fail event", NULL);
    expect_nothing_written(folder, "heartbeats");
  }
}

/* A value in the middle of a long list. */
Test(sweep_check, every_value_is_looked_at)
{
  g_autoptr(Folder) folder = filled_folder();
  g_autoptr(GString) options = g_string_new("--vary pipeline.grouping=");
  for (guint i = 1; i <= 300; i++)
    g_string_append_printf(options, "%scount:%s%u", i == 1 ? "" : ",", i == 150 ? "x" : "", i);
  g_autoptr(ProgramOutcome) outcome = start(folder, FALSE, options->str);
  expect_refused(outcome, "at pipeline.grouping=count:x150, ideal: ", NULL);
  expect_nothing_written(folder, "a long list");
}

/* Traces are not read before: the runs fail, which is no answer of a plan, and there is no figure of it. The
 * same command does it once the trace is mended. */
Test(sweep_check, a_malformed_trace_is_a_failure)
{
  static const char options[] = "--vary cluster.gpu_servers=1,2 --system ideal --trace t.csv --plot p.svg";
  g_autoptr(Folder) folder = filled_folder();
  folder_write(folder, "t.csv", "arrival_s\n0\nsoon\n1\n");
  g_autoptr(ProgramOutcome) plan = start(folder, TRUE, options);
  cr_assert(plan->status == 1 && strstr(plan->err, "failed at cluster.gpu_servers=1, ideal: ") &&
                strstr(plan->err, "t.csv:3: "),
            "%d: %s%s", plan->status, plan->out, plan->err);
  expect_nothing_written(folder, options);
  folder_write(folder, "t.csv", "arrival_s\n0\n0.5\n1\n");
  g_autoptr(ProgramOutcome) again = start(folder, TRUE, options);
  g_autofree char *left = folder_list(folder);
  cr_assert_eq(again->status, 0, "%s", again->err);
  cr_assert_str_eq(left, "p.svg t.csv x.ini y.db");
}

/* Where something fits, the rest is run (test_sweep.c); of a plan, that nothing fits is an answer. */
Test(sweep_check, where_nothing_fits_nothing_runs)
{
  static const char options[] = "--vary cluster.host_memory_gb=0.01,0.02 --system distmind";
  g_autoptr(Folder) folder = filled_folder();
  g_autoptr(ProgramOutcome) sweep = start(folder, FALSE, options);
  expect_refused(sweep, "at cluster.host_memory_gb=0.01, distmind: no point can be set up", "needs", NULL);
  expect_nothing_written(folder, options);
  g_autoptr(ProgramOutcome) plan = start(folder, TRUE, options);
  cr_assert(plan->status == 0 && strstr(plan->out, "none up to"), "%d: %s%s", plan->status, plan->out,
            plan->err);
}
