/* The command `trace` as a user runs it: shipped traces come out byte for byte, conversion keeps every row,
 * wrong use is one line, nothing half-written stays. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <string.h>

#include "core/error.h"
#include "harness/command.h"
#include "harness/trace_summary.h"
#include "temporary.h"

#define DATA DM_SOURCE_DIR "/tests/harness/data/"

static gboolean run_words(GError **error, const char *const *words)
{
  char *argv[16] = {"trace"};
  int argc = 1;
  for (; words[argc - 1]; argc++)
    argv[argc] = (char *)words[argc - 1];
  return command_trace.run(argc, argv, error);
}

#define RUN(error, ...) run_words(error, (const char *const[]){__VA_ARGS__, NULL})

static void expect_failure(const char *expected, const GError *error, gboolean done)
{
  cr_assert(!done, "expected an error: %s", expected);
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
  cr_assert(strstr(error->message, expected), "expected '%s', found '%s'", expected, error->message);
}

static void redirect(void)
{
  cr_redirect_stdout();
}

/* A path in a new folder where nothing is yet. */
static char *new_path(void)
{
  char *path = temporary_file("out.csv", "", 0);
  g_unlink(path);
  return path;
}

Test(command_trace, shipped_trace_is_what_its_spec_gives, .init = redirect)
{
  g_autoptr(GError) error = NULL;
  g_autofree char *made = NULL, *shipped = NULL;
  gsize made_length, shipped_length;
  char *out = new_path();
  cr_assert(RUN(&error, "synth", DM_SOURCE_DIR "/traces/quickstart.ini", "-o", out), "%s",
            error ? error->message : "");
  cr_assert(g_file_get_contents(out, &made, &made_length, NULL));
  cr_assert(g_file_get_contents(DM_SOURCE_DIR "/traces/quickstart.csv", &shipped, &shipped_length, NULL));
  cr_assert_eq(made_length, shipped_length);
  cr_assert(memcmp(made, shipped, made_length) == 0);
  expect_failure("exists already; give another name, or --force to replace it", error,
                 RUN(&error, "synth", DM_SOURCE_DIR "/traces/quickstart.ini", "-o", out));
  g_clear_error(&error);
  cr_assert(
      RUN(&error, "synth", DM_SOURCE_DIR "/traces/quickstart.ini", "--seed", "9", "-o", out, "--force"));
  g_free(g_steal_pointer(&made));
  cr_assert(g_file_get_contents(out, &made, &made_length, NULL));
  cr_assert(made_length != shipped_length || memcmp(made, shipped, made_length) != 0,
            "another seed, another trace");
  temporary_remove(out);
}

/* Both files hold the same rows. */
static void expect_same_rows(const char *original, const char *converted)
{
  struct trace_reader *left = trace_open(original, NULL, NULL), *right = trace_open(converted, NULL, NULL);
  struct trace_row a, b;
  cr_assert(left && right);
  cr_assert_str_eq(trace_format_name(right), "native");
  cr_assert_eq(trace_kind(left), trace_kind(right));
  for (;;) {
    int got = trace_next(left, &a, NULL);
    cr_assert_eq(got, trace_next(right, &b, NULL));
    if (got <= 0)
      break;
    cr_assert(a.arrival_ns == b.arrival_ns && a.input_tokens == b.input_tokens &&
              a.output_tokens == b.output_tokens && a.service_ns == b.service_ns && a.gpus == b.gpus &&
              a.duration_ns == b.duration_ns);
    cr_assert(g_strcmp0(a.model, b.model) == 0);
  }
  trace_close(left);
  trace_close(right);
}

Test(command_trace, conversion_keeps_every_row, .init = redirect)
{
  static const char *const files[] = {"native.csv",
                                      "azure_llm_2024.csv",
                                      "azure_functions_2021.csv",
                                      "mooncake.jsonl",
                                      "philly.json",
                                      "openb_pods.csv",
                                      "pai_task_table.csv",
                                      "azure_2019/invocations_per_function_md.anon.d01.csv"};
  for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_strconcat(DATA, files[i], NULL);
    char *out = new_path();
    /* trace_open without options draws minutes with seed 0. */
    cr_assert(RUN(&error, "convert", path, "--out", out, "--seed", "0"), "%s: %s", files[i],
              error ? error->message : "");
    expect_same_rows(path, out);
    temporary_remove(out);
  }
}

