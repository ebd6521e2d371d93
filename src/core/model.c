/* Profiles and the catalog of models; see model.h. */
#include "core/model.h"

#include <string.h>

struct profile *profile_new(const char *name, uint32_t layers)
{
  struct profile *profile = g_new0(struct profile, 1);
  profile->name = g_strdup(name);
  profile->layers = layers;
  profile->layer_bytes = g_new0(uint64_t, layers);
  for (uint32_t hw = 0; hw < CATALOG_HW_MAX; hw++)
    profile->timing[hw].layer_ns = g_new0(double, layers);
  return profile;
}

void profile_free(struct profile *profile)
{
  if (!profile)
    return;
  for (uint32_t hw = 0; hw < CATALOG_HW_MAX; hw++)
    g_free(profile->timing[hw].layer_ns);
  if (profile->layer_names)
    for (uint32_t i = 0; i < profile->layers; i++)
      g_free(profile->layer_names[i]);
  g_free(profile->layer_names);
  g_free(profile->layer_bytes);
  g_free(profile->name);
  g_free(profile);
}

void profile_sum(struct profile *profile)
{
  uint64_t sum = 0;
  for (uint32_t i = 0; i < profile->layers; i++)
    sum += profile->layer_bytes[i];
  profile->param_bytes = sum;
}

void profile_scale(struct profile *profile, uint32_t hw, double warm_ns)
{
  struct profile_timing *timing = &profile->timing[hw];
  double sum = 0;
  for (uint32_t i = 0; i < profile->layers; i++)
    sum += timing->layer_ns[i];
  for (uint32_t i = 0; i < profile->layers; i++)
    timing->layer_ns[i] = sum > 0 ? timing->layer_ns[i] / sum * warm_ns : warm_ns / profile->layers;
  timing->warm_ns = warm_ns;
}

static void profile_release(gpointer profile)
{
  profile_free((struct profile *)profile);
}

struct catalog *catalog_new(uint32_t hw_count)
{
  struct catalog *catalog = g_new0(struct catalog, 1);
  catalog->profiles = g_ptr_array_new_with_free_func(profile_release);
  catalog->models = g_array_new(FALSE, TRUE, sizeof(struct model));
  catalog->first_model = g_array_new(FALSE, TRUE, sizeof(uint32_t));
  catalog->by_name = g_hash_table_new(g_str_hash, g_str_equal);
  catalog->hw_count = hw_count;
  return catalog;
}

void catalog_free(struct catalog *catalog)
{
  if (!catalog)
    return;
  g_hash_table_destroy(catalog->by_name);
  g_ptr_array_unref(catalog->profiles);
  g_array_unref(catalog->models);
  g_array_unref(catalog->first_model);
  g_free(catalog);
}

uint32_t catalog_add(struct catalog *catalog, struct profile *profile, uint32_t variants)
{
  uint32_t index = catalog->profiles->len;
  uint32_t first = catalog->models->len;
  g_ptr_array_add(catalog->profiles, profile);
  g_array_append_val(catalog->first_model, first);
  if (!g_hash_table_contains(catalog->by_name, profile->name))
    g_hash_table_insert(catalog->by_name, profile->name, GUINT_TO_POINTER(index + 1));
  for (uint32_t variant = 0; variant < variants; variant++) {
    struct model model = {.profile = index, .variant = variant};
    g_array_append_val(catalog->models, model);
  }
  return first;
}

static int64_t profile_find(const struct catalog *catalog, const char *name)
{
  return (int64_t)GPOINTER_TO_UINT(g_hash_table_lookup(catalog->by_name, name)) - 1;
}

uint32_t catalog_variants(const struct catalog *catalog, uint32_t profile)
{
  uint32_t next = profile + 1 < catalog->profiles->len
                      ? g_array_index(catalog->first_model, uint32_t, profile + 1)
                      : catalog->models->len;
  return next - g_array_index(catalog->first_model, uint32_t, profile);
}

/* The number that text is, written as catalog_model_name writes it (no sign, no leading zero), or -1. */
static int64_t variant_number(const char *text)
{
  uint64_t number = 0;
  if (!g_ascii_isdigit(text[0]) || (text[0] == '0' && text[1]))
    return -1;
  for (; *text; text++) {
    if (!g_ascii_isdigit(*text))
      return -1;
    number = number * 10 + (uint64_t)(*text - '0');
    if (number > UINT32_MAX)
      return -1;
  }
  return (int64_t)number;
}

int64_t catalog_find(const struct catalog *catalog, const char *name, int64_t *profile_index)
{
  char prefix[256];
  const char *dash = strrchr(name, '-');
  if (profile_index)
    *profile_index = profile_find(catalog, name);
  if (!dash || (size_t)(dash - name) >= sizeof prefix)
    return -1;
  int64_t variant = variant_number(dash + 1);
  memcpy(prefix, name, (size_t)(dash - name));
  prefix[dash - name] = 0;
  int64_t profile = variant < 0 ? -1 : profile_find(catalog, prefix);
  if (profile < 0 || variant >= catalog_variants(catalog, (uint32_t)profile))
    return -1;
  return g_array_index(catalog->first_model, uint32_t, (uint32_t)profile) + variant;
}

char *catalog_model_name(const struct catalog *catalog, uint32_t model)
{
  return g_strdup_printf("%s-%u", catalog_profile(catalog, model)->name,
                         g_array_index(catalog->models, struct model, model).variant);
}
