/* Options of `sweep` and `plan`; see sweep_options.h. */
#include "backend_sim/sweep_options.h"

#include "backend_sim/pool.h"
#include "harness/command.h"
#include "harness/experiment_layers.h"
#include "harness/machine.h"

#define REPEAT_MAX 10000

GArray *sweep_option_entries(struct sweep_options *o, const GOptionEntry *own)
{
  const GOptionEntry common[] = {
      {"vary", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &o->vary, NULL, NULL},
      {"system", 0, 0, G_OPTION_ARG_FILENAME, &o->system, NULL, NULL},
      {"set", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &o->set, NULL, NULL},
      {"trace", 0, 0, G_OPTION_ARG_FILENAME, &o->trace, NULL, NULL},
      {"seed", 0, 0, G_OPTION_ARG_FILENAME, &o->seed, NULL, NULL},
      {"out", 0, 0, G_OPTION_ARG_FILENAME, &o->out, NULL, NULL},
      {"force", 0, 0, G_OPTION_ARG_NONE, &o->force, NULL, NULL},
      {"jobs", 0, 0, G_OPTION_ARG_FILENAME, &o->jobs_text, NULL, NULL},
      {"json", 0, 0, G_OPTION_ARG_NONE, &o->json, NULL, NULL},
      {"quiet", 0, 0, G_OPTION_ARG_NONE, &o->quiet, NULL, NULL},
  };
  GArray *entries = g_array_new(TRUE, TRUE, sizeof(GOptionEntry));
  g_array_append_vals(entries, common, G_N_ELEMENTS(common));
  for (; own && own->long_name; own++)
    g_array_append_vals(entries, own, 1);
  return entries;
}

void sweep_options_clear(struct sweep_options *o)
{
  g_strfreev(o->vary);
  g_strfreev(o->set);
  g_free(o->system);
  g_free(o->trace);
  g_free(o->seed);
  g_free(o->out);
  g_free(o->repeat_text);
  g_free(o->jobs_text);
}

/* Every option that is a setting becomes a --set, after the user's own. */
static char **all_sets(const struct sweep_options *o)
{
  GPtrArray *sets = g_ptr_array_new();
  for (char **set = o->set; set && *set; set++)
    g_ptr_array_add(sets, g_strdup(*set));
  if (o->system)
    g_ptr_array_add(sets, g_strdelimit(g_strconcat("experiment.systems=", o->system, NULL), ",", ';'));
  if (o->trace) {
    g_ptr_array_add(sets, g_strdup("workload.kind=trace"));
    g_ptr_array_add(sets, g_strconcat("workload.trace=", o->trace, NULL));
  }
  if (o->seed)
    g_ptr_array_add(sets, g_strconcat("experiment.seed=", o->seed, NULL));
  g_ptr_array_add(sets, NULL);
  return (char **)g_ptr_array_free(sets, FALSE);
}

gboolean sweep_options_numbers(struct sweep_options *o, GError **error)
{
  return command_integer("jobs", o->jobs_text, 1, POOL_JOBS_MAX, &o->jobs, error) &&
         command_integer("repeat", o->repeat_text, 1, REPEAT_MAX, &o->repeat, error);
}

struct sweep *sweep_from_options(const struct sweep_options *o, const char *experiment, const char *suffix,
                                 GError **error)
{
  g_autoptr(GPtrArray) axes = g_ptr_array_new_with_free_func((GDestroyNotify)axis_free);
  if (!layers_option_check("--system", o->system, error) ||
      !layers_option_check("--trace", o->trace, error) || !layers_option_check("--seed", o->seed, error))
    return NULL;
  for (char **vary = o->vary; vary && *vary; vary++) {
    struct axis *axis = axis_parse(*vary, error);
    if (!axis)
      return NULL;
    g_ptr_array_add(axes, axis);
  }
  g_auto(GStrv) sets = all_sets(o);
  struct sweep_spec spec = {.experiment = experiment,
                            .sets = sets,
                            .axes = axes,
                            .repeat = (guint)o->repeat,
                            .out = o->out,
                            .suffix = suffix};
  return sweep_create(&spec, error);
}

guint sweep_jobs(const struct sweep_options *o)
{
  return o->jobs > 0 ? (guint)o->jobs : MIN(machine_cores(), POOL_JOBS_MAX);
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
  (void)signal_number;
  interrupted = 1;
}

volatile sig_atomic_t *sweep_catch_signals(void)
{
  signal(SIGINT, on_interrupt);
  signal(SIGTERM, on_interrupt);
  return &interrupted;
}
