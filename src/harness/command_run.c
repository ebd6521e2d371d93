/* `run`: reads an experiment, runs its systems one after another, stores and shows what came out; see
 * backend.h. */
#include "harness/backend.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "harness/experiment_layers.h"
#include "harness/output_file.h"
#include "harness/report.h"

struct arguments {
  char *system, *trace, *seed, *out, *timeline;
  char **sets;
  gboolean force, json, quiet, print_config;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
  (void)signal_number;
  interrupted = 1;
}

/* --- arguments
 * ------------------------------------------------------------------------------------------------------*/

static gboolean settings_check(const struct arguments *a, GError **error)
{
  return layers_option_check("--system", a->system, error) &&
         layers_option_check("--trace", a->trace, error) && layers_option_check("--seed", a->seed, error) &&
         layers_option_check("--timeline", a->timeline, error);
}

/* Every option that is a setting becomes a --set, after the user's own. */
static char **all_sets(const struct arguments *a)
{
  GPtrArray *sets = g_ptr_array_new();
  for (char **set = a->sets; set && *set; set++)
    g_ptr_array_add(sets, g_strdup(*set));
  if (a->system)
    g_ptr_array_add(sets, g_strdelimit(g_strconcat("experiment.systems=", a->system, NULL), ",", ';'));
  if (a->trace) {
    g_ptr_array_add(sets, g_strdup("workload.kind=trace"));
    g_ptr_array_add(sets, g_strconcat("workload.trace=", a->trace, NULL));
  }
  if (a->seed)
    g_ptr_array_add(sets, g_strconcat("experiment.seed=", a->seed, NULL));
  if (a->timeline)
    g_ptr_array_add(sets, g_strconcat("output.timeline=", a->timeline, NULL));
  g_ptr_array_add(sets, NULL);
  return (char **)g_ptr_array_free(sets, FALSE);
}

static void arguments_clear(struct arguments *a)
{
  g_free(a->system);
  g_free(a->trace);
  g_free(a->seed);
  g_free(a->out);
  g_free(a->timeline);
  g_strfreev(a->sets);
}

static char *default_out(const char *name)
{
  g_mkdir(OUTPUT_FOLDER, 0777); /* there already, or store_create says what is wrong */
  return output_file_default(name, ".db");
}

/* --- one run after another
 * ------------------------------------------------------------------------------------------*/

struct session {
  const struct backend *backend;
  GPtrArray *experiments; /* of struct experiment *, one a system */
  GPtrArray *setups;      /* of struct setup * */
  GPtrArray *notices;     /* texts that runs point to */
  struct report_run *runs;
  struct run_outputs outputs;
};

/* All systems are set up before the first one runs: what is wrong shows at once, and nothing is left behind.
 */
static gboolean session_prepare(struct session *s, const char *path, const struct experiment *base,
                                char **sets, GError **error)
{
  for (char **system = base->systems; *system; system++) {
    struct experiment *e = experiment_load(path, *system, sets, error);
    if (!e)
      return FALSE;
    g_ptr_array_add(s->experiments, e);
    struct setup *setup = setup_new(e, s->backend->capabilities, s->backend->needs_heartbeats(e), error);
    if (!setup)
      return FALSE;
    g_ptr_array_add(s->setups, setup);
  }
  s->runs = g_new0(struct report_run, s->setups->len);
  return TRUE;
}

gboolean backend_run_stored(const struct backend *backend, const struct setup *setup,
                            const struct run_outputs *outputs, struct run_info *info, struct figures *figures,
                            char **notices, GError **error)
{
  const struct experiment *e = setup->experiment;
  g_autofree char *file = g_canonicalize_filename(e->path, NULL);
  *info = (struct run_info){.experiment = e->name,
                            .system = e->system,
                            .backend = backend->name,
                            .text = e->text,
                            .overrides = e->overrides,
                            .path = file,
                            .processes = backend->processes ? backend->processes(setup) : 1,
                            .seed = e->seed,
                            .constants = setup->constants,
                            .notices = setup->notices,
                            .warmup_ns = e->warmup_ns};
  struct store *store = outputs->store;
  if (store && !store_begin_run(store, info, setup->catalog, error))
    return FALSE;
  *notices = NULL;
  gboolean ran = backend->run(setup, info, outputs, figures, notices, error);
  info->path = NULL;
  if (!ran)
    return FALSE;
  info->notices = *notices;
  if (store)
    store_notices(store, *notices);
  return !store || store_end_run(store, figures, *outputs->interrupted != 0, error);
}

static gboolean session_run(struct session *s, guint index, GError **error)
{
  struct report_run *run = &s->runs[index];
  char *notices = NULL;
  gboolean good = backend_run_stored(s->backend, s->setups->pdata[index], &s->outputs, &run->info,
                                     &run->figures, &notices, error);
  g_ptr_array_add(s->notices, notices);
  return good;
}

static void session_clear(struct session *s)
{
  if (s->backend->close)
    s->backend->close();
  if (s->outputs.store)
    store_abandon(s->outputs.store);
  if (s->outputs.timeline)
    timeline_abandon(s->outputs.timeline);
  g_ptr_array_unref(s->setups);
  g_ptr_array_unref(s->experiments);
  g_ptr_array_unref(s->notices);
  g_free(s->runs);
}

