/* Replays real runs in the simulator; see validate.h. */
#include "backend_sim/validate.h"

#include <string.h>

#include "backend_sim/command_run.h"
#include "backend_sim/run.h"
#include "core/error.h"
#include "harness/experiment_parts.h"
#include "harness/hardware_file.h"
#include "harness/replay.h"
#include "harness/store_schema.h"

/* What `calibrate` measures; sizes of memories and constants of baselines stay as the run had them. */
static const char *const calibrated[] = {
    "nic_gbit_s",   "memory_nic_gbit_s", "pcie_gbyte_s",  "control_us", "net_stream_us",
    "net_group_us", "pcie_transfer_us",  "group_sync_us", "launch_us",
};

#define RUN_ID_MAX (1 << 20)

/* What of a run's row the other reader leaves out. */
struct origin {
  char *path;
  uint32_t cores, processes;
};
typedef struct origin Origin; /* for g_auto */

static void origin_clear(struct origin *origin)
{
  g_free(origin->path);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Origin, origin_clear)

void validation_free(struct validation *v)
{
  if (!v)
    return;
  g_free(v->system);
  g_free(v);
}

/* --- settings
 * -------------------------------------------------------------------------------------------------------*/

static void sets_add(GPtrArray *sets, char **texts)
{
  for (char **text = texts; text && *text; text++)
    if (**text)
      g_ptr_array_add(sets, g_strdup(*text));
}

/* Each calibrated key that the file gives becomes a --set: it then holds over the run's file, its [cluster]
 * section and its own --set options, for GPU servers and memory servers. */
static gboolean sets_add_hardware(GPtrArray *sets, const char *name, GError **error)
{
  struct hardware checked;
  g_autofree char *path = hardware_find(name, NULL, error);
  if (!path || !hardware_read(path, &checked, error))
    return FALSE;
  g_autoptr(Keyfile) keyfile = keyfile_load(path, error);
  const struct keyfile_section *section = keyfile ? keyfile_section(keyfile, "hardware") : NULL;
  if (!section)
    return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS(calibrated); i++) {
    const struct keyfile_entry *entry = keyfile_entry(section, calibrated[i]);
    if (entry)
      g_ptr_array_add(sets, g_strdup_printf("cluster.%s=%s", calibrated[i], entry->value));
  }
  return TRUE;
}

static char **all_sets(const struct stored_run *run, const struct validate_options *options, GError **error)
{
  g_autoptr(GPtrArray) sets = g_ptr_array_new_with_free_func(g_free);
  g_auto(GStrv) own = g_strsplit(run->overrides, "\n", -1);
  sets_add(sets, own);
  if (options->hardware && !sets_add_hardware(sets, options->hardware, error))
    return NULL;
  if (options->profiles)
    g_ptr_array_add(sets, g_strconcat("models.profile_dir=", options->profiles, NULL));
  sets_add(sets, options->sets);
  g_ptr_array_add(sets, NULL);
  g_ptr_array_set_free_func(sets, NULL);
  return (char **)g_ptr_array_free(g_steal_pointer(&sets), FALSE);
}

/* --- what the database says
 * -----------------------------------------------------------------------------------------*/

static gboolean read_origin(struct store_reader *reader, const struct stored_run *run, struct origin *origin,
                            GError **error)
{
  g_autoptr(sqlite3_stmt) statement =
      store_prepare(reader, "SELECT experiment_path, cores, processes FROM run WHERE id = ?", error);
  if (!statement) {
    g_prefix_error(error, "written by an older version, or not by `run`: ");
    return FALSE;
  }
  sqlite3_bind_int64(statement, 1, run->id);
  int row = store_step(reader, statement, error);
  if (row <= 0)
    return row == 0 && input_error(error, store_path(reader), 0, "run %d is gone", (int)run->id);
  const char *path = (const char *)sqlite3_column_text(statement, 0);
  int64_t cores = sqlite3_column_int64(statement, 1), processes = sqlite3_column_int64(statement, 2);
  if (!path || !*path || cores < 1 || cores > UINT32_MAX || processes < 1 || processes > UINT32_MAX)
    return input_error(error, store_path(reader), 0,
                       "run %d: expected experiment_path, cores and processes, found none or other values",
                       (int)run->id);
  *origin =
      (struct origin){.path = g_strdup(path), .cores = (uint32_t)cores, .processes = (uint32_t)processes};
  return TRUE;
}

static struct experiment *load_experiment(struct store_reader *reader, const struct stored_run *run,
                                          const struct origin *origin, char **sets, GError **error)
{
  g_autoptr(GError) inner = NULL;
  g_autoptr(Keyfile) keyfile = keyfile_parse(origin->path, run->text, strlen(run->text), &inner);
  struct experiment *experiment = keyfile ? experiment_parse(keyfile, run->system, sets, &inner) : NULL;
  if (!experiment)
    input_error(error, store_path(reader), 0, "the experiment that it holds: %s", inner->message);
  return experiment;
}

