/* Malformed files: exit status 2, one line that names file and line, and nothing left behind. */
#include "program.h"

#include <criterion/criterion.h>

#define GOOD                                                                                                 \
  "[experiment]\n"                                                                                           \
  "name = bad\n"                                                                                             \
  "systems = ideal\n"                                                                                        \
  "[cluster]\n"                                                                                              \
  "hardware = h200\n"                                                                                        \
  "[models]\n"                                                                                               \
  "resnet152 = 2\n"                                                                                          \
  "[workload]\n"

/* A file and the line that the refusal must name. */
struct bad_file {
  const char *text;
  const char *where;
  const char *what; /* a word that the refusal must have */
};

static const struct bad_file experiments[] = {
    {GOOD "kind = poisson\nrate_rps = 10\nduraton_s = 1\n", "x.ini:11", "duration_s"},
    {GOOD "kind = poisson\nrate_rps = ten\n", "x.ini:10", "ten"},
    {GOOD "kind = poisson\nrate_rps = nan\n", "x.ini:10", "nan"},
    {GOOD "kind = poisson\nrate_rps = -1\n", "x.ini:10", "-1"},
    {GOOD "kind = poisson\nrate_rps = 1e999\n", "x.ini:10", "1e999"},
    {GOOD "kind = poisson\nrate_rps = 10 20\n", "x.ini:10", "10 20"},
    {GOOD "kind = poisson\nkind = gamma\n", "x.ini:10", "kind"},
    {GOOD "kind = poison\n", "x.ini:9", "poisson"},
    {GOOD "kind = poisson\n[workloads]\n", "x.ini:10", "workload"},
    {GOOD "kind = poisson\n[workload\n", "x.ini:10", "workload"},
    {GOOD "kind\n", "x.ini:9", "kind"},
    {GOOD "kind = trace\ntrace = absent.csv\n", "x.ini:10", "absent.csv"},
    {GOOD "kind = shifting\nduration_s = 1\nshift_period_s = 1e-9\n", "x.ini:11", "microsecond"},
    {"[experiment]\nsystems = ideal;idle\n[models]\nresnet152 = 2\n", "x.ini:2", "idle"},
    {"[cluster]\nhardware = h2OO\n[models]\nresnet152 = 2\n", "x.ini:2", "h2OO"},
    {"[cluster]\nhardware = h200\n[models]\nresnet15 = 2\n[workload]\nrate_rps = 1\n", "x.ini:4", "resnet15"},
    {"[cluster]\nhardware = h200\ngpu_servers = 99999999999999999999\n[models]\nresnet152 = 2\n", "x.ini:3",
     "gpu_servers"},
    {"name = outside of any section\n", "x.ini:1", "section"},
};

Test(bad_input, malformed_experiments_name_file_and_line)
{
  for (gsize i = 0; i < G_N_ELEMENTS(experiments); i++) {
    g_autoptr(Folder) folder = folder_new();
    folder_write(folder, "x.ini", experiments[i].text);
    g_autoptr(ProgramOutcome) outcome = program_run(folder, "run", "x.ini", "--out", "x.db", NULL);
    expect_refused(outcome, experiments[i].where, experiments[i].what, NULL);
    g_autofree char *left = folder_list(folder);
    cr_assert_str_eq(left, "x.ini", "left behind: %s", left);
  }
}

static const struct bad_file traces[] = {
    {"", "t.csv", ""},
    {"arrival_s,model\n", "t.csv", "row"},
    {"arrival_s,model\n0.5,a\nx,b\n", "t.csv:3", "x"},
    {"arrival_s,model\n0.5,a\n-1,b\n", "t.csv:3", "-1"},
    {"arrival_s,model\n0.5,a\nnan,b\n", "t.csv:3", "nan"},
    {"arrival_s,model\n0.5,a\n1e300,b\n", "t.csv:3", "1e300"},
    {"arrival_s,model\n0.5,a,b,c\n", "t.csv:2", ""},
    {"arrival_s,model\n0.5,\"a\n", "t.csv:2", ""},
    {"arrival_s,arrival_s\n0.5,1\n", "t.csv:1", "one column"},
    {"arrival_s\n0\n9000000000\n", "t.csv", "1e9 s"},
    {"arrival_s,service_s\n0,1\n1,9000000000\n", "t.csv:3", "service time"},
};

