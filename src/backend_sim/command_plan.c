/* `plan`: the least value of a key for which a figure holds; see plan.h. */
#include "backend_sim/command_sweep.h"

#include <string.h>

#include "backend_sim/plan.h"
#include "backend_sim/sweep_options.h"
#include "core/error.h"
#include "harness/output_file.h"
#include "harness/plot.h"
#include "harness/shown.h"
#include "harness/store_schema.h"

struct arguments {
  struct sweep_options sweep;
  char **hold, *plot;
  gboolean most;
};

/* Whether a run in OUT uses estimated profiles. */
static gboolean uses_estimates(const struct sweep *sweep)
{
  if (sweep_count(sweep, TASK_STORED) + sweep_count(sweep, TASK_WRITTEN) == 0)
    return FALSE;
  g_autoptr(StoreReader) reader = store_open(sweep->out, NULL);
  g_autoptr(GPtrArray) runs = reader ? store_runs(reader, NULL) : NULL;
  for (guint i = 0; runs && i < runs->len; i++)
    if (strstr(((const struct stored_run *)runs->pdata[i])->notices, "estimated"))
      return TRUE;
  return FALSE;
}

static void show(const struct plan *plan, const struct arguments *a)
{
  const char *name = plan->sweep->name;
  if (a->sweep.json) {
    g_autofree char *text = plan_json(plan, name);
    fputs(text, stdout);
  } else {
    printf("%s: ", name);
    plan_table(plan, stdout);
    if (g_file_test(plan->sweep->out, G_FILE_TEST_EXISTS))
      printf("\nresults: %s\n", plan->sweep->out);
  }
}

/* Points that could not be set up are part of the answer; a run that failed is not. */
static gboolean check_failures(const struct plan *plan, GError **error)
{
  uint64_t failed = 0;
  fflush(stdout);
  for (uint64_t i = 0; i < plan->sweep->count; i++) {
    if (plan->sweep->task[i].state != TASK_FAILED || plan->task[i].infeasible || !plan->task[i].asked)
      continue;
    g_autofree char *name = sweep_task_name(plan->sweep, i);
    g_autofree char *failure = g_strdup_printf("%s: %s", name, plan->sweep->task[i].error),
                    *shown = shown_text(failure);
    fprintf(stderr, "%s: failed at %s\n", g_get_prgname(), shown);
    failed++;
  }
  if (failed == 0)
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED,
              "%" G_GUINT64_FORMAT
              " runs failed and were taken not to hold; the same command tries them again",
              failed);
  return FALSE;
}

static gboolean conclude(struct plan *plan, const struct arguments *a, gboolean done, GError **error)
{
  plan_forget_guesses(plan);
  if (!sweep_close(plan->sweep, error))
    return FALSE;
  if (!done) {
    g_set_error(error, DM_ERROR, DM_ERROR_INTERRUPTED,
                "interrupted: what was run is kept; the same command goes on with the rest");
    return FALSE;
  }
  show(plan, a);
  /* A run that failed would be drawn as one that does not hold. */
  return check_failures(plan, error) &&
         (!a->plot || plan_plot(plan, plan->sweep->name, uses_estimates(plan->sweep), a->plot, error));
}

static gboolean run_plan(struct sweep *sweep, const struct hold *hold, const struct arguments *a,
                         GError **error)
{
  if (!plan_check(sweep, error) || !sweep_check(sweep, error))
    return FALSE;
  volatile sig_atomic_t *interrupted = sweep_catch_signals();
  if (!output_files_differ(sweep->out, a->plot, error) || !sweep_open(sweep, a->sweep.force, error))
    return FALSE;
  sweep_retry(sweep);
  g_autoptr(Plan) plan = plan_new(sweep, hold, a->most, error);
  return plan && plan_run(plan, sweep_jobs(&a->sweep), a->sweep.quiet || a->sweep.json, interrupted, error) &&
         conclude(plan, a, plan_is_done(plan), error);
}