/* All that the command will write, before it begins any. */
static gboolean outputs_check(const struct backend *backend, const struct experiment *base, const char *out,
                              gboolean force, GError **error)
{
  const char *own = backend->output ? backend->output() : NULL;
  return output_file_check(out, force, error) &&
         (!base->timeline || output_file_check(base->timeline, force, error)) &&
         (!own || output_file_check(own, force, error)) && output_files_differ(out, base->timeline, error) &&
         output_files_differ(out, own, error) && output_files_differ(base->timeline, own, error);
}

static gboolean outputs_open(struct session *s, const struct experiment *base, const char *out,
                             gboolean force, GError **error)
{
  if (!outputs_check(s->backend, base, out, force, error))
    return FALSE;
  s->outputs.store = store_create(out, force, error);
  if (!s->outputs.store)
    return FALSE;
  if (base->timeline)
    s->outputs.timeline =
        timeline_create(base->timeline, base->timeline_from_ns, base->timeline_to_ns, error);
  return !base->timeline || s->outputs.timeline;
}

static gboolean outputs_close(struct session *s, GError **error)
{
  struct timeline *timeline = g_steal_pointer(&s->outputs.timeline);
  if (timeline && !timeline_finish(timeline, error))
    return FALSE;
  return store_finish(g_steal_pointer(&s->outputs.store), error);
}

static void show(const struct session *s, guint count, const char *out, const struct arguments *a)
{
  if (a->json) {
    g_autofree char *json = report_json(s->runs, count);
    fputs(json, stdout);
    return;
  }
  report_table(stdout, s->runs, count, isatty(STDOUT_FILENO));
  printf("\nresults: %s\n", out);
}

static gboolean run_all(struct session *s, const struct arguments *a, const char *path, char **sets,
                        GError **error)
{
  g_autoptr(Experiment) base = experiment_load(path, "", sets, error);
  if (!base || !session_prepare(s, path, base, sets, error))
    return FALSE;
  signal(SIGINT,
         on_interrupt); /* until here there is nothing to be kept, and a file may be a pipe that is silent */
  signal(SIGTERM, on_interrupt);
  g_autofree char *out = a->out ? g_strdup(a->out) : default_out(base->name);
  if (!outputs_open(s, base, out, a->force, error))
    return FALSE;
  if (s->backend->open && !s->backend->open(base, sets, a->force, error))
    return FALSE;
  guint done = 0;
  while (done < s->setups->len && !interrupted) {
    if (!session_run(s, done, error))
      return FALSE;
    done++;
  }
  if (!outputs_close(s, error))
    return FALSE;
  show(s, done, out, a);
  if (interrupted) {
    g_set_error(error, DM_ERROR, DM_ERROR_INTERRUPTED, "interrupted: %s holds what was done", out);
    return FALSE;
  }
  return TRUE;
}

static gboolean print_config(const char *path, char **sets, GError **error)
{
  g_autofree char *text = experiment_print_config(path, "", sets, error);
  if (text)
    fputs(text, stdout);
  return text != NULL;
}

/* The options of both programs, then the program's own. */
static GArray *all_options(const struct backend *backend, struct arguments *a)
{
  const GOptionEntry common[] = {
      {"system", 0, 0, G_OPTION_ARG_FILENAME, &a->system, NULL, NULL},
      {"set", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &a->sets, NULL, NULL},
      {"trace", 0, 0, G_OPTION_ARG_FILENAME, &a->trace, NULL, NULL},
      {"out", 0, 0, G_OPTION_ARG_FILENAME, &a->out, NULL, NULL},
      {"timeline", 0, 0, G_OPTION_ARG_FILENAME, &a->timeline, NULL, NULL},
      {"seed", 0, 0, G_OPTION_ARG_FILENAME, &a->seed, NULL, NULL},
      {"force", 0, 0, G_OPTION_ARG_NONE, &a->force, NULL, NULL},
      {"json", 0, 0, G_OPTION_ARG_NONE, &a->json, NULL, NULL},
      {"quiet", 0, 0, G_OPTION_ARG_NONE, &a->quiet, NULL, NULL},
      {"print-config", 0, 0, G_OPTION_ARG_NONE, &a->print_config, NULL, NULL},
  };
  GArray *options = g_array_new(TRUE, TRUE, sizeof(GOptionEntry));
  g_array_append_vals(options, common, G_N_ELEMENTS(common));
  for (const GOptionEntry *own = backend->options; own && own->long_name; own++)
    g_array_append_vals(options, own, 1);
  return options;
}

gboolean backend_interrupted(void)
{
  return interrupted != 0;
}

gboolean backend_run_command(const struct backend *backend, int argc, char **argv, GError **error)
{
  struct arguments a = {.seed = NULL};
  g_autoptr(GArray) options = all_options(backend, &a);
  g_auto(GStrv) files = command_options(argc, argv, (const GOptionEntry *)(const void *)options->data, error);
  gboolean good =
      files && command_arguments(argv, files, 1, 1, "one EXPERIMENT.ini", error) && settings_check(&a, error);
  if (good) {
    g_auto(GStrv) sets = all_sets(&a);
    struct session s = {.backend = backend,
                        .experiments = g_ptr_array_new_with_free_func((GDestroyNotify)experiment_free),
                        .setups = g_ptr_array_new_with_free_func((GDestroyNotify)setup_free),
                        .notices = g_ptr_array_new_with_free_func(g_free),
                        .outputs = {.quiet = a.quiet || a.json, .interrupted = &interrupted}};
    good = a.print_config ? print_config(files[0], sets, error) : run_all(&s, &a, files[0], sets, error);
    session_clear(&s);
  }
  arguments_clear(&a);
  return good;
}
