/* Trace readers on small samples of every layout: detection, rows to the nanosecond, skips, order, damage.
 * The samples in data/ are made up. */
#include <string.h>

#include "core/error.h"
#include "harness/trace_format.h"
#include "temporary.h"

#define DATA DM_SOURCE_DIR "/tests/harness/data/"

struct expected_row {
  int64_t arrival_ns;
  const char *model;
  int64_t input, output, service_ns;
  double gpus;
  int64_t duration_ns;
};

struct layout_case {
  const char *file, *format;
  enum trace_kind kind;
  struct expected_row rows[4];
  unsigned count;
  const char *notice; /* part of the notices joined by newlines, or NULL */
};

#define REQUEST(arrival, name, in, out, service)                                                             \
  {                                                                                                          \
    arrival, name, in, out, service, -1, -1                                                                  \
  }
#define JOB(arrival, name, gpus, duration)                                                                   \
  {                                                                                                          \
    arrival, name, -1, -1, -1, gpus, duration                                                                \
  }

static const struct layout_case cases[] = {
    {"native.csv",
     "native",
     TRACE_REQUESTS,
     {REQUEST(0, "resnet152-7", -1, -1, 25000000), REQUEST(500000001, "a \"quoted\", name", 12, 3, -1),
      REQUEST(750000000, NULL, 7, -1, 1000000)},
     3,
     "quoted fields"},
    {"native_jobs.csv",
     "native",
     TRACE_JOBS,
     {JOB(0, NULL, 0.5, 3600 * NS_PER_S), JOB(10250000000, NULL, 8, 60500000000)},
     2,
     NULL},
    {"azure_llm_2023.csv",
     "azure-llm",
     TRACE_REQUESTS,
     {REQUEST(0, NULL, 100, 10, -1), REQUEST(200, NULL, 200, 20, -1)},
     2,
     "lines end with CR LF\nno newline at the end"},
    {"azure_llm_2024.csv",
     "azure-llm",
     TRACE_REQUESTS,
     {REQUEST(0, NULL, 2162, 5, -1), REQUEST(990070000, NULL, 2399, 6, -1),
      REQUEST(1490070000, NULL, 76, 15, -1)},
     3,
     NULL},
    /* Arrivals 0.25, 1.0000000004 (0 at the ninth digit) and 1.75. */
    {"azure_functions_2021.csv",
     "azure-functions-2021",
     TRACE_REQUESTS,
     {REQUEST(0, "a1/f1", -1, -1, 10250000000), REQUEST(750000000, "a2/f1", -1, -1, NS_PER_S),
      REQUEST(1500000000, "a1/f2", -1, -1, 0)},
     3,
     "duration of 0"},
    {"burstgpt_3.csv",
     "burstgpt",
     TRACE_REQUESTS,
     {REQUEST(0, "GPT-4", 100, 20, -1), REQUEST(1750000000, "ChatGPT", 60, 7, -1)},
     2,
     "1 rows skipped: failed request (0 response tokens)"},
    {"mooncake.jsonl",
     "mooncake",
     TRACE_REQUESTS,
     {REQUEST(0, NULL, 5, 2, -1), REQUEST(0, NULL, 126195, 1, -1), REQUEST(150500000, NULL, 7, 3, -1)},
     3,
     NULL},
    {"qwen_bailian.jsonl",
     "qwen-bailian",
     TRACE_REQUESTS,
     {REQUEST(0, NULL, 131, 34, -1), REQUEST(100, NULL, 9, 0, -1)},
     2,
     NULL},
    {"elasticflow.csv",
     "elasticflow",
     TRACE_JOBS,
     {JOB(0, NULL, 8, 60 * NS_PER_S), JOB(0, NULL, 1, 5500000000), JOB(NS_PER_S, NULL, 64, 7 * NS_PER_S)},
     3,
     NULL},
    {"openb_pods.csv",
     "openb-pods",
     TRACE_JOBS,
     {JOB(0, NULL, 0.46, 90 * NS_PER_S), JOB(5 * NS_PER_S, NULL, 2, NS_PER_S)},
     2,
     "2 rows skipped: Pending, no scheduled_time\n1 rows skipped: no GPU"},
    {"openb_nodes.csv",
     "openb-nodes",
     TRACE_NODES,
     {JOB(0, "P100", 2, -1), JOB(0, "V100M32", 8, -1), JOB(0, "P100", 2, -1)},
     3,
     NULL},
    {"muri.csv",
     "muri",
     TRACE_JOBS,
     {JOB(0, "resnet18", 4, 927475 * NS_PER_MS), JOB(1456 * NS_PER_MS, "bert", 1, 1500 * NS_PER_MS)},
     2,
     NULL},
    /* j3 comes first; j1 held 4 GPUs for 60 s and 2 for 30 s: 300 GPU seconds, 75 s of 4. */
    {"philly.json",
     "philly",
     TRACE_JOBS,
     {JOB(0, NULL, 1, 10 * NS_PER_S), JOB(108001 * NS_PER_S, NULL, 4, 75 * NS_PER_S)},
     2,
     "1 rows skipped: no attempt with both times and a GPU\n1 rows skipped: no submitted_time\nrows are not "
     "in order"},
    {"helios.csv",
     "helios",
     TRACE_JOBS,
     {JOB(0, NULL, 1, 10500000000), JOB(2 * NS_PER_S, NULL, 8, 3600 * NS_PER_S)},
     2,
     "1 rows skipped: no GPU\n1 rows skipped: no duration (never ran)"},
    {"pai_task_table.csv",
     "pai-2020",
     TRACE_JOBS,
     {JOB(0, NULL, 0.25, NS_PER_S), JOB(50500000000, NULL, 1, 60 * NS_PER_S)},
     2,
     "1 rows skipped: no GPU\n1 rows skipped: no end_time (still running)\nrows are not in order"},
};

