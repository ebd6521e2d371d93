/* What a sweep consists of; see sweep.h. */
#include "backend_sim/sweep.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "backend_sim/command_run.h"
#include "backend_sim/sweep_part.h"
#include "core/error.h"
#include "harness/backend.h"
#include "harness/output_file.h"
#include "harness/store_files.h"

/* Rows of every task would be gigabytes: a sweep's database has figures only, unless it is told otherwise. */
static const char *const quiet_outputs[] = {"output.requests=none", "output.usage=none",
                                            "output.decisions=none", "output.timeline=none"};

/* --- settings
 * -------------------------------------------------------------------------------------------------------*/

char **sweep_sets_at(const struct sweep *sweep, const guint *index)
{
  GPtrArray *sets = g_ptr_array_new();
  for (char **set = sweep->sets; *set; set++)
    g_ptr_array_add(sets, g_strdup(*set));
  for (guint i = 0; i < sweep->axes->len; i++) {
    const struct axis *axis = sweep->axes->pdata[i];
    g_ptr_array_add(sets, g_strconcat(axis->key, "=", axis->values[index[i]], NULL));
  }
  g_ptr_array_add(sets, NULL);
  return (char **)g_ptr_array_free(sets, FALSE);
}

char **sweep_task_sets(const struct sweep *sweep, uint64_t task)
{
  g_autofree guint *index = g_new0(guint, sweep->axes->len + 1);
  for (guint i = 0; i < sweep->axes->len; i++)
    index[i] = axes_index(sweep->axes, task / sweep->system_count, i);
  return sweep_sets_at(sweep, index);
}

const char *sweep_task_system(const struct sweep *sweep, uint64_t task)
{
  return sweep->systems[task % sweep->system_count];
}

char *sweep_task_name(const struct sweep *sweep, uint64_t task)
{
  GString *name = g_string_new(NULL);
  for (guint i = 0; i < sweep->axes->len; i++) {
    const struct axis *axis = sweep->axes->pdata[i];
    const char *value = axis->values[axes_index(sweep->axes, task / sweep->system_count, i)];
    g_string_append_printf(name, "%s=%s, ", axis->key, value);
  }
  g_string_append(name, sweep_task_system(sweep, task));
  return g_string_free(name, FALSE);
}

/* --- making one
 * -----------------------------------------------------------------------------------------------------*/

/* Keys that a sweep cannot vary or be given: what they say is said by an option, or is one file for all
 * tasks. */
static gboolean key_allowed(const char *key, const char *option, GError **error)
{
  if (g_str_equal(key, "experiment.systems") && g_str_equal(option, "--vary"))
    return input_error(error, "--vary experiment.systems", 0,
                       "expected --system A,B: every point has all systems");
  if (g_str_equal(key, "output.timeline"))
    return input_error(error, option, 0,
                       "output.timeline: a sweep writes no timelines; use `run` for the point of interest");
  return TRUE;
}

static gboolean check_axes(const struct sweep *sweep, GError **error)
{
  g_autoptr(GHashTable) varied = g_hash_table_new(g_str_hash, g_str_equal);
  for (guint i = 0; i < sweep->axes->len; i++) {
    const struct axis *axis = sweep->axes->pdata[i];
    if (!key_allowed(axis->key, "--vary", error))
      return FALSE;
    if (!g_hash_table_add(varied, axis->key))
      return input_error(error, "--vary", 0, "%s is varied twice", axis->key);
  }
  return TRUE;
}

static gboolean is_varied(const struct sweep *sweep, const char *key)
{
  for (guint i = 0; i < sweep->axes->len; i++)
    if (g_str_equal(((const struct axis *)sweep->axes->pdata[i])->key, key))
      return TRUE;
  return FALSE;
}

/* What is set is not varied; what is wrong with it otherwise, the experiment says. */
static gboolean check_sets(const struct sweep *sweep, char **given, GError **error)
{
  for (char **set = given; set && *set; set++) {
    const char *equals = strchr(*set, '=');
    g_autofree char *name = equals ? g_strstrip(g_strndup(*set, (gsize)(equals - *set))) : NULL;
    g_autofree char *key = name ? layers_key("--set", name, NULL) : NULL;
    if (!key)
      continue;
    if (!key_allowed(key, "--set", error))
      return FALSE;
    if (is_varied(sweep, key))
      return input_error(error, "--vary", 0, "%s is set by --set, --trace or --seed too", key);
  }
  return TRUE;
}

static void sets_init(struct sweep *sweep, char **given)
{
  GPtrArray *sets = g_ptr_array_new();
  for (size_t i = 0; i < G_N_ELEMENTS(quiet_outputs); i++)
    g_ptr_array_add(sets, g_strdup(quiet_outputs[i]));
  for (char **set = given; set && *set; set++)
    g_ptr_array_add(sets, g_strdup(*set));
  g_ptr_array_add(sets, NULL);
  sweep->sets = (char **)g_ptr_array_free(sets, FALSE);
}

static gboolean seeds_init(struct sweep *sweep, guint repeat, uint64_t seed, GError **error)
{
  if (repeat == 0)
    return TRUE;
  if (seed > UINT64_MAX - repeat)
    return input_error(error, "--repeat", 0,
                       "expected seeds below 2^64, found %" G_GUINT64_FORMAT " and %u more", seed, repeat);
  GPtrArray *values = g_ptr_array_new();
  for (guint i = 0; i < repeat; i++)
    g_ptr_array_add(values, g_strdup_printf("%" G_GUINT64_FORMAT, seed + i));
  g_ptr_array_add(values, NULL);
  g_ptr_array_add(sweep->axes, axis_new("experiment.seed", (char **)g_ptr_array_free(values, FALSE)));
  return TRUE;
}

