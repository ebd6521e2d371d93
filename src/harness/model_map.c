/* Popularity and names; see model_map.h. */
#include "harness/model_map.h"

#include "core/record.h"
#include "harness/random.h"

struct name_rank {
  char *name;
  uint64_t rows;
  uint32_t index; /* in order of first sight */
  uint32_t model; /* NO_INDEX: not ranked */
};

struct model_map {
  const struct setup *setup;
  gsl_rng *rng;
  struct zipf *all;
  struct zipf **profile; /* [profiles] over a profile's variants */
  uint32_t models, turn;
  GHashTable *names; /* name -> struct name_rank *, owned by order; looked up only */
  GPtrArray *order;  /* of struct name_rank *, by index */
};

struct model_map *model_map_new(const struct setup *setup)
{
  struct model_map *map = g_new0(struct model_map, 1);
  const struct catalog *catalog = setup->catalog;
  map->setup = setup;
  map->rng = random_stream(setup->experiment->seed, "popularity");
  map->models = catalog_models(catalog);
  map->all = zipf_new(map->models, setup->experiment->zipf);
  map->profile = g_new0(struct zipf *, catalog->profiles->len);
  for (uint32_t p = 0; p < catalog->profiles->len; p++)
    if (catalog_variants(catalog, p) > 0)
      map->profile[p] = zipf_new(catalog_variants(catalog, p), setup->experiment->zipf);
  map->names = g_hash_table_new(g_str_hash, g_str_equal);
  map->order = g_ptr_array_new();
  return map;
}

void model_map_free(struct model_map *map)
{
  if (!map)
    return;
  gsl_rng_free(map->rng);
  zipf_free(map->all);
  for (uint32_t p = 0; p < map->setup->catalog->profiles->len; p++)
    if (map->profile[p])
      zipf_free(map->profile[p]);
  g_free(map->profile);
  for (uint32_t i = 0; i < map->order->len; i++) {
    struct name_rank *rank = map->order->pdata[i];
    g_free(rank->name);
    g_free(rank);
  }
  g_ptr_array_unref(map->order);
  g_hash_table_unref(map->names);
  g_free(map);
}

static const struct name_rank *name_find(struct model_map *map, const char *name)
{
  struct name_rank *rank = g_hash_table_lookup(map->names, name);
  if (!rank) {
    rank = g_new0(struct name_rank, 1);
    *rank = (struct name_rank){.name = g_strdup(name), .index = map->order->len, .model = NO_INDEX};
    g_hash_table_insert(map->names, rank->name, rank);
    g_ptr_array_add(map->order, rank);
  }
  return rank;
}

gboolean model_map_resolve(struct model_map *map, const char *name, struct target *target)
{
  enum map_kind kind = map->setup->experiment->map;
  int64_t profile = -1, model = name ? catalog_find(map->setup->catalog, name, &profile) : -1;
  *target = (struct target){.kind = TARGET_ANY};
  if (model >= 0)
    *target = (struct target){TARGET_MODEL, (uint32_t)model};
  else if (profile >= 0 && map->profile[profile])
    *target = (struct target){TARGET_PROFILE, (uint32_t)profile};
  else if (name && kind == MAP_HASH)
    *target = (struct target){TARGET_NAME, name_find(map, name)->index};
  else
    return !name || kind != MAP_NAME;
  return TRUE;
}

uint32_t model_map_draw(struct model_map *map)
{
  if (map->setup->experiment->select == SELECT_LOOP)
    return map->setup->popular[map->turn++ % map->models];
  return map->setup->popular[zipf_draw(map->all, map->rng)];
}

/* The model of a ranked name, else NO_INDEX. */
static uint32_t ranked_model(const struct model_map *map, uint32_t index)
{
  return ((const struct name_rank *)map->order->pdata[index])->model;
}

uint32_t model_map_pick(struct model_map *map, struct target target)
{
  switch ((enum target_kind)target.kind) {
  case TARGET_MODEL:
    return target.index;
  case TARGET_PROFILE:
    return g_array_index(map->setup->catalog->first_model, uint32_t, target.index) +
           zipf_draw(map->profile[target.index], map->rng);
  case TARGET_NAME:
    if (ranked_model(map, target.index) != NO_INDEX)
      return ranked_model(map, target.index);
    break;
  case TARGET_ANY:
    break;
  }
  return model_map_draw(map);
}

void model_map_count(struct model_map *map, struct target target)
{
  if (target.kind == TARGET_NAME)
    ((struct name_rank *)map->order->pdata[target.index])->rows++;
}

/* More rows first; equal ones in order of first sight. */
static int by_rows(gconstpointer a, gconstpointer b)
{
  const struct name_rank *x = *(struct name_rank *const *)a, *y = *(struct name_rank *const *)b;
  if (x->rows != y->rows)
    return x->rows < y->rows ? 1 : -1;
  return x->index < y->index ? -1 : 1;
}

void model_map_rank(struct model_map *map)
{
  g_autoptr(GPtrArray) sorted = g_ptr_array_new();
  for (uint32_t i = 0; i < map->order->len; i++)
    g_ptr_array_add(sorted, map->order->pdata[i]);
  g_ptr_array_sort(sorted, by_rows);
  for (uint32_t i = 0; i < sorted->len; i++)
    ((struct name_rank *)sorted->pdata[i])->model = map->setup->popular[i % map->models];
}

void model_map_mix(const struct model_map *map, struct target target, double *part)
{
  const struct catalog *catalog = map->setup->catalog;
  uint32_t model = target.kind == TARGET_MODEL  ? target.index
                   : target.kind == TARGET_NAME ? ranked_model(map, target.index)
                                                : NO_INDEX;
  for (uint32_t p = 0; p < catalog->profiles->len; p++)
    part[p] = 0;
  if (target.kind == TARGET_PROFILE) {
    part[target.index] = 1;
  } else if (model != NO_INDEX) {
    part[catalog_model(catalog, model)->profile] = 1;
  } else {
    gboolean loop = map->setup->experiment->select == SELECT_LOOP;
    for (uint32_t i = 0; i < map->models; i++)
      part[catalog_model(catalog, map->setup->popular[i])->profile] +=
          loop ? 1.0 / map->models : zipf_probability(map->all, i);
  }
}
