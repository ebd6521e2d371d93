/* The catalog of an experiment: its profiles read from every hardware kind's folder; see profile_file.h. */
#include "harness/profile_file.h"

#include <string.h>

#include "core/error.h"
#include "harness/nearest.h"

typedef struct profile Profile; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Profile, profile_free)
typedef struct catalog Catalog;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Catalog, catalog_free)

static int names_compare(gconstpointer a, gconstpointer b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of the profiles in a folder, sorted, for messages; NULL-terminated. */
static GPtrArray *profile_names(const char *folder)
{
  GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
  g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
  const char *leaf;
  while (dir && (leaf = g_dir_read_name(dir)))
    if (g_str_has_suffix(leaf, ".csv"))
      g_ptr_array_add(names, g_strndup(leaf, strlen(leaf) - strlen(".csv")));
  g_ptr_array_sort(names, names_compare);
  g_ptr_array_add(names, NULL);
  return names;
}

static gboolean is_present(const char *folder, const char *name)
{
  g_autofree char *path = g_strdup_printf("%s/%s.csv", folder, name);
  return g_file_test(path, G_FILE_TEST_EXISTS);
}

static gboolean no_profile(const struct experiment *experiment, uint32_t hw, const char *name, unsigned line,
                           GError **error)
{
  const char *folder = experiment->profile_dir[hw];
  g_autoptr(GPtrArray) names = profile_names(folder);
  const char *nearest = nearest_word(name, (const char *const *)names->pdata);
  return input_error(error, experiment->path, line, "no profile \"%s\" in %s%s%s%s", name, folder,
                     nearest ? "; nearest is \"" : "", nearest ? nearest : "", nearest ? "\"" : "");
}

/* compute_scale acts on every compute time. A first inference in a new process is never faster than a warm
 * one. */
static void timing_scale(struct profile *profile, uint32_t hw, double compute_scale)
{
  struct profile_timing *timing = &profile->timing[hw];
  profile_scale(profile, hw, timing->warm_ns * compute_scale);
  if (timing->first_inference_ns > 0 && timing->first_inference_ns < timing->warm_ns)
    timing->first_inference_ns = timing->warm_ns;
}

/* Token costs are those of the first hardware: a profile has one of each. */
static gboolean profile_add(struct catalog *catalog, const struct experiment *experiment, const char *name,
                            uint32_t variants, unsigned line, GError **error)
{
  g_autoptr(Profile) profile = NULL;
  for (uint32_t hw = 0; hw < experiment->hardware_count; hw++) {
    const char *folder = experiment->profile_dir[hw];
    if (!is_present(folder, name))
      return no_profile(experiment, hw, name, line, error);
    if (hw == 0)
      profile = profile_load(folder, name, error);
    if (hw == 0 ? !profile : !profile_load_timing(profile, folder, hw, error))
      return FALSE;
    timing_scale(profile, hw, experiment->hardware[hw].compute_scale);
  }
  profile->input_token_ns *= experiment->hardware[0].compute_scale;
  profile->output_token_ns *= experiment->hardware[0].compute_scale;
  catalog_add(catalog, g_steal_pointer(&profile), variants);
  return TRUE;
}

static gboolean is_model_set(const struct experiment *experiment, const char *name)
{
  for (uint32_t i = 0; i < experiment->models; i++)
    if (g_str_equal(experiment->model[i].profile, name))
      return TRUE;
  return FALSE;
}

struct catalog *catalog_load(const struct experiment *experiment, GError **error)
{
  g_autoptr(Catalog) catalog = catalog_new(experiment->hardware_count);
  for (uint32_t i = 0; i < experiment->models; i++) {
    const struct model_set *set = &experiment->model[i];
    if (!profile_add(catalog, experiment, set->profile, set->variants, set->line, error))
      return NULL;
  }
  /* A model that only trains has a profile, for its layer boundaries, and no variants to serve. */
  const char *trained = experiment->train_model;
  if (trained && !is_model_set(experiment, trained) &&
      !profile_add(catalog, experiment, trained, 0, 0, error))
    return NULL;
  return g_steal_pointer(&catalog);
}
