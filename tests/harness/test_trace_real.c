/* The real traces, where they are at hand: TRACES names their folder (default ../shared/traces). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/trace_summary.h"
#include "temporary.h"

static const char *traces_folder(void)
{
  const char *folder = g_getenv("TRACES");
  return folder ? folder : DM_SOURCE_DIR "/../shared/traces";
}

/* The summary of one file; skips the test aloud where the traces are absent. */
static struct trace_summary *summarise(const char *file, char **notices)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *path = g_build_filename(traces_folder(), file, NULL);
  if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
    fprintf(stderr, "SKIPPED: no real trace at %s (set TRACES to their folder)\n", path);
    cr_skip_test("no real trace at %s", path);
  }
  struct trace_reader *reader = trace_open(path, NULL, &error);
  cr_assert(reader, "%s", error ? error->message : "");
  struct trace_summary *summary = trace_summarise(reader, &error);
  cr_assert(summary, "%s", error ? error->message : "");
  g_autoptr(GPtrArray) lines = trace_notices(reader);
  g_ptr_array_add(lines, NULL);
  *notices = g_strjoinv("\n", (char **)lines->pdata);
  trace_close(reader);
  return summary;
}

static void expect_rows(const char *file, const char *format, uint64_t rows)
{
  g_autofree char *notices = NULL;
  g_autoptr(TraceSummary) summary = summarise(file, &notices);
  cr_assert_str_eq(summary->format, format);
  cr_assert_eq(summary->rows, rows, "%s: %llu rows", file, (unsigned long long)summary->rows);
}

Test(trace_real, azure_llm)
{
  expect_rows("azure-llm-2023/AzureLLMInferenceTrace_code.csv", "azure-llm", 8819);
  expect_rows("azure-llm-2023/AzureLLMInferenceTrace_conv.csv", "azure-llm", 19366);
}

Test(trace_real, azure_functions_2021)
{
  g_autofree char *notices = NULL;
  g_autoptr(TraceSummary) summary = summarise("azure-functions-2021-excerpt/Azure2021_200.csv", &notices);
  cr_assert_eq(summary->rows, 199);
  cr_assert_eq(summary->apps, 13);
  cr_assert_eq(summary->models->len, 31);
  cr_assert(strstr(notices, "duration of 0: 8"), "%s", notices);
}

Test(trace_real, azure_functions_2019)
{
  g_autofree char *notices = NULL;
  g_autoptr(TraceSummary) summary = summarise("azure-functions-2019-format/invocations.csv", &notices);
  cr_assert_eq(summary->models->len, 4);
  cr_assert(strstr(notices, "4 functions, 4 of them with a duration; memory of 4 apps"), "%s", notices);
}

Test(trace_real, mooncake)
{
  g_autofree char *notices = NULL;
  g_autoptr(TraceSummary) summary = summarise("mooncake/conversation_trace.jsonl", &notices);
  cr_assert_eq(summary->rows, 12031);
  cr_assert_eq(summary->distinct_times, 1180);
  cr_assert_eq(summary->quantity[QUANTITY_INPUT].max, 126195);
}

Test(trace_real, burstgpt)
{
  g_autofree char *notices = NULL;
  g_autoptr(TraceSummary) summary = summarise("burstgpt-format/burstgpt_sample.csv", &notices);
  cr_assert_eq(summary->rows, 51);
  cr_assert(strstr(notices, "3 rows skipped: failed request"), "%s", notices);
}

Test(trace_real, elasticflow)
{
  expect_rows("elasticflow-itp-2021/cluster01.csv", "elasticflow", 1595);
  expect_rows("elasticflow-itp-2021/cluster05.csv", "elasticflow", 3629);
  expect_rows("elasticflow-itp-2021/cluster10.csv", "elasticflow", 260);
}

Test(trace_real, openb)
{
  g_autofree char *notices = NULL, *node_notices = NULL;
  g_autoptr(TraceSummary) pods = summarise("alibaba-openb-2023/openb_pod_list_default.csv", &notices);
  g_autoptr(TraceSummary) nodes = summarise("alibaba-openb-2023/openb_node_list_gpu_node.csv", &node_notices);
  /* 36 of the 1,088 pods without a GPU are among the 897 Pending ones. */
  cr_assert_eq(pods->rows, 8152 - 897 - (1088 - 36));
  cr_assert(strstr(notices, "897 rows skipped: Pending, no scheduled_time"), "%s", notices);
  cr_assert(strstr(notices, "1052 rows skipped: no GPU"), "%s", notices);
  cr_assert(strstr(notices, "pods without a GPU, of which the Pending ones are counted as Pending: 1088"),
            "%s", notices);
  cr_assert_eq(nodes->rows, 1213);
  cr_assert_eq(nodes->gpus, 6212);
}

Test(trace_real, muri)
{
  g_autofree char *notices = NULL;
  g_autoptr(TraceSummary) summary = summarise("philly-muri/trace3.csv", &notices);
  cr_assert_eq(summary->rows, 992);
  cr_assert_eq(summary->span_ns, 8166025 * NS_PER_S, "milliseconds");
}