static gboolean check(const struct arguments *a, GError **error)
{
  if (!a->sweep.vary)
    return input_error(error, NULL, 0, "plan: expected --vary KEY=A..B; `%s plan --help` shows how",
                       g_get_prgname());
  if (!a->hold)
    return input_error(error, NULL, 0,
                       "plan: expected --hold FIGURE>=X or FIGURE<=X; `%s plan --help` shows how",
                       g_get_prgname());
  if (a->hold[1])
    return input_error(error, NULL, 0, "plan: expected one --hold, found %u", g_strv_length(a->hold));
  return !a->plot || plot_output_check(a->plot, error);
}

static gboolean plan_command(int argc, char **argv, GError **error)
{
  struct arguments a = {.hold = NULL};
  const GOptionEntry own[] = {{"hold", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &a.hold, NULL, NULL},
                              {"plot", 0, 0, G_OPTION_ARG_FILENAME, &a.plot, NULL, NULL},
                              {"most", 0, 0, G_OPTION_ARG_NONE, &a.most, NULL, NULL},
                              {NULL}};
  struct hold hold = {.name = NULL};
  g_autoptr(GArray) entries = sweep_option_entries(&a.sweep, own);
  g_auto(GStrv) files = command_options(argc, argv, (const GOptionEntry *)(const void *)entries->data, error);
  gboolean good =
      files && command_arguments(argv, files, 1, 1, "one EXPERIMENT.ini, --vary and --hold", error) &&
      sweep_options_numbers(&a.sweep, error) && check(&a, error) && hold_parse(a.hold[0], &hold, error);
  g_autoptr(Sweep) sweep = good ? sweep_from_options(&a.sweep, files[0], "plan", error) : NULL;
  good = sweep && run_plan(sweep, &hold, &a, error);
  sweep_options_clear(&a.sweep);
  g_strfreev(a.hold);
  g_free(a.plot);
  g_free(hold.name);
  return good;
}

const struct command command_plan = {
    .name = "plan",
    .summary = "the least value of a key (GPU servers, say) for which a figure of the run holds",
    .run = plan_command,
    .help =
        "plan EXPERIMENT.ini --vary KEY=A..B --hold FIGURE>=X [--vary KEY=...]... [--most] [--system A,B]\n"
        "           [--set S.K=V]... [--trace FILE] [--seed N] [--out FILE.db] [--force] [--jobs N]\n"
        "           [--plot FILE.{svg,png,pdf}] [--json] [--quiet]\n"
        "\n"
        "Finds, for each system, the least value of a key for which a figure holds: how few GPU servers "
        "meet\n"
        "the SLO? It bisects, looks at two neighbours on each side of the answer, goes on below while one\n"
        "there holds too, and says so if a greater value that it met does not hold (\"not monotone\").\n"
        "\n"
        "  --vary KEY=LIST   the first: the key in question, ascending values as in `sweep`; words are taken "
        "in\n"
        "                    the order given. Others: an answer for each of their settings\n"
        "  --hold FIGURE>=X  or <=X; any number of the JSON object of `run`: slo_attainment, latency_ms.p99, "
        "…\n"
        "  --most            the greatest value that holds instead\n"
        "  --plot FILE       the figure over the key, a line a system, the answers ringed\n"
        "  --out FILE.db     database of the points tried, as `sweep` has it; default results/NAME-plan.db\n"
        "  --force           begins anew over what is there\n" SWEEP_OPTIONS_HELP "\n"
        "A value with which a system cannot be set up (too little memory, say) does not hold. That none "
        "holds\n"
        "is an answer (exit status 0). Points that a killed or interrupted plan ran, or one with another "
        "--hold\n"
        "and the same --out, are not run again. The answer does not depend on --jobs.\n"
        "\n"
        "examples:\n"
        "  distmind-sim plan experiments/quickstart.ini --vary cluster.gpu_servers=1..64 --hold "
        "'slo_attainment>=0.99'\n"
        "  distmind-sim plan experiments/quickstart.ini --vary workload.speedup=0.8..1.4/0.05 --hold "
        "'latency_ms.p99<=500' --most\n",
};
