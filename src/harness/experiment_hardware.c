/* Server pools of an experiment and the hardware files behind them; see experiment_parts.h. */
#include "harness/experiment_parts.h"

#include <string.h>

#include "harness/hardware_file.h"
#include "harness/resolve.h"

/* Paths typed on the command line are the working directory's first, those of a file are the file's. */
static char *find_hardware(const struct layers *layers, const struct given *given, const char *name,
                           GError **error)
{
  g_autoptr(GError) inner = NULL;
  char *path = given && given->typed ? hardware_find(name, NULL, NULL) : NULL;
  if (!path)
    path = hardware_find(name, layers->path, &inner);
  if (!path)
    given_error(layers, given, error, "%s", inner->message);
  return path;
}

int draft_hardware(struct draft *draft, const struct layers *layers, const struct given *given,
                   const char *name, GError **error)
{
  struct experiment *experiment = &draft->experiment;
  uint32_t index = experiment->hardware_count;
  g_autofree char *path = find_hardware(layers, given, name, error);
  if (!path)
    return -1;
  for (uint32_t i = 0; i < index; i++)
    if (g_str_equal(draft->hardware_path[i], path))
      return (int)i;
  if (index == EXPERIMENT_POOLS_MAX) {
    given_error(layers, given, error, "expected at most %d kinds of hardware", EXPERIMENT_POOLS_MAX);
    return -1;
  }
  struct hardware *hardware = &experiment->hardware[index];
  if (!hardware_read(path, hardware, error))
    return -1;
  if (hardware->gpus_per_server == 0 && experiment->gpus_per_server == 0) {
    given_error(layers, given, error, "expected GPU servers, found hardware \"%s\" with gpus_per_server = 0",
                name);
    return -1;
  }
  draft->hardware_path[index] = g_steal_pointer(&path);
  experiment->hardware_count++;
  return (int)index;
}

gboolean pool_split(const char *text, uint32_t *count, char **hardware)
{
  const char *star = strchr(text, '*');
  g_autofree char *number = g_strstrip(star ? g_strndup(text, (gsize)(star - text)) : g_strdup(text));
  guint64 value;
  *hardware = NULL;
  if (!integer_parse(number, 1, EXPERIMENT_SERVERS_MAX, &value, NULL))
    return FALSE;
  *count = (uint32_t)value;
  if (star)
    *hardware = g_strstrip(g_strdup(star + 1));
  return !*hardware || **hardware;
}

static gboolean pool_add(struct draft *draft, const struct layers *layers, const char *text, GError **error)
{
  struct experiment *experiment = &draft->experiment;
  g_autofree char *name = NULL;
  const struct given *given = layers_find(layers, "cluster", "gpu_servers");
  struct server_pool *pool = &experiment->pool[experiment->pools];
  if (!pool_split(text, &pool->count, &name))
    return given_error(
        layers, given, error,
        "cluster.gpu_servers: expected COUNT or COUNT*HARDWARE, COUNT from 1 to %d, found \"%s\"",
        EXPERIMENT_SERVERS_MAX, text);
  if (!name)
    given = layers_find(layers, "cluster", "hardware");
  int index = draft_hardware(draft, layers, given, name ? name : draft->hardware, error);
  if (index < 0)
    return FALSE;
  pool->hw = (uint32_t)index;
  experiment->pools++;
  return TRUE;
}

static gboolean memory_pool(struct draft *draft, const struct layers *layers, GError **error)
{
  struct experiment *experiment = &draft->experiment;
  if (!draft->memory_hardware || g_str_equal(draft->memory_hardware, "same")) {
    experiment->memory_hardware = experiment->hardware[experiment->pool[0].hw];
    draft->memory_hardware_path = g_strdup(draft->hardware_path[experiment->pool[0].hw]);
    return TRUE;
  }
  const struct given *given = layers_find(layers, "cluster", "memory_hardware");
  draft->memory_hardware_path = find_hardware(layers, given, draft->memory_hardware, error);
  return draft->memory_hardware_path &&
         hardware_read(draft->memory_hardware_path, &experiment->memory_hardware, error);
}

gboolean draft_pools(struct draft *draft, const struct layers *layers, GError **error)
{
  g_auto(GStrv) items = g_strsplit(draft->gpu_servers ? draft->gpu_servers : "none", ";", 64);
  uint32_t servers = 0;
  if (!draft->hardware)
    return layers_error(layers, "cluster", "hardware", error,
                        "cluster.hardware: expected a name or a path, found \"none\"");
  for (guint i = 0; items[i]; i++) {
    if (i == EXPERIMENT_POOLS_MAX)
      return layers_error(layers, "cluster", "gpu_servers", error,
                          "cluster.gpu_servers: expected at most %d pools", EXPERIMENT_POOLS_MAX);
    if (!pool_add(draft, layers, items[i], error))
      return FALSE;
    servers += draft->experiment.pool[i].count;
  }
  if (servers > EXPERIMENT_SERVERS_MAX)
    return layers_error(layers, "cluster", "gpu_servers", error,
                        "cluster.gpu_servers: expected at most %d servers, found %u", EXPERIMENT_SERVERS_MAX,
                        servers);
  return memory_pool(draft, layers, error);
}

static gboolean override_apply(const struct setting *row, struct hardware *hardware,
                               const struct layers *layers, const struct given *given, GError **error)
{
  g_autoptr(GError) inner = NULL;
  if (setting_apply(row, hardware, given->value, &inner))
    return TRUE;
  return given_error(layers, given, error, "%s.%s: %s", given->section, given->key, inner->message);
}

gboolean draft_overrides(struct draft *draft, const struct layers *layers, GError **error)
{
  struct experiment *experiment = &draft->experiment;
  for (const struct setting *row = hardware_settings; row->key; row++) {
    const struct given *given = layers_find(layers, "cluster", row->key);
    if (!given || setting_find(experiment_settings, "cluster", row->key))
      continue;
    for (uint32_t i = 0; i < experiment->hardware_count; i++)
      if (!override_apply(row, &experiment->hardware[i], layers, given, error))
        return FALSE;
    if ((row->flags & HARDWARE_NETWORK) &&
        !override_apply(row, &experiment->memory_hardware, layers, given, error))
      return FALSE;
  }
  return TRUE;
}

gboolean draft_profiles(struct draft *draft, const struct layers *layers, GError **error)
{
  struct experiment *experiment = &draft->experiment;
  const struct given *given = layers_find(layers, "models", "profile_dir");
  for (uint32_t i = 0; i < experiment->hardware_count; i++) {
    const char *gpu = experiment->hardware[i].gpu;
    char **folder = &experiment->profile_dir[i];
    if (!draft->profile_dir) {
      *folder = resolve_shipped("profiles", gpu, layers->path);
      if (!*folder)
        return layers_error(layers, "cluster", "hardware", error,
                            "cannot find experiments/profiles/%s, the profiles of hardware \"%s\"", gpu,
                            experiment->hardware[i].name);
      continue;
    }
    *folder = given && given->typed ? resolve_path(draft->profile_dir, NULL) : NULL;
    if (!*folder)
      *folder = resolve_path(draft->profile_dir, layers->path);
    if (!*folder)
      return given_error(layers, given, error, "models.profile_dir: cannot find folder \"%s\"",
                         draft->profile_dir);
  }
  return TRUE;
}
