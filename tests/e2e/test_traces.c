/* Every real trace, whole, through the program: as many requests or jobs come out as rows went in, the rows
 * left out are named, jobs get every training step that they want, and the experiments that ship run as they
 * stand. Skips aloud where the traces are not at hand (TRACES, default ../shared/traces). */
#include "program.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <yajl/yajl_tree.h>

#include "harness/trace.h"

#define STEP_NS 106e6

/* rows: those of the file less the ones that the reader skips; notices: texts that the run must tell. */
struct replay {
  const char *file, *experiment;
  long rows;
  const char *notices[3];
};

static const struct replay requests[] = {
    {"azure-llm-2023/AzureLLMInferenceTrace_code.csv", NULL, 8819, {"lines end with CR LF"}},
    {"azure-llm-2023/AzureLLMInferenceTrace_conv.csv", "azure-llm-2023", 19366, {"lines end with CR LF"}},
    {"azure-functions-2021-excerpt/Azure2021_200.csv", "azure-functions-2021", 199, {"duration of 0: 8"}},
    {"azure-functions-2019-format/invocations.csv", "azure-functions-2019", 4525, {"4 functions, 4 of them"}},
    {"burstgpt-format/burstgpt_sample.csv", "burstgpt", 51, {"3 rows skipped: failed request"}},
    {"mooncake/conversation_trace.jsonl", "mooncake", 12031, {"tokens are ignored"}},
};

static const struct replay jobs[] = {
    {"elasticflow-itp-2021/cluster01.csv", NULL, 1595, {NULL}},
    {"elasticflow-itp-2021/cluster05.csv", NULL, 3629, {NULL}},
    {"elasticflow-itp-2021/cluster10.csv", "elasticflow", 260, {"no newline at the end"}},
    {"alibaba-openb-2023/openb_pod_list_default.csv",
     "openb",
     6203,
     {"1052 rows skipped: no GPU", "897 rows skipped: Pending"}},
    {"philly-muri/trace3.csv", "philly-muri", 992, {"lines end with CR LF"}},
};

static const char cluster[] = "[experiment]\nname = t\nsystems = ideal;distmind\n"
                              "[cluster]\nhardware = h200\ngpu_servers = 32\nmemory_servers = 4\n"
                              "[models]\nresnet152 = 16\n"
                              "[output]\nrequests = none\n";

static const char *traces_folder(void)
{
  const char *folder = g_getenv("TRACES");
  return folder ? folder : DM_SOURCE_DIR "/../shared/traces";
}

/* The trace's absolute path, or the test is skipped. */
static char *trace_or_skip(const char *file)
{
  g_autofree char *path = g_build_filename(traces_folder(), file, NULL);
  if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
    fprintf(stderr, "SKIPPED: no real trace at %s (set TRACES to their folder)\n", path);
    cr_skip_test("no real trace at %s", path);
  }
  return g_canonicalize_filename(path, NULL);
}

static const char *setting_of_trace(const struct replay *r)
{
  return r >= jobs && r < jobs + G_N_ELEMENTS(jobs) ? "training.trace" : "workload.trace";
}

/* Every "key": number of the JSON object equals value; there are `runs` of them. */
static void expect_figure(const char *json, const char *key, gint64 value, int runs, const char *file)
{
  g_autofree char *name = g_strdup_printf("\"%s\":", key);
  int found = 0;
  for (const char *at = strstr(json, name); at; at = strstr(at + 1, name), found++) {
    gint64 is = g_ascii_strtoll(at + strlen(name), NULL, 10);
    cr_expect_eq(is, value, "%s: %s is %lld, not %lld", file, key, (long long)is, (long long)value);
  }
  cr_expect_eq(found, runs, "%s: %d runs in %s", file, found, json);
}

static void expect_notices(const struct replay *r, const char *folder)
{
  g_autoptr(ProgramOutcome) report = program_run(folder, "report", "t.db", NULL);
  cr_assert_eq(report->status, 0, "%s: %s", r->file, report->err);
  for (gsize i = 0; i < G_N_ELEMENTS(r->notices) && r->notices[i]; i++)
    cr_expect(strstr(report->out, r->notices[i]), "%s: no '%s' in %s", r->file, r->notices[i], report->out);
}

/* Runs `experiment` on r's trace under ideal and distmind, whole and once (load = 0). */
static ProgramOutcome *replay(const struct replay *r, const char *folder, const char *experiment)
{
  g_autofree char *trace = trace_or_skip(r->file);
  g_autofree char *set = g_strdup_printf("%s=%s", setting_of_trace(r), trace);
  ProgramOutcome *outcome =
      program_run(folder, "run", experiment, "--json", "--out", "t.db", "--force", "--system",
                  "ideal,distmind", "--set", "workload.load=0", "--set", set, NULL);
  cr_assert_eq(outcome->status, 0, "%s: %s", r->file, outcome->err);
  expect_notices(r, folder);
  return outcome;
}

