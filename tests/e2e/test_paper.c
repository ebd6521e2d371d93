/* The experiments of the paper's evaluation, as the program reads them: each begins with the command that
 * runs it, loads, and runs when shortened, completing requests; parts and results/PAPER.md name one another.
 * The whole evaluation is `make paper`. */
#include "program.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define EXPERIMENTS DM_SOURCE_DIR "/experiments/paper"

static int compare_names(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of a folder's files with the ending, sorted. */
static GPtrArray *files_of(const char *path, const char *ending)
{
  GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
  g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
  cr_assert_not_null(dir, "no folder %s", path);
  for (const char *name = g_dir_read_name(dir); name; name = g_dir_read_name(dir))
    if (g_str_has_suffix(name, ending))
      g_ptr_array_add(names, g_strdup(name));
  g_ptr_array_sort(names, compare_names);
  return names;
}

static char *text_of(const char *path)
{
  char *text = NULL;
  cr_assert(g_file_get_contents(path, &text, NULL, NULL), "cannot read %s", path);
  return text;
}

/* The trace of an experiment, if it lies outside and is not here. */
static gboolean lacks_trace(const char *text)
{
  const char *at = strstr(text, "\ntrace = ");
  if (!at)
    return FALSE;
  g_auto(GStrv) words = g_strsplit_set(at + strlen("\ntrace = "), " \n", 2);
  g_autofree char *path = g_build_filename(DM_SOURCE_DIR, words[0], NULL);
  return !g_file_test(path, G_FILE_TEST_EXISTS);
}

static void run_shortened(const char *file, const char *name)
{
  g_autoptr(Folder) folder = folder_new();
  g_autofree char *database = g_build_filename(folder, "x.db", NULL);
  /* 9 has one request a client. What 11 is about comes later than this. */
  const char *duration = g_str_has_prefix(name, "09") ? "workload.duration_s=0.001" : "workload.duration_s=2";
  g_autoptr(ProgramOutcome) ran =
      program_run(DM_SOURCE_DIR, "run", file, "--set", duration, "--set", "experiment.warmup_s=0", "--json",
                  "--quiet", "--out", database, NULL);
  cr_assert_eq(ran->status, 0, "%s: %s", name, ran->err);
  cr_expect_null(strstr(ran->out, "\"completed\": 0,"), "%s: a system completes nothing", name);
  cr_expect_not_null(strstr(ran->out, "\"failed\": 0,"), "%s: requests fail", name);
}

Test(paper, every_experiment_loads_and_runs_shortened)
{
  g_autoptr(GPtrArray) names = files_of(EXPERIMENTS, ".ini");
  cr_assert_geq(names->len, 9);
  for (guint i = 0; i < names->len; i++) {
    const char *name = names->pdata[i];
    g_autofree char *file = g_strconcat("experiments/paper/", name, NULL);
    g_autofree char *path = g_build_filename(EXPERIMENTS, name, NULL);
    g_autofree char *text = text_of(path);
    g_autofree char *command = g_strdup_printf("# build/distmind-sim run %s\n", file);
    cr_expect(g_str_has_prefix(text, "# build/distmind-sim"), "%s does not begin with its command", name);
    if (!g_str_has_prefix(text, command))
      continue; /* of another command: plan, sweep */
    g_autoptr(ProgramOutcome) printed = program_run(DM_SOURCE_DIR, "run", file, "--print-config", NULL);
    cr_assert_eq(printed->status, 0, "%s: %s", name, printed->err);
    if (lacks_trace(text))
      fprintf(stderr, "SKIPPED: no real trace for %s\n", name);
    else
      run_shortened(file, name);
  }
}

static void throughputs_of(const char *json, double *rps, int runs)
{
  for (int i = 0; i < runs; i++) {
    json = strstr(json, "\"throughput_rps\":");
    cr_assert_not_null(json);
    json += strlen("\"throughput_rps\":");
    rps[i] = g_ascii_strtod(json, NULL);
  }
}

/* Under a demand that shifts once a second a load a shift is enough, also where every model is as popular: a
 * balancer that thinks a free link slow sends requests to busy GPUs of servers that have the model in their
 * cache, and each takes the place of a model in demand. */
Test(paper, slow_shifts_cost_no_throughput)
{
  g_autoptr(Folder) folder = folder_new();
  g_autofree char *database = g_build_filename(folder, "x.db", NULL);
  g_autoptr(ProgramOutcome) ran =
      program_run(DM_SOURCE_DIR, "run", "experiments/paper/02-end-to-end.ini", "--system", "ideal,distmind",
                  "--set", "workload.zipf=0", "--set", "workload.duration_s=30", "--set",
                  "experiment.warmup_s=10", "--json", "--quiet", "--out", database, NULL);
  cr_assert_eq(ran->status, 0, "%s", ran->err);
  double rps[2];
  throughputs_of(ran->out, rps, 2);
  cr_expect_geq(rps[1], 0.99 * rps[0], "distmind %.1f/s, ideal %.1f/s", rps[1], rps[0]);
}

/* Open loop at 70% of ideal's capacity, bursts at the beginning, four of 128 models a GPU: a queue is worked
 * off by GPUs that have the models, and no load of nearly every request keeps it up. */
Test(paper, queues_do_not_turn_into_loads)
{
  g_autoptr(Folder) folder = folder_new();
  g_autofree char *database = g_build_filename(folder, "x.db", NULL);
  g_autoptr(ProgramOutcome) ran =
      program_run(DM_SOURCE_DIR, "run", "experiments/paper/02-end-to-end.ini", "--system", "ideal,distmind",
                  "--set", "workload.kind=gamma", "--set", "workload.cv=8", "--set", "workload.rate_rps=600",
                  "--set", "cluster.gpu_models_max=4", "--set", "workload.duration_s=40", "--set",
                  "experiment.warmup_s=10", "--json", "--quiet", "--out", database, NULL);
  cr_assert_eq(ran->status, 0, "%s", ran->err);
  double rps[2];
  throughputs_of(ran->out, rps, 2);
  cr_expect_geq(rps[1], 0.97 * rps[0], "distmind %.1f/s, ideal %.1f/s", rps[1], rps[0]);
}

/* The README shows what the evaluation ended with when it was run last, as results/paper/ has it. */
Test(paper, readme_shows_the_headline)
{
  g_autofree char *readme = text_of(DM_SOURCE_DIR "/README.md");
  g_autofree char *headline = text_of(DM_SOURCE_DIR "/results/paper/00-headline.txt");
  g_auto(GStrv) lines = g_strsplit(headline, "\n", -1);
  cr_assert_geq(g_strv_length(lines), 10);
  for (char **line = lines; *line; line++) {
    g_autofree char *shown = g_strdup_printf("\n    %s\n", *line);
    cr_expect(**line == '\0' || strstr(readme, shown), "README.md lacks \"%s\" (make readme renews it)",
              *line);
  }
}

/* Each part's script has its paragraph in the committed results, with figures that are there. */
Test(paper, every_part_has_its_paragraph)
{
  g_autoptr(GPtrArray) parts = files_of(DM_SOURCE_DIR "/scripts/paper", ".sh");
  g_autofree char *results = text_of(DM_SOURCE_DIR "/results/PAPER.md");
  guint numbered = 0;
  for (guint i = 0; i < parts->len; i++) {
    const char *name = parts->pdata[i];
    if (!g_ascii_isdigit(name[0]))
      continue;
    numbered++;
    guint64 number = g_ascii_strtoull(name, NULL, 10);
    g_autofree char *heading = g_strdup_printf("\n## %" G_GUINT64_FORMAT ". ", number);
    cr_expect(strstr(results, number == 0 ? "\n## Headline\n" : heading), "no paragraph of %s", name);
  }
  cr_assert_geq(numbered, 12);
  for (const char *at = strstr(results, "](paper/"); at; at = strstr(at + 1, "](paper/")) {
    g_auto(GStrv) ends = g_strsplit(at + 2, ")", 2);
    g_autofree char *figure = g_build_filename(DM_SOURCE_DIR, "results", ends[0], NULL);
    cr_expect(g_file_test(figure, G_FILE_TEST_EXISTS), "%s is not there", figure);
  }
}
