/* Popularity and names; see model_map.h. */
#include "harness/model_map.h"

#include <math.h>

#include "harness/random.h"

struct name_rank {
  char *name;
  uint64_t rows;
  uint32_t model;
};

struct model_map {
  const struct setup *setup;
  gsl_rng *rng;
  struct zipf *all;
  struct zipf **profile; /* [profiles] over a profile's variants */
  uint32_t models, turn;
  GHashTable *names; /* name -> struct name_rank *, owned; looked up only */
  GPtrArray *order;  /* the same, in order of first sight */
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

void model_map_count(struct model_map *map, const char *name)
{
  struct name_rank *rank = g_hash_table_lookup(map->names, name);
  if (!rank) {
    rank = g_new0(struct name_rank, 1);
    rank->name = g_strdup(name);
    g_hash_table_insert(map->names, rank->name, rank);
    g_ptr_array_add(map->order, rank);
  }
  rank->rows++;
}

/* More rows first; equal ones in order of first sight (the sort is stable). */
static int by_rows(gconstpointer a, gconstpointer b, gpointer unused)
{
  const struct name_rank *x = *(struct name_rank *const *)a, *y = *(struct name_rank *const *)b;
  (void)unused;
  return x->rows < y->rows ? 1 : x->rows > y->rows ? -1 : 0;
}

void model_map_rank(struct model_map *map)
{
  g_ptr_array_sort_with_data(map->order, by_rows, NULL);
  for (uint32_t i = 0; i < map->order->len; i++)
    ((struct name_rank *)map->order->pdata[i])->model = map->setup->popular[i % map->models];
}

uint32_t model_map_draw(struct model_map *map)
{
  if (map->setup->experiment->select == SELECT_LOOP)
    return map->setup->popular[map->turn++ % map->models];
  return map->setup->popular[zipf_draw(map->all, map->rng)];
}

int64_t model_map_find(struct model_map *map, const char *name)
{
  int64_t profile = -1, model = name ? catalog_find(map->setup->catalog, name, &profile) : -1;
  if (model >= 0)
    return model;
  if (profile >= 0 && map->profile[profile])
    return g_array_index(map->setup->catalog->first_model, uint32_t, profile) +
           zipf_draw(map->profile[profile], map->rng);
  if (name && map->setup->experiment->map == MAP_NAME)
    return -1;
  if (name && map->setup->experiment->map == MAP_HASH) {
    const struct name_rank *rank = g_hash_table_lookup(map->names, name);
    if (rank)
      return rank->model;
  }
  return model_map_draw(map);
}

double model_map_mean_service_ns(const struct model_map *map)
{
  double mean = 0;
  for (uint32_t i = 0; i < map->models; i++) {
    const struct model *model = catalog_model(map->setup->catalog, map->setup->popular[i]);
    double part =
        map->setup->experiment->select == SELECT_LOOP ? 1.0 / map->models : zipf_probability(map->all, i);
    mean += part * resident_ns(map->setup->plans, model->profile, 0);
  }
  return mean;
}
