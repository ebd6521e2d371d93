/* `sweep`: an experiment over a product of settings, on all cores; see sweep.h. */
#include "backend_sim/command_sweep.h"

#include "backend_sim/sweep_options.h"
#include "backend_sim/sweep_run.h"
#include "core/error.h"
#include "harness/shown.h"
#include "harness/store_schema.h"
#include "harness/sweep_view.h"

struct arguments {
  struct sweep_options sweep;
  char *slurm_options, **slurm_words, *share; /* words: the options as a shell splits them */
  gboolean slurm, detach, merge;
};

/* --- what is shown
 * -----------------------------------------------------------------------------------------------------*/

static GPtrArray *failures_of(const struct sweep *sweep)
{
  GPtrArray *failures = g_ptr_array_new_with_free_func((GDestroyNotify)sweep_failure_free);
  for (uint64_t i = 0; i < sweep->count; i++) {
    if (sweep->task[i].state != TASK_FAILED)
      continue;
    struct sweep_failure *failure = g_new0(struct sweep_failure, 1);
    failure->system = g_strdup(sweep_task_system(sweep, i));
    failure->error = g_strdup(sweep->task[i].error);
    failure->values = g_new0(char *, sweep->axes->len + 1);
    for (guint a = 0; a < sweep->axes->len; a++) {
      const struct axis *axis = sweep->axes->pdata[a];
      failure->values[a] = g_strdup(axis->values[axes_index(sweep->axes, i / sweep->system_count, a)]);
    }
    g_ptr_array_add(failures, failure);
  }
  return failures;
}

static void report_failures(const struct sweep *sweep)
{
  for (uint64_t i = 0; i < sweep->count; i++) {
    if (sweep->task[i].state != TASK_FAILED)
      continue;
    g_autofree char *name = sweep_task_name(sweep, i);
    g_autofree char *failure = g_strdup_printf("%s: %s", name, sweep->task[i].error),
                    *shown = shown_text(failure);
    fprintf(stderr, "%s: failed at %s\n", g_get_prgname(), shown);
  }
}

static struct sweep_view *view_of(const struct sweep *sweep, GError **error)
{
  if (sweep_count(sweep, TASK_STORED) + sweep_count(sweep, TASK_WRITTEN) == 0)
    return sweep_view_empty(sweep->axes, sweep->count);
  g_autoptr(StoreReader) reader = store_open(sweep->out, error);
  return reader ? sweep_view_read(reader, error) : NULL;
}

static gboolean show(const struct sweep *sweep, const struct sweep_options *o, GError **error)
{
  g_autoptr(SweepView) view = view_of(sweep, error);
  if (!view)
    return FALSE;
  if (o->json) {
    g_autoptr(GPtrArray) failures = failures_of(sweep);
    g_autofree char *text = sweep_view_json(view, failures);
    fputs(text, stdout);
  } else if (view->runs->len > 0) {
    sweep_view_table(view, stdout);
    printf("\nresults: %s\n", sweep->out);
  }
  fflush(stdout);
  report_failures(sweep);
  return TRUE;
}

/* What is left undone becomes the exit status. */
static gboolean verdict(const struct sweep *sweep, gboolean interrupted, GError **error)
{
  uint64_t failed = sweep_count(sweep, TASK_FAILED), open = sweep_count(sweep, TASK_OPEN);
  if (interrupted && open > 0)
    g_set_error(error, DM_ERROR, DM_ERROR_INTERRUPTED,
                "interrupted: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                " runs are kept; the same command goes on with the rest",
                sweep->count - failed - open, sweep->count);
  else if (failed + open > 0)
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED,
                "%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                " runs failed; the same command tries them again",
                failed + open, sweep->count);
  return failed + open == 0;
}

static gboolean conclude(struct sweep *sweep, const struct sweep_options *o, gboolean interrupted,
                         GError **error)
{
  return sweep_close(sweep, error) && show(sweep, o, error) && verdict(sweep, interrupted, error);
}

/* --- on a cluster
 * ------------------------------------------------------------------------------------------------------*/

static void add_option(GPtrArray *command, const char *name, const char *value)
{
  if (!value)
    return;
  g_ptr_array_add(command, g_strdup(name));
  g_ptr_array_add(command, g_strdup(value));
}