static gboolean count_tasks(struct sweep *sweep, GError **error)
{
  sweep->points = axes_points(sweep->axes);
  sweep->system_count = g_strv_length(sweep->systems);
  if (sweep->points == 0)
    return input_error(error, "--vary", 0, "expected at most %d points", VARY_VALUES_MAX);
  sweep->count = sweep->points * sweep->system_count;
  sweep->task = g_new0(struct sweep_task, sweep->count);
  return TRUE;
}

static gboolean sweep_init(struct sweep *sweep, const struct sweep_spec *spec, GError **error)
{
  sweep->axes = axes_copy(spec->axes);
  if (!check_sets(sweep, spec->sets, error))
    return FALSE;
  sets_init(sweep, spec->sets);
  g_autoptr(Experiment) base = experiment_load(spec->experiment, "", sweep->sets, error);
  if (!base || !seeds_init(sweep, spec->repeat, base->seed, error) || !check_axes(sweep, error))
    return FALSE;
  sweep->name = g_strdup(base->name);
  sweep->systems = g_strdupv(base->systems);
  if (!count_tasks(sweep, error))
    return FALSE;
  sweep->default_out = !spec->out;
  g_autofree char *ending = g_strdup_printf("-%s.db", spec->suffix);
  sweep->out = spec->out ? g_strdup(spec->out) : output_file_default(base->name, ending);
  sweep->folder = g_strconcat(sweep->out, ".tasks", NULL);
  sweep_facts_init(sweep, base);
  return TRUE;
}

struct sweep *sweep_create(const struct sweep_spec *spec, GError **error)
{
  g_autoptr(Sweep) sweep = g_new0(struct sweep, 1);
  sweep->experiment = g_strdup(spec->experiment);
  sweep->lock = -1;
  return sweep_init(sweep, spec, error) ? g_steal_pointer(&sweep) : NULL;
}

void sweep_destroy(struct sweep *sweep)
{
  if (!sweep)
    return;
  for (uint64_t i = 0; sweep->task && i < sweep->count; i++)
    g_free(sweep->task[i].error);
  g_free(sweep->task);
  g_free(sweep->experiment);
  g_free(sweep->name);
  g_free(sweep->out);
  g_free(sweep->folder);
  g_strfreev(sweep->sets);
  g_strfreev(sweep->systems);
  g_clear_pointer(&sweep->axes, g_ptr_array_unref);
  g_clear_pointer(&sweep->facts, g_array_unref);
  if (sweep->lock >= 0)
    close(sweep->lock);
  g_free(sweep);
}

/* --- tasks
 * ----------------------------------------------------------------------------------------------------------*/

uint64_t sweep_count(const struct sweep *sweep, enum task_state state)
{
  uint64_t count = 0;
  for (uint64_t i = 0; i < sweep->count; i++)
    count += sweep->task[i].state == state;
  return count;
}

void sweep_task_ended(struct sweep *sweep, uint64_t task, const char *failure)
{
  struct sweep_task *t = &sweep->task[task];
  t->state = failure ? TASK_FAILED : TASK_WRITTEN;
  g_free(t->error);
  t->error = g_strdup(failure);
}

/* A worker is killed where it must end early, so nobody sets this. */
static volatile sig_atomic_t never;

static gboolean run_into(const struct sweep *sweep, uint64_t task, const char *file, GError **error)
{
  g_auto(GStrv) sets = sweep_task_sets(sweep, task);
  g_autoptr(Experiment) e = experiment_load(sweep->experiment, sweep_task_system(sweep, task), sets, error);
  if (!e)
    return FALSE;
  g_autoptr(Setup) setup = setup_new(e, sim_backend.capabilities, sim_backend.needs_heartbeats(e), error);
  if (!setup)
    return FALSE;
  g_autofree char *notices = NULL;
  struct run_outputs outputs = {.quiet = TRUE, .interrupted = &never};
  struct run_info info;
  struct figures figures;
  outputs.store = store_create(file, TRUE, error);
  if (!outputs.store)
    return FALSE;
  if (backend_run_stored(&sim_backend, setup, &outputs, &info, &figures, &notices, error))
    return store_finish(outputs.store, error);
  store_abandon(outputs.store);
  return FALSE;
}

/* A database is written with many small writes and a shared log, which network folders are bad at. */
static gboolean run_in_scratch(const struct sweep *sweep, uint64_t task, const char *file, GError **error)
{
  g_autoptr(GError) failure = NULL;
  g_autofree char *folder = g_dir_make_tmp("distmind-sweep-XXXXXX", &failure);
  if (!folder) {
    g_set_error_literal(error, DM_ERROR, DM_ERROR_FAILED, failure->message);
    return FALSE;
  }
  g_autofree char *own = g_build_filename(folder, "task.db", NULL);
  gboolean good = run_into(sweep, task, own, error) && store_copy(own, file, error);
  store_remove(own);
  g_rmdir(folder);
  return good;
}

gboolean sweep_run_task(const struct sweep *sweep, uint64_t task, GError **error)
{
  g_autofree char *file = sweep_task_file(sweep, task);
  return sweep->scratch ? run_in_scratch(sweep, task, file, error) : run_into(sweep, task, file, error);
}
