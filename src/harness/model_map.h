/* Which model of the run a request is for: by popularity, or by the name that a trace gives.
 *
 * A name is first resolved, which draws nothing and can be done rows ahead; the model is picked when the
 * request is sent. */
#ifndef DM_MODEL_MAP_H
#define DM_MODEL_MAP_H

#include "harness/setup.h"
#include "harness/trace.h"

enum target_kind {
  TARGET_ANY,     /* any model, by popularity */
  TARGET_PROFILE, /* a variant of profile `index`, by popularity */
  TARGET_MODEL,   /* model `index` */
  TARGET_NAME,    /* map = hash: the model that the rank of name `index` gives */
};

struct target {
  uint32_t kind, index;
};

struct model_map;

struct model_map *model_map_new(const struct setup *setup);
void model_map_free(struct model_map *map);
/* FALSE: map = name, and no model has the name. NULL stands for a row without a name. */
gboolean model_map_resolve(struct model_map *map, const char *name, struct target *target);
uint32_t model_map_pick(struct model_map *map, struct target target);
/* The next model by popularity (or, select = loop, in turn). */
uint32_t model_map_draw(struct model_map *map);

/* map = hash: names are ranked by how many rows they have. Count every row's target, then rank; a name that
 * is first met after that goes by popularity. */
void model_map_count(struct model_map *map, struct target target);
void model_map_rank(struct model_map *map);

/* part[p] = probability that a request for the target gets a model of profile p. Names must be ranked. */
void model_map_mix(const struct model_map *map, struct target target, double *part);

#endif