/* This program with what makes the same sweep. */
static char **same_command(const struct sweep *sweep, const struct sweep_options *o)
{
  GPtrArray *command = g_ptr_array_new();
  char *program = g_file_read_link("/proc/self/exe", NULL);
  g_ptr_array_add(command, program ? program : g_strdup(g_get_prgname()));
  g_ptr_array_add(command, g_strdup("sweep"));
  gboolean option =
      *sweep->experiment == '-'; /* what follows has options too, so that no "--" can be put before it */
  g_ptr_array_add(command, g_strconcat(option ? "./" : "", sweep->experiment, NULL));
  for (char **vary = o->vary; vary && *vary; vary++)
    add_option(command, "--vary", *vary);
  for (char **set = o->set; set && *set; set++)
    add_option(command, "--set", *set);
  add_option(command, "--system", o->system);
  add_option(command, "--trace", o->trace);
  add_option(command, "--out", sweep->out);
  g_autofree char *repeat = o->repeat > 0 ? g_strdup_printf("%d", o->repeat) : NULL;
  add_option(command, "--seed", o->seed);
  add_option(command, "--repeat", repeat);
  g_ptr_array_add(command, NULL);
  return (char **)g_ptr_array_free(command, FALSE);
}

static gboolean run_on_slurm(struct sweep *sweep, const struct arguments *a,
                             volatile sig_atomic_t *interrupted, GError **error)
{
  g_auto(GStrv) command = same_command(sweep, &a->sweep);
  struct slurm_options options = {.command = command,
                                  .options = a->slurm_words,
                                  .detach = a->detach,
                                  .quiet = a->sweep.quiet || a->sweep.json};
  g_autofree char *job = NULL;
  if (!sweep_run_slurm(sweep, &options, interrupted, &job, error)) {
    if (sweep_count(sweep, TASK_WRITTEN) == 0) /* no job, no result: nothing to go on with */
      sweep_close(sweep, NULL);
    return FALSE;
  }
  if (!a->detach || !job)
    return conclude(sweep, &a->sweep, *interrupted != 0, error);
  printf("submitted job %s: %" G_GUINT64_FORMAT
         " runs; once it has ended, merge them by the same command with "
         "--merge for --slurm --detach\n",
         job, sweep_count(sweep, TASK_OPEN));
  return TRUE;
}

/* What a detached job did; nothing is lost where it is not done yet. */
static gboolean merge_only(struct sweep *sweep, const struct arguments *a, GError **error)
{
  if (!sweep_reopen(sweep, error))
    return FALSE;
  uint64_t open = sweep_count(sweep, TASK_OPEN);
  if (open == 0)
    return conclude(sweep, &a->sweep, FALSE, error);
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED,
              "%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
              " runs are not there yet; nothing was merged (without --merge, they are run here)",
              open, sweep->count);
  return FALSE;
}

static gboolean run_sweep(struct sweep *sweep, const struct arguments *a, GError **error)
{
  const struct sweep_options *o = &a->sweep;
  if (!a->share && !a->merge && (!sweep_check(sweep, error) || !sweep_check_fit(sweep, error)))
    return FALSE;
  volatile sig_atomic_t *interrupted = sweep_catch_signals();
  if (a->share)
    return sweep_run_share(sweep, a->share, sweep_jobs(o), interrupted, error);
  if (a->merge)
    return merge_only(sweep, a, error);
  if (!sweep_open(sweep, o->force, error))
    return FALSE;
  sweep_retry(sweep);
  if (a->slurm)
    return run_on_slurm(sweep, a, interrupted, error);
  return sweep_run(sweep, sweep_jobs(o), o->quiet || o->json, interrupted, error) &&
         conclude(sweep, o, *interrupted != 0, error);
}

static gboolean split_options(struct arguments *a, GError **error)
{
  g_autoptr(GError) failure = NULL;
  if (!a->slurm_options || g_shell_parse_argv(a->slurm_options, NULL, &a->slurm_words, &failure) ||
      g_error_matches(failure, G_SHELL_ERROR, G_SHELL_ERROR_EMPTY_STRING))
    return TRUE;
  return input_error(error, "--slurm-options", 0, "%s", failure->message);
}

static gboolean check(const struct arguments *a, GError **error)
{
  if (!a->sweep.vary && a->sweep.repeat == 0)
    return input_error(error, NULL, 0,
                       "sweep: expected --vary KEY=A,B or --repeat N; `%s sweep --help` shows how",
                       g_get_prgname());
  if ((a->slurm_options || a->detach) && !a->slurm)
    return input_error(error, NULL, 0, "sweep: --slurm-options and --detach are for --slurm");
  if (a->slurm + a->merge + (a->share != NULL) > 1)
    return input_error(error, NULL, 0, "sweep: --slurm, --merge and --share exclude each other");
  if (a->merge && a->sweep.force)
    return input_error(error, NULL, 0, "sweep: --merge and --force exclude each other");
  if (a->slurm && a->sweep.jobs > 0)
    return input_error(
        error, NULL, 0,
        "sweep: --jobs is of this machine; with --slurm, give --slurm-options --cpus-per-task=N");
  return TRUE;
}

