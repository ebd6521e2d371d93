/* Which model of the run a request is for: by popularity, or by the name that a trace gives. */
#ifndef DM_MODEL_MAP_H
#define DM_MODEL_MAP_H

#include "harness/setup.h"
#include "harness/trace.h"

struct model_map;

struct model_map *model_map_new(const struct setup *setup);
void model_map_free(struct model_map *map);
/* map = hash: names are ranked by how many rows they have; feed every row first, then rank. */
void model_map_count(struct model_map *map, const char *name);
void model_map_rank(struct model_map *map);
/* The next model by popularity (or, select = loop, in turn). */
uint32_t model_map_draw(struct model_map *map);
/* -1: map = name and no model has it. */
int64_t model_map_find(struct model_map *map, const char *name);
/* Mean over the popularity of the profile's compute time on the first hardware, ns. */
double model_map_mean_service_ns(const struct model_map *map);

#endif