Test(bad_input, malformed_traces_name_file_and_line)
{
  for (gsize i = 0; i < G_N_ELEMENTS(traces); i++) {
    g_autoptr(Folder) folder = folder_new();
    folder_write(folder, "x.ini", GOOD "kind = trace\ntrace = t.csv\n");
    folder_write(folder, "t.csv", traces[i].text);
    g_autoptr(ProgramOutcome) run = program_run(folder, "run", "x.ini", "--out", "x.db", NULL);
    expect_refused(run, traces[i].where, traces[i].what, NULL);
    g_autoptr(ProgramOutcome) convert =
        program_run(folder, "trace", "convert", "t.csv", "-o", "out.csv", NULL);
    expect_refused(convert, traces[i].where, traces[i].what, NULL);
    g_autofree char *left = folder_list(folder);
    cr_assert_str_eq(left, "t.csv x.ini", "left behind: %s", left);
  }
}

/* What only the run can see: nothing is left behind then either. */
Test(bad_input, traces_that_do_not_fit_the_experiment)
{
  static const struct {
    const char *set, *where, *what;
  } cases[] = {
      {"workload.map=name", "t.csv:3", "'other'"},
      {"experiment.warmup_s=3000", "x.ini", "warmup_s"},
      {"workload.speedup=0.000001", "x.ini", "speedup"},
      {"cluster.report_ms=0.0000011", "report_ms", "microsecond"},
      {"workload.trace=jobs.csv", "jobs.csv", "training jobs"},
  };
  g_autoptr(Folder) folder = folder_new();
  folder_write(folder, "x.ini", GOOD "kind = trace\ntrace = t.csv\nduration_s = 0\n");
  folder_write(folder, "t.csv", "arrival_s,model\n0,resnet152\n0.1,other\n3000,resnet152-1\n");
  folder_write(folder, "jobs.csv", "job_id,submission_time,duration,num_gpu\nj,0,1,1\n");
  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autoptr(ProgramOutcome) outcome =
        program_run(folder, "run", "x.ini", "--out", "x.db", "--set", cases[i].set, NULL);
    expect_refused(outcome, cases[i].where, cases[i].what, NULL);
  }
  g_autofree char *left = folder_list(folder);
  cr_assert_str_eq(left, "jobs.csv t.csv x.ini", "left behind: %s", left);
}

Test(bad_input, overrides_and_files_that_are_no_files)
{
  g_autoptr(Folder) folder = folder_new();
  folder_write(folder, "x.ini", GOOD "kind = poisson\nrate_rps = 10\nduration_s = 1\n");
  g_autoptr(ProgramOutcome) key =
      program_run(folder, "run", "x.ini", "--out", "x.db", "--set", "workload.rate=1", NULL);
  expect_refused(key, "workload.rate", "rate_rps", NULL);
  g_autoptr(ProgramOutcome) value =
      program_run(folder, "run", "x.ini", "--out", "x.db", "--set", "workload.rate_rps=", NULL);
  expect_refused(value, "rate_rps", NULL);
  g_autoptr(ProgramOutcome) system =
      program_run(folder, "run", "x.ini", "--out", "x.db", "--system", "distmid", NULL);
  expect_refused(system, "distmid", "distmind", NULL);
  g_autoptr(ProgramOutcome) seed = program_run(folder, "run", "x.ini", "--out", "x.db", "--seed", "-1", NULL);
  expect_refused(seed, "experiment.seed", "-1", NULL);
  g_autoptr(ProgramOutcome) absent = program_run(folder, "run", "y.ini", "--out", "x.db", NULL);
  expect_refused(absent, "y.ini", NULL);
  g_autoptr(ProgramOutcome) directory = program_run(folder, "run", ".", "--out", "x.db", NULL);
  expect_refused(directory, ".", NULL);
  g_autoptr(ProgramOutcome) nowhere =
      program_run(folder, "run", "x.ini", "--out", "no/such/folder/x.db", NULL);
  cr_assert_neq(nowhere->status, 0);
  g_autofree char *left = folder_list(folder);
  cr_assert_str_eq(left, "x.ini", "left behind: %s", left);
}
