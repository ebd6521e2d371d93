/* Loading an experiment: the file's layers become a draft, the draft a checked experiment; see experiment.h.
 */
#include "harness/experiment.h"

#include <string.h>

#include "core/error.h"
#include "harness/experiment_parts.h"
#include "harness/nearest.h"

static void experiment_clear(struct experiment *experiment)
{
  char *texts[] = {
      experiment->path,        experiment->text,        experiment->overrides,          experiment->name,
      experiment->system,      experiment->trace,       experiment->trace_format,       experiment->balancer,
      experiment->train_model, experiment->train_trace, experiment->train_trace_format, experiment->requests,
      experiment->timeline};
  for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
    g_free(texts[i]);
  for (uint32_t i = 0; i < EXPERIMENT_POOLS_MAX; i++)
    g_free(experiment->profile_dir[i]);
  for (uint32_t i = 0; i < experiment->models; i++)
    g_free(experiment->model[i].profile);
  for (uint32_t i = 0; i < experiment->events; i++) {
    g_free(experiment->event[i].name);
    g_free(experiment->event[i].key);
  }
  g_strfreev(experiment->systems);
  g_free(experiment->model);
  g_free(experiment->event);
  g_free(experiment->active);
}

void experiment_free(struct experiment *experiment)
{
  if (!experiment)
    return;
  experiment_clear(experiment);
  g_free(experiment);
}

void draft_free(struct draft *draft)
{
  if (!draft)
    return;
  experiment_clear(&draft->experiment);
  g_free(draft->hardware);
  g_free(draft->gpu_servers);
  g_free(draft->memory_hardware);
  g_free(draft->memory_hardware_path);
  g_free(draft->profile_dir);
  for (uint32_t i = 0; i < EXPERIMENT_POOLS_MAX; i++)
    g_free(draft->hardware_path[i]);
  g_free(draft);
}

static gboolean draft_values(struct draft *draft, const struct layers *layers, GError **error)
{
  for (const struct setting *row = experiment_settings; row->key; row++) {
    const struct given *given = layers_find(layers, row->section, row->key);
    g_autoptr(GError) inner = NULL;
    if (!setting_apply(row, draft, given ? given->value : row->fallback, &inner))
      return given_error(layers, given, error, "%s.%s: %s", row->section, row->key, inner->message);
  }
  return TRUE;
}

static gboolean is_profile_name(const char *name)
{
  return *name != '.' && !strchr(name, '/') && strlen(name) < 200;
}

static gboolean model_add(struct experiment *experiment, const struct layers *layers,
                          const struct given *given, guint64 *total, GError **error)
{
  guint64 variants;
  g_autoptr(GError) inner = NULL;
  if (!is_profile_name(given->key))
    return given_error(layers, given, error, "expected the name of a profile, found \"%s\"", given->key);
  if (!integer_parse(given->value, 1, EXPERIMENT_MODELS_MAX, &variants, &inner)) {
    const char *const known[] = {"profile_dir", NULL};
    const char *hint = edit_distance(given->key, known[0]) <= 3 ? "; nearest key is \"profile_dir\"" : "";
    return given_error(layers, given, error, "models.%s: %s%s", given->key, inner->message, hint);
  }
  *total += variants;
  if (*total > EXPERIMENT_MODELS_MAX)
    return given_error(layers, given, error, "expected at most %d models in all", EXPERIMENT_MODELS_MAX);
  experiment->model[experiment->models++] = (struct model_set){
      .profile = g_strdup(given->key), .variants = (uint32_t)variants, .line = given->line};
  return TRUE;
}

static gboolean draft_models(struct draft *draft, const struct layers *layers, GError **error)
{
  struct experiment *experiment = &draft->experiment;
  guint64 total = 0;
  experiment->model = g_new0(struct model_set, layers->given->len);
  for (guint i = 0; i < layers->given->len; i++) {
    const struct given *given = layers->given->pdata[i];
    if (!g_str_equal(given->section, "models") || setting_find(experiment_settings, "models", given->key))
      continue;
    if (!model_add(experiment, layers, given, &total, error))
      return FALSE;
  }
  if (!experiment->models)
    return given_error(layers, NULL, error, "expected a [models] section with a line PROFILE = VARIANTS");
  return TRUE;
}

