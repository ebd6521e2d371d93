/* `plan`: against a sweep of all values, the same with any number of processes, and after kills. */
#include "program.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

#include "sweeps.h"

#define KEY     "--vary", "cluster.gpu_servers=1..12"
#define LOAD    "--set", "workload.rate_rps=400", "--set", "workload.duration_s=8"
#define HOLD    "slo_attainment>=0.99"
#define SYSTEMS "--system", "ideal,distmind,mps"

static ProgramOutcome *plan(const char *folder, const char *hold, const char *out, const char *jobs)
{
  return program_run(folder, "plan", "x.ini", KEY, LOAD, SYSTEMS, "--hold", hold, "--out", out, "--jobs",
                     jobs, "--json", NULL);
}

/* The least value from which on all hold, by a sweep of every value; "none" if there is none. */
static char *brute_force(const char *folder, const char *system, const char *holds)
{
  g_autofree char *sql = g_strdup_printf(
      "WITH point AS (SELECT value AS n, %s AS holds FROM run JOIN setting ON run = id AND key = "
      "'cluster.gpu_servers' "
      "WHERE system = ?1) SELECT ifnull(min(n), 'none') FROM point WHERE holds AND NOT EXISTS "
      "(SELECT 1 FROM point other WHERE other.n > point.n AND NOT other.holds)",
      holds);
  return sweeps_query(folder, "all.db", sql, system);
}

/* A value of an answer in the JSON object. */
static char *answer(const ProgramOutcome *outcome, const char *system, const char *member)
{
  g_autofree char *sql =
      g_strdup_printf("SELECT ifnull(value ->> '$.%s', 'none') FROM json_each(?1, '$.answers') "
                      "WHERE value ->> 'system' = '%s'",
                      member, system);
  return sweeps_query(g_get_tmp_dir(), NULL, sql, outcome->out);
}

static const struct {
  const char *hold, *sql;
} holds[] = {{HOLD, "slo_attainment >= 0.99"},
             {"slo_attainment>=0.5", "slo_attainment >= 0.5"},
             {"latency_ms.p99 <= 30", "latency_ms_p99 <= 30"},
             {"gpu_utilization<=0.3", "gpu_utilization <= 0.3"},
             {"slo_attainment>=1.5", "slo_attainment >= 1.5"},
             {"requests>=1", "requests >= 1"}};

Test(plan, finds_what_a_sweep_of_all_finds)
{
  static const char *const systems[] = {"ideal", "distmind", "mps"};
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autoptr(ProgramOutcome) all =
      program_run(folder, "sweep", "x.ini", KEY, LOAD, SYSTEMS, "--out", "all.db", "--quiet", NULL);
  cr_assert_eq(all->status, 0, "%s", all->err);
  guint monotone = 0;
  for (gsize h = 0; h < G_N_ELEMENTS(holds); h++) {
    g_autoptr(ProgramOutcome) outcome =
        plan(folder, holds[h].hold, "plan.db", "2"); /* one database for all of them */
    cr_assert_eq(outcome->status, 0, "%s", outcome->err);
    for (gsize s = 0; s < G_N_ELEMENTS(systems); s++) {
      g_autofree char *expected = brute_force(folder, systems[s], holds[h].sql);
      g_autofree char *found = answer(outcome, systems[s], "answer"),
                      *sure = answer(outcome, systems[s], "monotone");
      if (g_str_equal(sure, "0"))
        continue; /* it says itself that it may be another */
      monotone++;
      cr_assert_str_eq(found, expected, "%s of %s: %s, not %s", holds[h].hold, systems[s], found, expected);
    }
  }
  cr_assert_gt(monotone, 12);
  /* And it did not run them all. */
  g_autofree char *fewer = sweeps_query(folder, "plan.db", "SELECT count(*) < 36 FROM run", NULL);
  cr_assert_str_eq(fewer, "1");
}

Test(plan, is_the_same_with_any_number_of_processes)
{
  static const char *const jobs[] = {"1", "2", "7"};
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autofree char *first = NULL, *first_dump = NULL;
  for (gsize i = 0; i < G_N_ELEMENTS(jobs); i++) {
    g_autofree char *out = g_strdup_printf("%s.db", jobs[i]);
    g_autoptr(ProgramOutcome) outcome = plan(folder, HOLD, out, jobs[i]);
    cr_assert_eq(outcome->status, 0, "%s", outcome->err);
    g_autofree char *dump = sweeps_dump(folder, out);
    if (!first) {
      first = g_strdup(outcome->out);
      first_dump = g_strdup(dump);
    }
    cr_assert_str_eq(outcome->out, first, "with --jobs %s", jobs[i]);
    cr_assert_str_eq(dump, first_dump, "with --jobs %s", jobs[i]);
  }
}