static void expect_row(const struct trace_row *row, const struct expected_row *expected, const char *file,
                       unsigned number)
{
  cr_assert_eq(row->arrival_ns, expected->arrival_ns, "%s row %u: arrival %lld", file, number,
               (long long)row->arrival_ns);
  cr_assert(g_strcmp0(row->model, expected->model) == 0, "%s row %u: model %s", file, number, row->model);
  cr_assert_eq(row->input_tokens, expected->input, "%s row %u", file, number);
  cr_assert_eq(row->output_tokens, expected->output, "%s row %u", file, number);
  cr_assert_eq(row->service_ns, expected->service_ns, "%s row %u", file, number);
  cr_assert_eq(row->duration_ns, expected->duration_ns, "%s row %u: %lld", file, number,
               (long long)row->duration_ns);
  cr_assert_float_eq(row->gpus, expected->gpus, 1e-12, "%s row %u: %g", file, number, row->gpus);
}

static char *joined_notices(const struct trace_reader *reader)
{
  g_autoptr(GPtrArray) lines = trace_notices(reader);
  g_ptr_array_add(lines, NULL);
  return g_strjoinv("\n", (char **)lines->pdata);
}

static void expect_layout(const struct layout_case *layout)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *path = g_strconcat(DATA, layout->file, NULL);
  struct trace_reader *reader = trace_open(path, NULL, &error);
  struct trace_row row;
  cr_assert(reader, "%s", error ? error->message : "");
  cr_assert_str_eq(trace_format_name(reader), layout->format);
  cr_assert_eq(trace_kind(reader), layout->kind);
  cr_assert_eq(trace_span_ns(reader), layout->rows[layout->count - 1].arrival_ns, "%s", layout->file);
  for (int pass = 0; pass < 2; pass++) {
    for (unsigned i = 0; i < layout->count; i++) {
      cr_assert_eq(trace_next(reader, &row, &error), 1, "%s row %u", layout->file, i);
      expect_row(&row, &layout->rows[i], layout->file, i);
    }
    cr_assert_eq(trace_next(reader, &row, &error), 0, "%s", layout->file);
    g_autofree char *notices = joined_notices(reader);
    cr_assert(!layout->notice || strstr(notices, layout->notice), "%s: %s", layout->file, notices);
    cr_assert(trace_rewind(reader, &error));
  }
  trace_close(reader);
}

Test(trace, every_layout)
{
  for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
    expect_layout(&cases[i]);
}

