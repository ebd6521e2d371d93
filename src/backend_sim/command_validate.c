/* `validate`: real runs beside the simulator's. */
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "backend_sim/command_run.h"
#include "backend_sim/validate_report.h"
#include "core/error.h"
#include "harness/experiment_layers.h"
#include "harness/plot.h"
#include "harness/plot_overlay.h"
#include "harness/store_schema.h"

struct arguments {
  char *hardware, *profiles, *system, *plot;
  char **sets;
  gboolean json;
};

static void arguments_clear(struct arguments *a)
{
  g_free(a->hardware);
  g_free(a->profiles);
  g_free(a->system);
  g_free(a->plot);
  g_strfreev(a->sets);
}

/* The experiment of the database; all must be of one. */
static gboolean same_experiment(const char *path, char **experiment, GError **error)
{
  g_autoptr(StoreReader) reader = store_open(path, error);
  g_autoptr(GPtrArray) runs = reader ? store_runs(reader, error) : NULL;
  if (!runs)
    return FALSE;
  const struct stored_run *first = runs->len > 0 ? runs->pdata[0] : NULL;
  const char *name = first ? first->experiment : NULL;
  if (first && strcmp(first->backend, "real") != 0)
    return input_error(error, path, 0, "expected a run of distmind-real, found a simulated one");
  if (name && !*experiment)
    *experiment = g_strdup(name);
  return !name || g_str_equal(name, *experiment) ||
         input_error(error, path, 0, "expected a run of the experiment %s as before, found %s", *experiment,
                     name);
}

static gboolean validate_all(char **paths, const struct arguments *a, GPtrArray *validations,
                             char **experiment, GError **error)
{
  struct validate_options options = {.hardware = a->hardware, .profiles = a->profiles, .sets = a->sets};
  for (char **path = paths; *path; path++)
    if (!same_experiment(*path, experiment, error) ||
        !validate_database(*path, a->system, &options, NULL, validations, error))
      return FALSE;
  return TRUE;
}

/* --- the figure
 * -----------------------------------------------------------------------------------------------------*/

static gboolean draw_with(const char *path, const char *simulated, const struct arguments *a, GError **error)
{
  struct validate_options options = {.hardware = a->hardware, .profiles = a->profiles, .sets = a->sets};
  g_autoptr(GPtrArray) unused = g_ptr_array_new_with_free_func((GDestroyNotify)validation_free);
  struct store *store = store_create(simulated, TRUE, error);
  if (!store)
    return FALSE;
  if (!validate_database(path, a->system, &options, store, unused, error)) {
    store_abandon(store);
    return FALSE;
  }
  if (!store_finish(store, error))
    return FALSE;
  g_autoptr(StoreReader) real_reader = store_open(path, error);
  g_autoptr(StoreReader) sim_reader = real_reader ? store_open(simulated, error) : NULL;
  return sim_reader && plot_overlay_write(real_reader, sim_reader, a->plot, error);
}

/* The simulated requests go through a database that is gone afterwards. */
static gboolean draw(const char *path, const struct arguments *a, GError **error)
{
  g_autofree char *folder = g_dir_make_tmp("distmind-XXXXXX", error);
  if (!folder)
    return FALSE;
  g_autofree char *simulated = g_build_filename(folder, "simulated.db", NULL);
  gboolean good = draw_with(path, simulated, a, error);
  g_unlink(simulated);
  g_rmdir(folder);
  return good;
}

/* --- the command
 * ----------------------------------------------------------------------------------------------------*/

static void print(const char *experiment, guint databases, const struct arguments *a,
                  const GPtrArray *validations)
{
  if (a->json) {
    g_autofree char *json = validate_json(experiment, validations);
    fputs(json, stdout);
    return;
  }
  printf("%s: real beside simulated", experiment);
  if (a->hardware)
    printf(" with %s", a->hardware);
  if (databases > 1)
    printf(", medians of %u runs", databases);
  fputs("\n\n", stdout);
  validate_report(stdout, validations, isatty(STDOUT_FILENO));
}

static gboolean validate(char **paths, const struct arguments *a, GError **error)
{
  g_autoptr(GPtrArray) validations = g_ptr_array_new_with_free_func((GDestroyNotify)validation_free);
  g_autofree char *experiment = NULL;
  if (!layers_option_check("--profiles", a->profiles, error) ||
      (a->plot && !plot_output_check(a->plot, error)) ||
      !validate_all(paths, a, validations, &experiment, error) || (a->plot && !draw(paths[0], a, error)))
    return FALSE;
  print(experiment, g_strv_length(paths), a, validations);
  return TRUE;
}

static gboolean run_validate(int argc, char **argv, GError **error)
{
  struct arguments a = {NULL};
  const GOptionEntry entries[] = {{"hardware", 0, 0, G_OPTION_ARG_FILENAME, &a.hardware, NULL, NULL},
                                  {"profiles", 0, 0, G_OPTION_ARG_FILENAME, &a.profiles, NULL, NULL},
                                  {"system", 0, 0, G_OPTION_ARG_FILENAME, &a.system, NULL, NULL},
                                  {"set", 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &a.sets, NULL, NULL},
                                  {"plot", 0, 0, G_OPTION_ARG_FILENAME, &a.plot, NULL, NULL},
                                  {"json", 0, 0, G_OPTION_ARG_NONE, &a.json, NULL, NULL},
                                  {NULL}};
  g_auto(GStrv) paths = command_options(argc, argv, entries, error);
  gboolean good = paths && command_arguments(argv, paths, 1, G_MAXUINT, "REAL.db...", error) &&
                  validate(paths, &a, error);
  arguments_clear(&a);
  return good;
}

const struct command command_validate = {
    .name = "validate",
    .summary = "lay a real run beside its simulation, figure by figure",
    .run = run_validate,
    .help =
        "validate REAL.db... [--hardware FILE] [--profiles FOLDER] [--system S] [--set S.K=V]...\n"
        "           [--json] [--plot FILE.{png,svg,pdf}]\n"
        "\n"
        "Replays a real run in the simulator (its own arrivals, its own experiment, each system that it "
        "holds)\n"
        "and prints each figure: real, simulated, error. Of several databases of one experiment, medians of\n"
        "figures and of errors. Says whether the bounds hold: throughput 3%, p50 5%, p99 10%. A machine "
        "with\n"
        "fewer cores than the run had processes, plus one, is reported, not judged.\n"
        "\n"
        "Where clients wait for answers (closed, shifting) or a trace gives each request its time, arrivals "
        "are\n"
        "not all of the load: the experiment itself is simulated, with the run's seed, and the output says "
        "so.\n"
        "\n"
        "  --hardware FILE    calibrated hardware (`distmind-real calibrate`): its rates and overheads hold "
        "over\n"
        "                     those of the run, for GPU servers and memory servers\n"
        "  --profiles FOLDER  calibrated profiles (`calibrate --profiles`)\n"
        "  --system S         only this system\n"
        "  --set S.K=V        sets a key of the experiment over all others\n"
        "  --json             one JSON object, nothing else\n"
        "  --plot FILE        latencies of the first database, real over simulated (needs gnuplot)\n"
        "\n"
        "Examples:\n"
        "  distmind-real calibrate -o here.ini --profiles here\n"
        "  distmind-real run experiments/real-quickstart.ini --local --out real.db\n"
        "  distmind-sim validate real.db --hardware here.ini --profiles here --plot cdf.png\n",
};