Test(command_trace, wrong_use_is_one_line_and_leaves_nothing, .init = redirect)
{
  g_autoptr(GError) error = NULL;
  char *out = new_path();
  char *bad = temporary_file("bad.csv", "arrival_s,input_tokens\n1,1\n2,x\n", 31);
  g_autofree char *partial = g_strconcat(out, ".partial", NULL);
  struct {
    const char *words[6];
    const char *expected;
  } cases[] = {
      {{NULL}, "trace: expected info, convert or synth"},
      {{"inof", NULL}, "nearest is 'info'"},
      {{"info", NULL}, "trace info: expected one FILE, found 0"},
      {{"info", "a", "b", NULL}, "trace info: expected one FILE, found 2"},
      {{"info", "--no-such", NULL}, "trace info: Unknown option --no-such"},
      {{"info", "/no/such/file", NULL}, "/no/such/file: cannot open: No such file"},
      {{"info", bad, "--seed", "x", NULL}, "--seed: expected a whole number, found 'x'"},
      {{"info", bad, "--time-unit", "ms", NULL}, "need --time-column"},
      {{"info", bad, NULL}, ":3: column 'input_tokens'"},
      {{"convert", bad, NULL}, "trace convert: expected -o OUT"},
      {{"convert", bad, "-o", out, NULL}, ":3: column 'input_tokens'"},
      {{"convert", DATA "openb_nodes.csv", "-o", out, NULL},
       "expected requests or jobs, found a list of nodes"},
      {{"synth", bad, "-o", out, NULL}, "bad.csv:1:"},
      {{"convert", DATA "native.csv", "-o", "/no/such/folder/out.csv", NULL}, "cannot write"},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
    gboolean done = run_words(&error, cases[i].words);
    expect_failure(cases[i].expected, error, done);
    cr_assert(!strchr(error->message, '\n'));
    cr_assert(!g_file_test(out, G_FILE_TEST_EXISTS) && !g_file_test(partial, G_FILE_TEST_EXISTS));
    g_clear_error(&error);
  }
  temporary_remove(bad);
  temporary_remove(out);
}

Test(command_trace, info_as_json, .init = redirect)
{
  g_autoptr(GError) error = NULL;
  cr_assert(RUN(&error, "info", DATA "openb_pods.csv", "--json"), "%s", error ? error->message : "");
  FILE *out = cr_get_redirected_stdout();
  char text[8192] = {0};
  cr_assert_gt(fread(text, 1, sizeof text - 1, out), 0);
  cr_assert(strstr(text, "\"rows\": 2"), "%s", text);
  cr_assert(strstr(text, "\"Pending, no scheduled_time\": 2"), "%s", text);
  cr_assert(strstr(text, "\"gap_cv\": null"), "%s", text);
}

Test(command_trace, help_teaches, .init = redirect)
{
  g_autoptr(GError) error = NULL;
  cr_assert(RUN(&error, "--help") && RUN(&error, "info", "--help") && RUN(&error, "convert", "-h") &&
            RUN(&error, "synth", "--help"));
  FILE *out = cr_get_redirected_stdout();
  char text[32768] = {0};
  cr_assert_gt(fread(text, 1, sizeof text - 1, out), 0);
  cr_assert(strstr(text, "azure-functions-2019") && strstr(text, "--time-column") &&
            strstr(text, "zipf = 0.9"));
}

Test(command_trace, zipf_fit_finds_the_exponent)
{
  uint64_t counts[500];
  for (int i = 0; i < 500; i++)
    counts[i] = (uint64_t)(1e9 / (i + 1));
  cr_assert_float_eq(zipf_fit(counts, 500), 1, 1e-3);
  for (int i = 0; i < 500; i++)
    counts[i] = 7;
  cr_assert_float_eq(zipf_fit(counts, 500), 0, 1e-6);
  cr_assert(zipf_fit(counts, 1) != zipf_fit(counts, 1), "NaN");
}