Test(trace, calls_of_a_minute_are_exact_and_seeded)
{
  static const char *const names[] = {"o1/a1/f1", "o1/a1/f2", "o2/a2/f1"};
  static const int64_t service_ns[] = {12500000, -1, NS_PER_S};
  static const unsigned calls[3][4] = {{2, 0, 0, 1}, {0, 0, 5, 1}, {1, 0, 3, 0}};
  int64_t first_pass[13];
  for (uint64_t seed = 1; seed <= 2; seed++) {
    struct trace_options options = {.seed = seed};
    unsigned met[3][4] = {0}, rows = 0;
    struct trace_row row;
    g_autoptr(GError) error = NULL;
    struct trace_reader *reader =
        trace_open(DATA "azure_2019/invocations_per_function_md.anon.d01.csv", &options, &error);
    cr_assert(reader, "%s", error ? error->message : "");
    /* The second pass of a seed repeats the first; arrivals count from the first one, so the minute's edge is
     * moved by at most that. Reading the source itself gives absolute times. */
    const struct trace_format *format = &trace_azure_functions_2019;
    struct trace_source *source =
        format->open(format, DATA "azure_2019/invocations_per_function_md.anon.d01.csv", &options, &error);
    for (; format->next(source, &row, &error) == TRACE_ROW; rows++) {
      unsigned function = 0;
      while (strcmp(names[function], row.model) != 0)
        function++;
      met[function][row.arrival_ns / (60 * NS_PER_S)]++;
      cr_assert_eq(row.service_ns, service_ns[function]);
    }
    cr_assert_eq(rows, 13);
    cr_assert(memcmp(met, calls, sizeof met) == 0);
    format->close(source);
    unsigned equal = 0;
    for (unsigned i = 0; trace_next(reader, &row, &error) > 0; i++) {
      cr_assert_lt(i, rows);
      if (seed == 1)
        first_pass[i] = row.arrival_ns;
      equal += first_pass[i] == row.arrival_ns;
    }
    cr_assert(seed == 1 || equal < 13, "another seed, other arrivals");
    g_autofree char *notices = joined_notices(reader);
    cr_assert(strstr(notices, "3 functions, 2 of them with a duration; memory of 2 apps, 150.2 MB"), "%s",
              notices);
    cr_assert(trace_rewind(reader, &error));
    for (unsigned i = 0; seed == 1 && trace_next(reader, &row, &error) > 0; i++)
      cr_assert_eq(row.arrival_ns, first_pass[i]);
    trace_close(reader);
  }
}

Test(trace, any_csv_by_column_names)
{
  struct trace_options options = {.time_column = "start",
                                  .model_column = "endpoint",
                                  .input_column = "in",
                                  .service_column = "took",
                                  .time_unit_ns = NS_PER_MS};
  struct trace_row row;
  struct trace_reader *reader = trace_open(DATA "other.csv", &options, NULL);
  cr_assert(reader);
  cr_assert_eq(trace_next(reader, &row, NULL), 1);
  expect_row(&row, &(struct expected_row)REQUEST(0, "b", 3, -1, 8 * NS_PER_MS), "other.csv", 0);
  cr_assert_eq(trace_next(reader, &row, NULL), 1);
  expect_row(&row, &(struct expected_row)REQUEST(500 * NS_PER_MS, "a", 1, -1, 7 * NS_PER_MS), "other.csv", 1);
  trace_close(reader);
}

/* Opening and reading to the end must fail with a message that holds `expected`. */
static void expect_failure(const char *name, const char *text, const struct trace_options *options,
                           const char *expected)
{
  g_autoptr(GError) error = NULL;
  struct trace_row row;
  char *path = temporary_file(name, text, strlen(text));
  struct trace_reader *reader = trace_open(path, options, &error);
  int got = reader ? 1 : -1;
  while (got > 0)
    got = trace_next(reader, &row, &error);
  cr_assert_eq(got, -1, "expected an error: %s", expected);
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
  cr_assert(strstr(error->message, expected), "expected '%s', found '%s'", expected, error->message);
  cr_assert(!strchr(error->message, '\n'), "one line: %s", error->message);
  trace_close(reader);
  temporary_remove(path);
}

