/* Every real trace, whole, through the program: as many requests or jobs come out as rows went in. Skips
 * aloud where the traces are not at hand (TRACES, default ../shared/traces). */
#include "program.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* rows: those of the file less the ones that the reader skips and names. */
struct replay {
  const char *file, *key;
  long rows;
};

static const struct replay requests[] = {
    {"azure-llm-2023/AzureLLMInferenceTrace_code.csv", "requests", 8819},
    {"azure-llm-2023/AzureLLMInferenceTrace_conv.csv", "requests", 19366},
    {"azure-functions-2021-excerpt/Azure2021_200.csv", "requests", 199},
    {"mooncake/conversation_trace.jsonl", "requests", 12031},
};

static const struct replay jobs[] = {
    {"elasticflow-itp-2021/cluster01.csv", "training_jobs", 1595},
    {"elasticflow-itp-2021/cluster05.csv", "training_jobs", 3629},
    {"elasticflow-itp-2021/cluster10.csv", "training_jobs", 260},
    {"alibaba-openb-2023/openb_pod_list_default.csv", "training_jobs", 6203},
    {"philly-muri/trace3.csv", "training_jobs", 992},
};

#define CLUSTER                                                                                              \
  "[experiment]\nname = t\nsystems = ideal;distmind\n[cluster]\nhardware = h200\ngpu_servers = 32\n"         \
  "memory_servers = 4\nheartbeat_ms = 0\n[models]\nresnet152 = 16\n[output]\nrequests = none\nusage = "      \
  "none\n"

/* The trace's absolute path, or the test is skipped. */
static char *trace_or_skip(const char *file)
{
  const char *set = getenv("TRACES"), *folder = set ? set : "../shared/traces";
  g_autofree char *path = g_build_filename(folder, file, NULL);
  if (!g_file_test(path, G_FILE_TEST_EXISTS))
    cr_skip_test("no %s: set TRACES to the folder of the real traces", path);
  return g_canonicalize_filename(path, NULL);
}

/* Every "key": number of the JSON equals rows; there are `runs` of them. */
static void expect_rows(const char *json, const char *key, long rows, int runs, const char *file)
{
  g_autofree char *name = g_strdup_printf("\"%s\":", key);
  int found = 0;
  for (const char *at = strstr(json, name); at; at = strstr(at + 1, name), found++)
    cr_expect_eq(strtol(at + strlen(name), NULL, 10), rows, "%s: %s is not %ld in: %.60s", file, key, rows,
                 at);
  cr_expect_eq(found, runs, "%s: %d runs in %s", file, found, json);
}

static void replay(const struct replay *r, const char *workload)
{
  g_autofree char *trace = trace_or_skip(r->file);
  g_autoptr(Folder) folder = folder_new();
  g_autofree char *text = g_strdup_printf(workload, trace);
  folder_write(folder, "t.ini", text);
  g_autoptr(ProgramOutcome) outcome = program_run(folder, "run", "t.ini", "--json", "--out", "t.db", NULL);
  cr_assert_eq(outcome->status, 0, "%s: %s", r->file, outcome->err);
  expect_rows(outcome->out, r->key, r->rows, 2, r->file);
}

Test(traces, requests_replay_whole)
{
  for (gsize i = 0; i < G_N_ELEMENTS(requests); i++)
    replay(&requests[i], CLUSTER "[workload]\nkind = trace\ntrace = %s\nduration_s = 0\n");
}

Test(traces, jobs_replay_whole)
{
  for (gsize i = 0; i < G_N_ELEMENTS(jobs); i++)
    replay(&jobs[i], CLUSTER "[workload]\nkind = poisson\nrate_rps = 1\nduration_s = 10\n[training]\n"
                             "model = resnet152\nbatch_ms = 106\nstate_gb = 0.72\ntrace = %s\n");
}