Test(plan, goes_on_after_kills)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  gint64 began = g_get_monotonic_time();
  g_autoptr(ProgramOutcome) whole = plan(folder, HOLD, "whole.db", "2");
  gint64 length = g_get_monotonic_time() - began;
  cr_assert_eq(whole->status, 0, "%s", whole->err);
  const char *arguments[] = {"plan", "x.ini", KEY,    LOAD,      SYSTEMS, "--hold",
                             HOLD,   "--out", "x.db", "--quiet", NULL};
  GRand *random = sweeps_random("plan goes on after kills");
  for (guint kills = 0; kills < 6; kills++) {
    struct program *program = program_start(folder, arguments);
    g_usleep((gulong)(g_rand_double(random) * (double)length / 2));
    program_signal(program, kills == 2 ? SIGINT : SIGKILL);
    g_autoptr(ProgramOutcome) outcome = program_finish(program);
    cr_assert(outcome->status == 128 + SIGKILL || outcome->status == 0 || outcome->status == 128 + SIGINT,
              "%d: %s", outcome->status, outcome->err);
  }
  g_rand_free(random);
  g_autoptr(ProgramOutcome) last = plan(folder, HOLD, "x.db", "2");
  cr_assert_eq(last->status, 0, "%s", last->err);
  cr_assert_str_eq(last->out, whole->out);
  g_autofree char *expected = sweeps_dump(folder, "whole.db"), *resumed = sweeps_dump(folder, "x.db");
  cr_assert_str_eq(expected, resumed);
  g_autofree char *left = folder_list(folder);
  cr_assert_str_eq(left, "whole.db x.db x.ini", "left behind: %s", left);
}

/* What cannot be set up does not hold, and none is an answer. */
Test(plan, none_is_an_answer)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autoptr(ProgramOutcome) outcome =
      program_run(folder, "plan", "x.ini", "--vary", "cluster.host_memory_gb=0.02..0.2/0.02", "--hold",
                  "requests>=1", "--out", "x.db", "--system", "distmind,ideal", "--plot", "x.svg", NULL);
  cr_assert_eq(outcome->status, 0, "%s", outcome->err);
  g_auto(GStrv) lines = g_strsplit(outcome->out, "\n", -1);
  gboolean none = FALSE, least = FALSE;
  for (char **line = lines; *line; line++) {
    none = none || (g_str_has_prefix(*line, "distmind") && strstr(*line, "none up to 0.2"));
    least = least || (g_str_has_prefix(*line, "ideal") && strstr(*line, " 0.02 "));
  }
  cr_assert(none && least, "%s", outcome->out);
  cr_assert(strstr(outcome->out, "could not be run at cluster.host_memory_gb=0.") &&
                strstr(outcome->out, "needs"),
            "%s", outcome->out);
  g_autofree char *path = g_build_filename(folder, "x.svg", NULL), *svg = NULL;
  cr_assert(g_file_get_contents(path, &svg, NULL, NULL) && strstr(svg, "distmind: none up to 0.2"), "%s",
            svg);
}

/* One group in two notations, around the best grouping: the middle one alone holds, and the plan says so. */
Test(plan, says_where_it_is_not_monotone)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  const char *const arguments[] = {"plan",     "x.ini",
                                   "--vary",   "pipeline.grouping=per-app,optimal,count:1",
                                   "--hold",   "latency_ms.mean<=100",
                                   "--system", "distmind",
                                   "--out",    "x.db",
                                   "--quiet",  NULL};
  g_autoptr(ProgramOutcome) table = program_finish(program_start(folder, arguments));
  cr_assert_eq(table->status, 0, "%s", table->err);
  cr_assert(strstr(table->out, "note (distmind): not monotone: does not hold at count:1\n"), "%s",
            table->out);
  const char *json_arguments[G_N_ELEMENTS(arguments) + 1];
  memcpy(json_arguments, arguments, sizeof arguments);
  json_arguments[G_N_ELEMENTS(arguments) - 1] = "--json";
  json_arguments[G_N_ELEMENTS(arguments)] = NULL;
  g_autoptr(ProgramOutcome) json = program_finish(program_start(folder, json_arguments));
  g_autofree char *found = answer(json, "distmind", "answer"), *sure = answer(json, "distmind", "monotone");
  cr_assert(g_str_equal(found, "optimal") && g_str_equal(sure, "0"), "%s", json->out);
}

Test(plan, figures_of_wide_axes)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autoptr(ProgramOutcome) words =
      program_run(folder, "plan", "x.ini", "--vary", "pipeline.grouping=per-app,count:4,optimal", "--hold",
                  "slo_attainment>=0.5", "--system", "distmind", "--plot", "words.svg", "--out", "words.db",
                  "--quiet", NULL);
  cr_assert_eq(words->status, 0, "%s", words->err);
  g_autoptr(ProgramOutcome) wide = program_run(
      folder, "plan", "x.ini", "--vary", "cluster.gpu_servers=1..64*2", "--hold", "slo_attainment>=0.99",
      "--system", "ideal", "--plot", "wide.svg", "--out", "wide.db", "--quiet", NULL);
  cr_assert_eq(wide->status, 0, "%s", wide->err);
  g_autoptr(ProgramOutcome) sweep =
      program_run(folder, "sweep", "x.ini", "--vary", "cluster.gpu_servers=1..64*2", "--system", "ideal",
                  "--out", "sweep.db", "--quiet", NULL);
  g_autoptr(ProgramOutcome) plot = program_run(folder, "plot", "sweep.db", "sweep", "-o", "sweep.png", NULL);
  cr_assert(sweep->status == 0 && plot->status == 0, "%s%s", sweep->err, plot->err);
}