/* What the jobs want in all, each rounded up to whole steps, from the trace itself. */
static gint64 steps_wanted(const struct replay *r)
{
  g_autofree char *path = trace_or_skip(r->file);
  g_autoptr(GError) error = NULL;
  struct trace_reader *reader = trace_open(path, NULL, &error);
  cr_assert(reader, "%s", error ? error->message : "");
  struct trace_row row;
  gint64 steps = 0;
  while (trace_next(reader, &row, &error) > 0)
    steps += (gint64)fmax(1, ceil(row.gpus * (double)row.duration_ns / STEP_NS));
  cr_assert_null(error);
  trace_close(reader);
  return steps;
}

Test(traces, requests_replay_whole)
{
  g_autoptr(Folder) folder = folder_new();
  g_autofree char *text =
      g_strconcat(cluster, "[workload]\nkind = trace\ntrace = none\nduration_s = 0\nmap = hash\n", NULL);
  folder_write(folder, "t.ini", text);
  for (gsize i = 0; i < G_N_ELEMENTS(requests); i++) {
    g_autoptr(ProgramOutcome) outcome = replay(&requests[i], folder, "t.ini");
    expect_figure(outcome->out, "requests", requests[i].rows, 2, requests[i].file);
    expect_figure(outcome->out, "completed", requests[i].rows, 2, requests[i].file);
  }
}

Test(traces, jobs_get_every_step)
{
  g_autoptr(Folder) folder = folder_new();
  g_autofree char *text =
      g_strconcat(cluster, "[workload]\nkind = poisson\nrate_rps = 0.1\nduration_s = 100000\n",
                  "[training]\nmodel = resnet152\nbatch_ms = 106\nstate_gb = 0.72\ntrace = none\n", NULL);
  folder_write(folder, "t.ini", text);
  for (gsize i = 0; i < G_N_ELEMENTS(jobs); i++) {
    g_autoptr(ProgramOutcome) outcome = replay(&jobs[i], folder, "t.ini");
    expect_figure(outcome->out, "training_jobs", jobs[i].rows, 2, jobs[i].file);
    expect_figure(outcome->out, "training_steps", steps_wanted(&jobs[i]), 2, jobs[i].file);
  }
}

static void run_shipped(const struct replay *r, const char *figure)
{
  if (!r->experiment)
    return;
  g_autoptr(Folder) folder = folder_new();
  g_autofree char *experiment = g_strdup_printf(DM_SOURCE_DIR "/experiments/%s.ini", r->experiment);
  g_autoptr(ProgramOutcome) outcome = replay(r, folder, experiment);
  expect_figure(outcome->out, figure, r->rows, 2, r->experiment);
}

Test(traces, shipped_experiments_run)
{
  for (gsize i = 0; i < G_N_ELEMENTS(requests); i++)
    run_shipped(&requests[i], "requests");
  for (gsize i = 0; i < G_N_ELEMENTS(jobs); i++)
    run_shipped(&jobs[i], "training_jobs");
}

static double figure_of(yajl_val run, const char *key)
{
  const char *path[] = {key, NULL};
  yajl_val value = yajl_tree_get(run, path, yajl_t_number);
  cr_assert_not_null(value, "no %s", key);
  return YAJL_GET_DOUBLE(value);
}

/* A system that cannot keep up completes less in the window than arrives in it, and its latency is the length
 * of a queue that grows: such a comparison says nothing. */
static void expect_stable(const char *json, const char *experiment)
{
  const char *runs_path[] = {"runs", NULL}, *system_path[] = {"system", NULL};
  char message[200];
  yajl_val root = yajl_tree_parse(json, message, sizeof message);
  cr_assert_not_null(root, "%s: %s", experiment, message);
  yajl_val runs = yajl_tree_get(root, runs_path, yajl_t_array);
  cr_assert(runs && YAJL_GET_ARRAY(runs)->len > 1, "%s", json);
  for (size_t i = 0; i < YAJL_GET_ARRAY(runs)->len; i++) {
    yajl_val run = YAJL_GET_ARRAY(runs)->values[i];
    double window_s = figure_of(run, "window_s"), arriving = figure_of(run, "requests") / window_s;
    const char *system = YAJL_GET_STRING(yajl_tree_get(run, system_path, yajl_t_string));
    cr_expect_geq(figure_of(run, "throughput_rps"), 0.98 * arriving, "%s: %s does not keep up", experiment,
                  system);
    cr_expect_leq(figure_of(run, "duration_s"), 1.05 * window_s, "%s: %s answers late", experiment, system);
  }
  yajl_tree_free(root);
}

Test(traces, every_system_keeps_up_in_shipped_experiments)
{
  for (gsize i = 0; i < G_N_ELEMENTS(requests); i++) {
    if (!requests[i].experiment)
      continue;
    g_autoptr(Folder) folder = folder_new();
    g_autofree char *experiment =
        g_strdup_printf(DM_SOURCE_DIR "/experiments/%s.ini", requests[i].experiment);
    g_autofree char *trace = trace_or_skip(requests[i].file);
    g_autoptr(ProgramOutcome) outcome = program_run(folder, "run", experiment, "--json", "--out", "t.db",
                                                    "--set", "output.requests=none", "--trace", trace, NULL);
    cr_assert_eq(outcome->status, 0, "%s: %s", requests[i].experiment, outcome->err);
    expect_stable(outcome->out, requests[i].experiment);
  }
}