static gboolean has_token_costs(const struct setup *setup)
{
  for (guint p = 0; p < setup->catalog->profiles->len; p++) {
    const struct profile *profile = setup->catalog->profiles->pdata[p];
    if (profile->input_token_ns > 0 || profile->output_token_ns > 0)
      return TRUE;
  }
  return FALSE;
}

/* Whether stored arrivals say all of the load: not where clients wait for answers before they ask again, nor
 * where a trace gives each request a time of its own, which table request does not hold. */
static gboolean can_replay(const struct setup *setup)
{
  switch (setup->experiment->workload) {
  case WORKLOAD_CLOSED:
  case WORKLOAD_SHIFTING:
    return FALSE;
  case WORKLOAD_TRACE:
    return !setup->experiment->service_from_trace && !has_token_costs(setup);
  default:
    return TRUE;
  }
}

/* --- one run
 * --------------------------------------------------------------------------------------------------------*/

static gboolean simulate(const struct setup *setup, struct store *store, struct figures *figures,
                         GError **error)
{
  const struct experiment *e = setup->experiment;
  volatile sig_atomic_t interrupted = 0;
  struct run_outputs outputs = {.store = store, .quiet = TRUE, .interrupted = &interrupted};
  struct run_info info = {.experiment = e->name,
                          .system = e->system,
                          .backend = sim_backend.name,
                          .text = e->text,
                          .path = e->path,
                          .processes = 1,
                          .overrides = e->overrides,
                          .seed = e->seed,
                          .constants = setup->constants,
                          .notices = setup->notices,
                          .warmup_ns = e->warmup_ns};
  g_autofree char *notices = NULL;
  if (store && !store_begin_run(store, &info, setup->catalog, error))
    return FALSE;
  return run_system(setup, &info, &outputs, figures, &notices, error) &&
         (!store || store_end_run(store, figures, FALSE, error));
}

static gboolean validate_set_up(struct store_reader *reader, const struct stored_run *run,
                                struct setup *setup, struct store *store, struct validation *v,
                                GError **error)
{
  g_autoptr(Replay) replay = NULL;
  v->replayed = can_replay(setup);
  if (v->replayed) {
    replay = replay_read(reader, run, setup->catalog, error);
    if (!replay)
      return FALSE;
    setup->replay = replay;
  }
  return simulate(setup, store, &v->simulated, error);
}

static struct validation *validate_run(struct store_reader *reader, const struct stored_run *run,
                                       const struct validate_options *options, struct store *store,
                                       GError **error)
{
  g_auto(Origin) origin = {NULL};
  g_auto(GStrv) sets = all_sets(run, options, error);
  if (!sets || !read_origin(reader, run, &origin, error))
    return NULL;
  g_autoptr(Experiment) experiment = load_experiment(reader, run, &origin, sets, error);
  g_autoptr(Setup) setup = experiment ? setup_new(experiment, sim_backend.capabilities,
                                                  sim_backend.needs_heartbeats(experiment), error)
                                      : NULL;
  if (!setup)
    return NULL;
  struct validation *v = g_new0(struct validation, 1);
  *v = (struct validation){.system = g_strdup(run->system),
                           .interrupted = run->interrupted,
                           .cores = origin.cores,
                           .processes = origin.processes,
                           .real = run->figures};
  if (validate_set_up(reader, run, setup, store, v, error))
    return v;
  validation_free(v);
  return NULL;
}

static gboolean run_check(struct store_reader *reader, const struct stored_run *run, GError **error)
{
  if (run->id < 1 || run->id > RUN_ID_MAX)
    return input_error(error, store_path(reader), 0, "expected run ids from 1 to %d, found %" G_GINT64_FORMAT,
                       RUN_ID_MAX, run->id);
  return run->finished ||
         input_error(error, store_path(reader), 0,
                     "the run of system %s was killed: it has no figures to compare with", run->system);
}

gboolean validate_database(const char *path, const char *system, const struct validate_options *options,
                           struct store *store, GPtrArray *validations, GError **error)
{
  g_autoptr(StoreReader) reader = store_open(path, error);
  g_autoptr(GPtrArray) runs = reader ? store_runs(reader, error) : NULL;
  guint before = validations->len;
  for (guint i = 0; runs && i < runs->len; i++) {
    const struct stored_run *run = runs->pdata[i];
    if (system && !g_str_equal(system, run->system))
      continue;
    struct validation *v =
        run_check(reader, run, error) ? validate_run(reader, run, options, store, error) : NULL;
    if (!v)
      return FALSE;
    g_ptr_array_add(validations, v);
  }
  if (runs && validations->len == before)
    return input_error(error, path, 0, system ? "holds no run of system %s" : "holds no run", system);
  return runs != NULL;
}