/* Numbers that mean "not given" inside, and those that only C would read. */
Test(plan, numbers_are_decimal_and_in_range)
{
  static const char *const wrong[][3] = {
      {"sweep", "--jobs", "-2147483648"},   {"plan", "--jobs", "-2147483648"},
      {"sweep", "--repeat", "-2147483648"}, {"sweep", "--jobs", "0x2"},
      {"sweep", "--repeat", "1e1"},         {"sweep", "--jobs", ""},
      {"sweep", "--share", "-4294967295/2"}};
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
    gboolean plan = g_str_equal(wrong[i][0], "plan");
    g_autoptr(ProgramOutcome) outcome =
        program_run(folder, wrong[i][0], "x.ini", KEY, wrong[i][1], wrong[i][2], "--out", "x.db",
                    plan ? "--hold" : NULL, HOLD, NULL);
    expect_refused(outcome, wrong[i][1], "expected ", wrong[i][2], NULL);
    g_autofree char *left = folder_list(folder);
    cr_assert_str_eq(left, "x.ini", "left behind: %s", left);
  }
}

Test(plan, the_greatest_that_holds)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autoptr(ProgramOutcome) swept =
      program_run(folder, "sweep", "x.ini", "--vary", "workload.rate_rps=10..200/10", "--system", "ideal",
                  "--out", "all.db", "--quiet", NULL);
  g_autoptr(ProgramOutcome) planned =
      program_run(folder, "plan", "x.ini", "--vary", "workload.rate_rps=10..200/10", "--system", "ideal",
                  "--most", "--hold", "latency_ms.p99<=30", "--out", "x.db", "--json", NULL);
  cr_assert(swept->status == 0 && planned->status == 0, "%s%s", swept->err, planned->err);
  g_autofree char *expected = sweeps_query(folder, "all.db",
                                           "SELECT max(value) FROM run JOIN setting ON run = id AND key = "
                                           "'workload.rate_rps' WHERE latency_ms_p99 <= 30",
                                           NULL);
  g_autofree char *found = answer(planned, "ideal", "answer");
  cr_assert_str_eq(found, expected);
}

static const struct {
  const char *vary, *hold, *message;
} refused[] = {
    {"cluster.gpu_servers=1..4", "slo_attainment", "expected FIGURE>=X"},
    {"cluster.gpu_servers=1..4", "slo_attainment=1", "expected FIGURE>=X"},
    {"cluster.gpu_servers=1..4", "slo>=1", "unknown figure \"slo\""},
    {"cluster.gpu_servers=1..4", "latency_ms.p98>=1", "nearest is \"latency_ms_p9"},
    {"cluster.gpu_servers=1..4", "slo_attainment>=nan", "expected a number"},
    {"cluster.gpu_servers=1..4", "slo_attainment>=", "expected a number"},
    {"cluster.gpu_servers=1..4", "wall_s<=1", "from run to run"},
    {"cluster.gpu_servers=4,2", HOLD, "ascending values, found 2 after 4"},
    {"cluster.gpu_servers=4..1", HOLD, "lower end of a range first"},
    {"cluster.gpus=1..4", HOLD, "unknown key"},
};

Test(plan, refuses_bad_options_and_leaves_nothing)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  for (gsize i = 0; i < G_N_ELEMENTS(refused); i++) {
    g_autoptr(ProgramOutcome) outcome = program_run(folder, "plan", "x.ini", "--vary", refused[i].vary,
                                                    "--hold", refused[i].hold, "--out", "x.db", NULL);
    expect_refused(outcome, refused[i].message, NULL);
    g_autofree char *left = folder_list(folder);
    cr_assert_str_eq(left, "x.ini", "%s left behind: %s", refused[i].hold, left);
  }
  g_autoptr(ProgramOutcome) no_hold = program_run(folder, "plan", "x.ini", KEY, NULL);
  expect_refused(no_hold, "--hold", NULL);
  g_autoptr(ProgramOutcome) no_key = program_run(folder, "plan", "x.ini", "--hold", HOLD, NULL);
  expect_refused(no_key, "--vary", NULL);
  g_autoptr(ProgramOutcome) figure =
      program_run(folder, "plan", "x.ini", KEY, "--hold", HOLD, "--plot", "x.jpg", NULL);
  expect_refused(figure, "x.jpg", ".png, .svg or .pdf", NULL);
  g_autoptr(ProgramOutcome) nowhere =
      program_run(folder, "plan", "x.ini", KEY, "--hold", HOLD, "--plot", "absent/x.svg", NULL);
  expect_refused(nowhere, "absent/x.svg", "cannot write", NULL);
  g_autoptr(ProgramOutcome) two =
      program_run(folder, "plan", "x.ini", KEY, "--hold", HOLD, "--hold", "failed<=0", NULL);
  expect_refused(two, "expected one --hold, found 2", NULL);
  g_autofree char *left = folder_list(folder);
  cr_assert_str_eq(left, "x.ini", "left behind: %s", left);
}