static gboolean sweep_command(int argc, char **argv, GError **error)
{
  struct arguments a = {.slurm = FALSE};
  const GOptionEntry own[] = {
      {"repeat", 0, 0, G_OPTION_ARG_FILENAME, &a.sweep.repeat_text, NULL, NULL},
      {"slurm", 0, 0, G_OPTION_ARG_NONE, &a.slurm, NULL, NULL},
      {"slurm-options", 0, 0, G_OPTION_ARG_FILENAME, &a.slurm_options, NULL, NULL},
      {"detach", 0, 0, G_OPTION_ARG_NONE, &a.detach, NULL, NULL},
      {"merge", 0, 0, G_OPTION_ARG_NONE, &a.merge, NULL, NULL},
      {"share", 0, 0, G_OPTION_ARG_FILENAME, &a.share, NULL, NULL},
      {NULL},
  };
  g_autoptr(GArray) entries = sweep_option_entries(&a.sweep, own);
  g_auto(GStrv) files = command_options(argc, argv, (const GOptionEntry *)(const void *)entries->data, error);
  gboolean good = files &&
                  command_arguments(argv, files, 1, 1, "one EXPERIMENT.ini and --vary KEY=A,B", error) &&
                  sweep_options_numbers(&a.sweep, error) && check(&a, error) && split_options(&a, error);
  g_autoptr(Sweep) sweep = good ? sweep_from_options(&a.sweep, files[0], "sweep", error) : NULL;
  good = sweep && run_sweep(sweep, &a, error);
  sweep_options_clear(&a.sweep);
  g_free(a.slurm_options);
  g_strfreev(a.slurm_words);
  g_free(a.share);
  return good;
}

const struct command command_sweep = {
    .name = "sweep",
    .summary = "an experiment over a product of settings, on all cores, into one database",
    .run = sweep_command,
    .help =
        "sweep EXPERIMENT.ini --vary KEY=A,B,C [--vary KEY=...]... [--system A,B] [--set S.K=V]...\n"
        "           [--trace FILE] [--seed N] [--repeat N] [--out FILE.db] [--force] [--jobs N] [--json] "
        "[--quiet]\n"
        "           [--slurm [--slurm-options TEXT] [--detach]] [--merge]\n"
        "\n"
        "Runs the experiment at every point of the product of the --vary options, under each of its "
        "systems,\n"
        "each run in a process of its own, and prints one line a run. Systems at one point see the same "
        "load.\n"
        "\n"
        "  --vary KEY=LIST   values of SECTION.KEY, separated by commas; a..b counts from a to b, a..b/step "
        "in\n"
        "                    steps, a..b*factor multiplies; {a,b} or {0..1} is one value as it stands\n"
        "  --repeat N        every point with N seeds, from the experiment's own on\n"
        "  --out FILE.db     result database; default results/NAME-sweep.db\n"
        "  --force           begins anew over what is there\n" SWEEP_OPTIONS_HELP
        "  --slurm           as a job array of the Slurm cluster that sbatch submits to: every node must see "
        "this\n"
        "                    folder and this program under the same path; waits, then merges\n"
        "  --slurm-options T more options of sbatch, as in \"--partition=short --cpus-per-task=4\"\n"
        "  --detach          with --slurm: does not wait\n"
        "  --merge           runs nothing: merges what a detached job did, once all is there\n"
        "  --share K/N       what an element of the array is called with\n"
        "\n"
        "The database is that of `run` (results/README.md), a row of table run for each run, and a row of\n"
        "table setting for each of its settings. It holds figures only: for rows of requests or the usage\n"
        "series, --set output.requests=all or --set output.usage=all.\n"
        "\n"
        "While it goes on, finished runs lie in FILE.db.tasks. The same command, after Ctrl-C (exit status "
        "130),\n"
        "a kill, or a run that failed (exit status 1; the others are done), does what is left and no more. "
        "With\n"
        "another experiment, program, --set or --vary it is refused unless --force is given.\n"
        "\n"
        "examples:\n"
        "  distmind-sim sweep experiments/quickstart.ini --vary workload.speedup=0.8..1.6/0.2 --system "
        "distmind,mps\n"
        "  distmind-sim sweep experiments/quickstart.ini --vary cluster.gpu_servers=1,2,4 --vary "
        "cluster.gpu_model_gb=4..16*2 --out g.db\n"
        "  sqlite3 g.db \"SELECT value, system, throughput_rps FROM run JOIN setting ON run = id WHERE key = "
        "'cluster.gpu_servers'\"\n"
        "  distmind-sim plot g.db sweep --y latency_ms.p99 -o p99.svg\n",
};