/* One input file that must exist. */
static gboolean path_resolve(char **field, const struct layers *layers, const char *section, GError **error)
{
  const struct given *given = layers_find(layers, section, "trace");
  if (!*field)
    return TRUE;
  char *path = given && given->typed ? resolve_path(*field, NULL) : NULL;
  if (!path)
    path = resolve_path(*field, layers->path);
  if (!path)
    return given_error(layers, given, error,
                       "%s.trace: cannot find \"%s\" (another place: --set %s.trace=FILE)", section, *field,
                       section);
  g_free(*field);
  *field = path;
  return TRUE;
}

static gboolean draft_paths(struct draft *draft, const struct layers *layers, GError **error)
{
  struct experiment *experiment = &draft->experiment;
  if (experiment->workload == WORKLOAD_TRACE && !path_resolve(&experiment->trace, layers, "workload", error))
    return FALSE;
  return path_resolve(&experiment->train_trace, layers, "training", error);
}

static struct draft *draft_new(const struct keyfile *keyfile, const char *system, char **sets)
{
  struct draft *draft = g_new0(struct draft, 1);
  struct experiment *experiment = &draft->experiment;
  experiment->path = g_strdup(keyfile->path);
  experiment->text = g_strdup(keyfile->text);
  experiment->overrides = sets ? g_strjoinv("\n", sets) : g_strdup("");
  experiment->system = g_strdup(system);
  return draft;
}

struct draft *draft_build(const struct keyfile *keyfile, const struct layers *layers, const char *system,
                          char **sets, GError **error)
{
  g_autoptr(Draft) draft = draft_new(keyfile, system, sets);
  gboolean ok = draft_values(draft, layers, error) && draft_models(draft, layers, error) &&
                draft_pools(draft, layers, error) && draft_events(draft, layers, error) &&
                draft_overrides(draft, layers, error) && draft_profiles(draft, layers, error) &&
                draft_paths(draft, layers, error) && draft_check(draft, layers, error);
  return ok ? g_steal_pointer(&draft) : NULL;
}

static struct experiment *experiment_of(const struct keyfile *keyfile, const char *system, char **sets,
                                        GError **error)
{
  g_autoptr(Layers) layers = layers_new(keyfile, system, sets, error);
  g_autoptr(Draft) draft = layers ? draft_build(keyfile, layers, system, sets, error) : NULL;
  if (!draft)
    return NULL;
  struct experiment *experiment = g_memdup2(&draft->experiment, sizeof draft->experiment);
  memset(&draft->experiment, 0, sizeof draft->experiment);
  return experiment;
}

/* A wrong value of any system is found before the first one runs. */
static gboolean systems_check(const struct keyfile *keyfile, const struct experiment *general, char **sets,
                              GError **error)
{
  for (char *const *system = general->systems; *system; system++) {
    g_autoptr(Experiment) experiment = experiment_of(keyfile, *system, sets, error);
    if (!experiment)
      return FALSE;
  }
  return TRUE;
}

struct experiment *experiment_parse(const struct keyfile *keyfile, const char *system, char **sets,
                                    GError **error)
{
  if (*system && !g_strv_contains(experiment_systems, system)) {
    input_error(error, "--system", 0, "unknown system \"%s\"; nearest is \"%s\"", system,
                nearest_word(system, experiment_systems));
    return NULL;
  }
  g_autoptr(Experiment) experiment = experiment_of(keyfile, system, sets, error);
  if (!experiment || (!*system && !systems_check(keyfile, experiment, sets, error)))
    return NULL;
  return g_steal_pointer(&experiment);
}

struct keyfile *experiment_keyfile(const char *path, GError **error)
{
  g_autofree char *found = resolve_path(path, NULL);
  return keyfile_load(found ? found : path, error);
}

struct experiment *experiment_load(const char *path, const char *system, char **sets, GError **error)
{
  g_autoptr(Keyfile) keyfile = experiment_keyfile(path, error);
  return keyfile ? experiment_parse(keyfile, system, sets, error) : NULL;
}
