/* The comparison table and the JSON object. */
#include "harness/report.h"
#include "fixture.h"
#include "harness/json_writer.h"
#include <criterion/criterion.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <string.h>
#include <yajl/yajl_tree.h>

struct printed {
  struct report_run *runs;
  size_t count;
  gboolean colour;
};

static void print_table(FILE *out, void *data)
{
  struct printed *printed = data;
  report_table(out, printed->runs, printed->count, printed->colour);
}

static char *table_text(struct report_run *runs, size_t count, gboolean colour)
{
  return fixture_printed(print_table, &(struct printed){runs, count, colour});
}

/* The row of the table that begins with a system's name. */
static char *row_of(const char *text, const char *system)
{
  g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
  for (char **line = lines; *line; line++)
    if (g_str_has_prefix(*line, system) && (*line)[strlen(system)] == ' ')
      return g_strdup(*line);
  cr_assert_fail("no row of %s in:\n%s", system, text);
  return NULL;
}

Test(report, marks_the_best_of_those_who_compete)
{
  struct report_run runs[FIXTURE_SYSTEMS];
  fixture_runs(runs);
  g_autofree char *text = table_text(runs, FIXTURE_SYSTEMS, FALSE);
  g_autofree char *ideal = row_of(text, "ideal"), *distmind = row_of(text, "distmind"),
                  *mps = row_of(text, "mps");
  cr_assert_null(strchr(ideal, '*'), "a bound competes: %s", ideal);
  cr_assert_null(strchr(mps, '*'), "the slower one is marked: %s", mps);
  cr_assert(strstr(distmind, "49.50*") && strstr(distmind, "25.00*") && strstr(distmind, "20.20*") &&
                strstr(distmind, "80.00*"),
            "%s", distmind);
  cr_assert(strstr(distmind, "123.46 ") || g_str_has_suffix(distmind, "123.46"), "net GB: %s", distmind);
  cr_assert(strstr(text, "ideal and ideal-shared are bounds"));
}

Test(report, is_aligned_and_fits_a_screen)
{
  struct report_run runs[FIXTURE_SYSTEMS];
  fixture_runs(runs);
  runs[2].figures.requests = 27300000;
  runs[2].figures.throughput_rps = 123456.7;
  g_autofree char *text = table_text(runs, FIXTURE_SYSTEMS, FALSE);
  g_autofree char *distmind = row_of(text, "distmind"), *mps = row_of(text, "mps"),
                  *head = row_of(text, "system");
  cr_assert_leq(strlen(head), 120);
  /* The columns end where their titles end: points and marks stand under each other. */
  const char *title = strstr(head, "p99 ms");
  size_t end = (size_t)(title - head) + strlen("p99 ms");
  cr_assert(g_ascii_isdigit(distmind[end - 1]) && distmind[end] == '*', "%s\n%s", head, distmind);
  cr_assert(g_ascii_isdigit(mps[end - 1]) && mps[end] == ' ', "%s\n%s", head, mps);
}

Test(report, no_contest_no_mark)
{
  struct report_run runs[FIXTURE_SYSTEMS];
  fixture_runs(runs);
  g_autofree char *alone = table_text(runs, 2, FALSE); /* ideal and one other */
  cr_assert_null(strchr(alone, '*'));
  runs[2].figures = runs[1].figures; /* a tie of all */
  g_autofree char *tie = table_text(runs, FIXTURE_SYSTEMS, FALSE);
  cr_assert_null(strchr(tie, '*'));
  runs[2].figures.throughput_rps *= 1.0000001; /* a difference that nobody sees */
  g_autofree char *invisible = table_text(runs, FIXTURE_SYSTEMS, FALSE);
  cr_assert_null(strchr(invisible, '*'));
}

Test(report, nothing_completed_has_no_latency)
{
  struct report_run runs[FIXTURE_SYSTEMS];
  fixture_runs(runs);
  runs[2].figures = (struct figures){.requests = 5, .failed = 5};
  g_autofree char *text = table_text(runs, FIXTURE_SYSTEMS, FALSE);
  g_autofree char *mps = row_of(text, "mps");
  cr_assert(strstr(mps, " - ") && !strchr(mps, '*'), "latency 0 wins: %s", mps);
}

Test(report, prints_constants_and_notices_once)
{
  struct report_run runs[FIXTURE_SYSTEMS];
  fixture_runs(runs);
  g_autofree char *text = table_text(runs, FIXTURE_SYSTEMS, FALSE);
  cr_assert(strstr(text, "\nmps: mps_process_start_s=1.27, mps_speedup=1;1;1\n"));
  cr_assert(strstr(text, "\nnote: resnet152 uses an estimated profile\n"));
  cr_assert(strstr(text, "\nnote (mps): 3 rows skipped: no time\n"));
  char *first = strstr(text, "estimated profile");
  cr_assert_null(strstr(first + 1, "estimated profile"), "a notice is printed twice");
  g_autofree char *colour = table_text(runs, FIXTURE_SYSTEMS, TRUE);
  cr_assert(strstr(colour, "\033[1;32m49.50\033[0m") && strstr(colour, "green marks"));
}

static double number_at(yajl_val root, const char *group, const char *name)
{
  const char *path[] = {group ? group : name, group ? name : NULL, NULL};
  yajl_val value = yajl_tree_get(root, path, yajl_t_number);
  cr_assert_not_null(value, "%s %s", group ? group : "", name);
  return YAJL_GET_DOUBLE(value);
}