/* A file and what the refusal says. */
static const struct {
  const char *text, *expected;
} damage[] = {
    {"", "bad: expected a trace, found an empty file"},
    {"x,y\n1,2\n", "bad:1: expected a known trace layout"},
    {"arrival_s\n", "bad: expected a trace with a row, found none"},
    {"arrival_s\n1\nx\n",
     "bad:3: column 'arrival_s': expected a time that is not negative, as a decimal number, found 'x'"},
    {"arrival_s\n-1\n", "bad:2: column 'arrival_s': expected a time that is not negative"},
    {"arrival_s\nnan\n", "bad:2: column 'arrival_s'"},
    {"arrival_s\n99999999999999999999\n", "bad:2: column 'arrival_s'"},
    {"arrival_s,input_tokens\n1,2.5\n",
     "bad:2: column 'input_tokens': expected a whole number from 0 to 1000000000, found '2.5'"},
    {"arrival_s,model\n1,a\n2\n", "bad:3: expected 2 fields as in the header, found 1"},
    {"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-02-30 00:00:00,1,1\n",
     "bad:2: column 'TIMESTAMP': expected a time like"},
    {"app,func,end_timestamp,duration\na,f,1,-1\n", "bad:2: column 'duration'"},
    {"HashOwner,HashApp,HashFunction,Trigger,1,2\na,b,c,t,0,x\n",
     "bad:2: minute 2: expected a number of calls"},
    {"HashOwner,HashApp,HashFunction,Trigger,1,2\na,b,c,t,0,0\n", "bad: expected a trace with a row"},
    {"Timestamp,Model,Request tokens,Response tokens\n1,m,5,0\n",
     "found none (1 skipped: failed request (0 response tokens))"},
    {"{\"timestamp\": 1, \"input_length\": 5}\n",
     "bad:1: 'output_length': expected a whole number from 0 to 1000000000, found nothing"},
    {"{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 1}\n\n{\"timestamp\": \"1\",\n "
     "\"input_length\": 5}\n",
     "bad:3: 'timestamp': expected a time that is not negative, found '1'"},
    {"{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 1}\n{\"timestamp\": 1, \"inp",
     "bad:2: expected JSON objects"},
    {"{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 1}\n7\n", "bad:2: expected an object"},
    {"{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 1}\n[]\n",
     "bad:2: expected an object, found an array"},
    {"{\"input_length\": {]\n", "bad:1: expected JSON objects"},
    {"[{\"attempts\": [], \"submitted_time\": \"yesterday\"}]",
     "bad:1: 'submitted_time': expected a time like"},
    {"[\n{\"attempts\": 3}]", "bad:2: 'attempts': expected an array, found '3'"},
    {"[{\"attempts\": []}", "bad:1: expected"},
    {"[{\"attempts\": []}] {}", "bad:1: expected the end of the file after the array"},
    {"job_id,submission_time,duration,num_gpu\nj,1,2,-1\n",
     "bad:2: column 'num_gpu': expected a number of GPUs"},
    {"num_gpu,gpu_milli,pod_phase,creation_time,deletion_time,scheduled_time,qos\n1,1001,Running,1,2,1,"
     "LS\n",
     "bad:2: column 'gpu_milli'"},
    {"num_gpu,gpu_milli,pod_phase,creation_time,deletion_time,scheduled_time,qos\n1,1000,Running,1,2,,LS\n",
     "bad:2: column 'scheduled_time': expected a time in s of a pod that is not Pending, found ''"},
    {"num_gpu,gpu_milli,pod_phase,creation_time,deletion_time,scheduled_time,qos\n1,1000,Running,1,2,3,"
     "LS\n",
     "bad:2: column 'deletion_time': expected a time not before scheduled_time, found '2'"},
};

Test(trace, damage_is_named_with_file_and_line)
{
  for (size_t i = 0; i < G_N_ELEMENTS(damage); i++)
    expect_failure("bad", damage[i].text, NULL, damage[i].expected);
  expect_failure("bad", "arrival_s\n1\n", &(struct trace_options){.format = "nativ"},
                 "expected a trace format of native, azure-llm");
  expect_failure("bad", "a,b\n1,2\n", &(struct trace_options){.format = "muri"},
                 "bad:1: expected a column 'num_gpu' (muri), found the header 'a,b'");
  expect_failure("bad", "a,b\n1,2\n", &(struct trace_options){.time_column = "c"},
                 "expected a column 'c' (csv)");
  expect_failure("bad.csv", "a,b\n", &(struct trace_options){.format = "pai-2020"},
                 "bad.header: cannot open");
}

Test(trace, disorder_is_sorted_and_ties_keep_their_order)
{
  enum { ROWS = 5000 };
  g_autoptr(GString) text = g_string_new("arrival_s,model\n");
  struct trace_row row;
  int64_t last = -1;
  unsigned last_number = 0;
  for (unsigned i = 0; i < ROWS; i++)
    g_string_append_printf(text, "%u,m%u\n", i * 7919 % 997, i);
  char *path = temporary_file("mixed.csv", text->str, text->len);
  struct trace_reader *reader = trace_open(path, NULL, NULL);
  cr_assert(reader);
  for (unsigned i = 0; i < ROWS; i++) {
    cr_assert_eq(trace_next(reader, &row, NULL), 1);
    unsigned number = (unsigned)g_ascii_strtoull(row.model + 1, NULL, 10);
    cr_assert_eq(row.arrival_ns, (number * 7919 % 997) * NS_PER_S);
    cr_assert(row.arrival_ns > last || number > last_number);
    cr_assert(row.arrival_ns >= last);
    last = row.arrival_ns;
    last_number = number;
  }
  cr_assert_eq(trace_next(reader, &row, NULL), 0);
  g_autofree char *notices = joined_notices(reader);
  cr_assert(strstr(notices, "not in order of arrival"));
  trace_close(reader);
  temporary_remove(path);
}
