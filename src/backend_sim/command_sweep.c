/* `sweep`: an experiment over a product of settings, on all cores; see sweep.h. */
#include "backend_sim/command_sweep.h"

#include "backend_sim/pool.h"
#include "backend_sim/sweep_options.h"
#include "core/error.h"
#include "harness/progress.h"
#include "harness/store_schema.h"
#include "harness/sweep_view.h"

struct job {
  struct sweep *sweep;
  struct progress *progress;
  uint64_t next, ended, open; /* open: when it began */
};

/* --- the pool's view
 * ---------------------------------------------------------------------------------------------------*/

static int64_t job_next(void *context)
{
  struct job *job = context;
  while (job->next < job->sweep->count && job->sweep->task[job->next].state != TASK_OPEN)
    job->next++;
  return job->next < job->sweep->count ? (int64_t)job->next++ : POOL_NONE;
}

static gboolean job_run(void *context, uint64_t task, GError **error)
{
  return sweep_run_task(((struct job *)context)->sweep, task, error);
}

static void job_ended(void *context, uint64_t task, const char *failure, G_GNUC_UNUSED gboolean input)
{
  struct job *job = context;
  sweep_task_ended(job->sweep, task, failure);
  job->ended++;
}

static void job_tick(void *context)
{
  struct job *job = context;
  progress_share(job->progress, (double)job->ended / (double)MAX(job->open, 1));
}

static const struct pool_ops job_ops = {
    .next = job_next, .run = job_run, .ended = job_ended, .tick = job_tick};

static gboolean run_tasks(struct sweep *sweep, const struct sweep_options *o,
                          volatile sig_atomic_t *interrupted, GError **error)
{
  struct job job = {.sweep = sweep, .open = sweep_count(sweep, TASK_OPEN)};
  g_autofree char *label = g_strdup_printf("%" G_GUINT64_FORMAT " runs", job.open);
  job.progress = progress_new(0, label, o->quiet || o->json);
  gboolean good = pool_run(&job_ops, &job, sweep_jobs(o), interrupted, error);
  progress_free(job.progress);
  return good;
}

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
    fprintf(stderr, "%s: failed at %s: %s\n", g_get_prgname(), name, sweep->task[i].error);
  }
}

static struct sweep_view *view_of(const struct sweep *sweep, GError **error)
{
  if (sweep_count(sweep, TASK_STORED) + sweep_count(sweep, TASK_FILED) == 0)
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

static gboolean run_sweep(struct sweep *sweep, const struct sweep_options *o, GError **error)
{
  volatile sig_atomic_t *interrupted = sweep_catch_signals();
  return sweep_open(sweep, o->force, error) && run_tasks(sweep, o, interrupted, error) &&
         sweep_close(sweep, error) && show(sweep, o, error) && verdict(sweep, *interrupted != 0, error);
}

static gboolean sweep_command(int argc, char **argv, GError **error)
{
  struct sweep_options o = {.seed = -1};
  const GOptionEntry own[] = {{"repeat", 0, 0, G_OPTION_ARG_INT, &o.repeat, NULL, NULL}, {NULL}};
  g_autoptr(GArray) entries = sweep_option_entries(&o, own);
  g_auto(GStrv) files = command_options(argc, argv, (const GOptionEntry *)(const void *)entries->data, error);
  gboolean good =
      files && command_arguments(argv, files, 1, 1, "one EXPERIMENT.ini and --vary KEY=A,B", error);
  if (good && !o.vary && o.repeat == 0)
    good = input_error(error, NULL, 0,
                       "sweep: expected --vary KEY=A,B or --repeat N; `%s sweep --help` shows how",
                       g_get_prgname());
  g_autoptr(Sweep) sweep = good ? sweep_from_options(&o, files[0], "sweep", error) : NULL;
  good = sweep && run_sweep(sweep, &o, error);
  sweep_options_clear(&o);
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
        "  --force           begins anew over what is there\n" SWEEP_OPTIONS_HELP "\n"
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
        "  distmind-sim sweep experiments/quickstart.ini --vary workload.load=0.5..0.9/0.1 --system "
        "distmind,mps\n"
        "  distmind-sim sweep experiments/quickstart.ini --vary cluster.gpu_servers=1,2,4 --vary "
        "cluster.gpu_model_gb=4..16*2 --out g.db\n"
        "  sqlite3 g.db \"SELECT value, system, throughput_rps FROM run JOIN setting ON run = id WHERE key = "
        "'cluster.gpu_servers'\"\n"
        "  distmind-sim plot g.db sweep --y latency_ms.p99 -o p99.svg\n",
};