/* Each field of the design's section 6 is there with its value, and nothing else. */
static void check_run(yajl_val run, const struct figures *f)
{
  const struct {
    const char *group, *name;
    double value;
  } fields[] = {
      {NULL, "requests", (double)f->requests},
      {NULL, "completed", (double)f->completed},
      {NULL, "rejected", (double)f->rejected},
      {NULL, "failed", (double)f->failed},
      {NULL, "duration_s", f->duration_s},
      {NULL, "window_s", f->window_s},
      {NULL, "throughput_rps", f->throughput_rps},
      {"latency_ms", "mean", f->latency_ms.mean},
      {"latency_ms", "p50", f->latency_ms.p50},
      {"latency_ms", "p90", f->latency_ms.p90},
      {"latency_ms", "p95", f->latency_ms.p95},
      {"latency_ms", "p99", f->latency_ms.p99},
      {"latency_ms", "p999", f->latency_ms.p999},
      {"latency_ms", "max", f->latency_ms.max},
      {NULL, "slo_attainment", f->slo_attainment},
      {NULL, "gpu_utilization", f->gpu_utilization},
      {NULL, "gpu_inference", f->gpu_inference},
      {NULL, "gpu_training", f->gpu_training},
      {NULL, "gpu_held", f->gpu_held},
      {"found", "resident", (double)f->found[FOUND_RESIDENT]},
      {"found", "joined", (double)f->found[FOUND_JOINED]},
      {"found", "host", (double)f->found[FOUND_HOST]},
      {"found", "ssd", (double)f->found[FOUND_SSD]},
      {"found", "remote", (double)f->found[FOUND_REMOTE]},
      {"found", "process_start", (double)f->found[FOUND_PROCESS_START]},
      {"loads", "host", (double)f->loads_host},
      {"loads", "ssd", (double)f->loads_ssd},
      {"loads", "remote", (double)f->loads_remote},
      {"loads", "process_start", (double)f->loads_process_start},
      {NULL, "net_bytes", (double)f->net_bytes},
      {NULL, "pcie_bytes", (double)f->pcie_bytes},
      {NULL, "evictions", (double)f->evictions},
      {NULL, "host_memory_bytes", (double)f->host_memory_bytes},
      {NULL, "memory_pool_bytes", (double)f->memory_pool_bytes},
      {NULL, "training_steps", (double)f->training_steps},
      {NULL, "training_jobs", (double)f->training_jobs},
      {NULL, "events", (double)f->events},
      {NULL, "wall_s", f->wall_s},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
    cr_assert_eq(number_at(run, fields[i].group, fields[i].name), fields[i].value, "%s", fields[i].name);
  cr_assert_eq(YAJL_GET_OBJECT(run)->len, 1 + 21 + 3); /* system, numbers, and three objects */
}

Test(report, json_has_every_field)
{
  struct report_run runs[FIXTURE_SYSTEMS];
  fixture_runs(runs);
  g_autofree char *text = report_json(runs, FIXTURE_SYSTEMS);
  char message[200];
  yajl_val root = yajl_tree_parse(text, message, sizeof message);
  cr_assert_not_null(root, "%s", message);
  cr_assert(g_str_has_suffix(text, "}\n"));
  const char *seed_path[] = {"seed", NULL}, *runs_path[] = {"runs", NULL},
             *backend_path[] = {"backend", NULL};
  cr_assert_str_eq(YAJL_GET_NUMBER(yajl_tree_get(root, seed_path, yajl_t_number)), "18446744073709551615");
  cr_assert_str_eq(YAJL_GET_STRING(yajl_tree_get(root, backend_path, yajl_t_string)), "sim");
  yajl_val list = yajl_tree_get(root, runs_path, yajl_t_array);
  cr_assert_eq(YAJL_GET_ARRAY(list)->len, FIXTURE_SYSTEMS);
  for (size_t i = 0; i < FIXTURE_SYSTEMS; i++)
    check_run(YAJL_GET_ARRAY(list)->values[i], &runs[i].figures);
  yajl_tree_free(root);
}

Test(report, json_is_the_same_in_every_locale)
{
  struct report_run runs[FIXTURE_SYSTEMS];
  fixture_runs(runs);
  g_autofree char *before = report_json(runs, FIXTURE_SYSTEMS);
  if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "de_DE.utf8"))
    cr_skip("no German locale on this machine");
  g_autofree char *after = report_json(runs, FIXTURE_SYSTEMS);
  cr_assert_str_eq(before, after);
}

Test(report, numbers_are_shortest_and_read_back)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  cr_assert_str_eq(real_format(0.1, text), "0.1");
  cr_assert_str_eq(real_format(60, text), "60");
  cr_assert_str_eq(real_format(-0.0, text), "0");
  cr_assert_str_eq(real_format(1.0 / 3, text), "0.3333333333333333");
  cr_assert_str_eq(real_format(5e-324, text), "4.94065645841247e-324");
  uint64_t bits = 88172645463325252ULL;
  for (int i = 0; i < 100000; i++) {
    bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
    double value;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value))
      continue;
    cr_assert_eq(g_ascii_strtod(real_format(value, text), NULL), value);
  }
}
