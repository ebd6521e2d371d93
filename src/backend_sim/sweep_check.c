/* What every point's experiment is, before the first runs; see sweep.h. */
#include "backend_sim/sweep_part.h"

#include "backend_sim/command_run.h"
#include "harness/backend.h"
#include "harness/experiment_parts.h"

/* Tasks that are set up to find one that can be. */
#define FITTED_MOST 256

/* By what set-ups of one sweep differ, as far as setup_readable looks; free with g_free. */
static char *readable_key(const struct experiment *e, gboolean heartbeats)
{
  GString *key = g_string_new(e->train_model);
  for (uint32_t hw = 0; hw < e->hardware_count; hw++)
    g_string_append_printf(key, "\n%s", e->profile_dir[hw]);
  for (uint32_t i = 0; i < e->models; i++)
    g_string_append_printf(key, "\n%s", e->model[i].profile);
  g_string_append_printf(key, "\n%d", heartbeats && e->heartbeat_ns == 0);
  return g_string_free(key, FALSE);
}

/* seen: keys of set-ups that can be read. */
static gboolean check_task(const struct sweep *sweep, const struct keyfile *keyfile, uint64_t task,
                           char **sets, GHashTable *seen, GError **error)
{
  g_autoptr(Experiment) e = experiment_parse(keyfile, sweep_task_system(sweep, task), sets, error);
  if (!e)
    return FALSE;
  gboolean heartbeats = sim_backend.needs_heartbeats(e);
  char *key = readable_key(e, heartbeats);
  return !g_hash_table_add(seen, key) || setup_readable(e, heartbeats, error);
}

/* A seed is right or wrong by itself: each is looked at beside the first values of the other axes alone, so
 * that many repetitions cost no more than one. */
static gboolean is_repetition(const struct sweep *sweep, uint64_t point)
{
  gboolean other_seed = FALSE, other_values = FALSE;
  for (guint i = 0; i < sweep->axes->len; i++) {
    const struct axis *axis = sweep->axes->pdata[i];
    gboolean later = axes_index(sweep->axes, point, i) > 0;
    if (g_str_equal(axis->key, "experiment.seed"))
      other_seed = later;
    else
      other_values = other_values || later;
  }
  return other_seed && other_values;
}

static gboolean at_task(const struct sweep *sweep, uint64_t task, GError **error)
{
  g_autofree char *name = sweep_task_name(sweep, task);
  g_prefix_error(error, "at %s: ", name);
  return FALSE;
}

gboolean sweep_check(const struct sweep *sweep, GError **error)
{
  g_autoptr(Keyfile) keyfile = experiment_keyfile(sweep->experiment, error);
  g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  for (uint64_t point = 0; keyfile && point < sweep->points; point++) {
    if (is_repetition(sweep, point))
      continue;
    uint64_t first = point * sweep->system_count;
    g_auto(GStrv) sets = sweep_task_sets(sweep, first);
    for (uint64_t task = first; task < first + sweep->system_count; task++)
      if (!check_task(sweep, keyfile, task, sets, seen, error))
        return at_task(sweep, task, error);
  }
  return keyfile != NULL;
}

gboolean sweep_task_fits(const struct sweep *sweep, uint64_t task, GError **error)
{
  g_auto(GStrv) sets = sweep_task_sets(sweep, task);
  g_autoptr(Experiment) e = experiment_load(sweep->experiment, sweep_task_system(sweep, task), sets, error);
  g_autoptr(Setup) setup =
      e ? setup_new(e, sim_backend.capabilities, sim_backend.needs_heartbeats(e), error) : NULL;
  return setup != NULL;
}

gboolean sweep_check_fit(const struct sweep *sweep, GError **error)
{
  g_autoptr(GError) failure = NULL;
  if (sweep->count > FITTED_MOST || sweep_task_fits(sweep, 0, &failure))
    return TRUE;
  for (uint64_t task = 1; task < sweep->count; task++)
    if (sweep_task_fits(sweep, task, NULL))
      return TRUE;
  g_prefix_error(&failure, "no point can be set up; ");
  g_propagate_error(error, g_steal_pointer(&failure));
  return at_task(sweep, 0, error);
}
