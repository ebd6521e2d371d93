/* Models: measured layer tables (profiles) and the catalog of all models of a run.
 *
 * A profile is one network as a sequence of layers in execution order. Its bytes are the same on every GPU;
 * its compute times are per GPU kind ("hw", index into the catalog's hardware list). A model is one variant
 * of a profile with weights of its own; model ids are dense, 0 .. catalog_models() - 1, variants of one
 * profile adjacent. The catalog is built by the harness, then read-only and shared by all actors of a run. */
#ifndef DM_MODEL_H
#define DM_MODEL_H

#include <glib.h>
#include "core/units.h"

#define CATALOG_HW_MAX 8

/* One profile as measured on one GPU kind. */
struct profile_timing {
  double *layer_ns;   /* [layers] compute time, scaled so that the sum is warm_ns (times compute_scale) */
  double warm_ns;     /* sum of layer_ns */
  double unpickle_ns; /* deserializing with the framework; 0 = not measured */
  double first_inference_ns; /* first inference in a new process; 0 = not measured: then it is a warm one */
  double swap_extra_ns; /* stop-and-go: beyond bytes at the pageable rates and tensors at ray_tensor_us, out
                           and in together; 0 = nothing */
  gboolean estimated;   /* figures that use it must say so */
};

struct profile {
  char *name;
  uint32_t layers;
  uint64_t *layer_bytes; /* [layers] */
  char **layer_names;    /* [layers] or NULL */
  uint64_t param_bytes;  /* sum */
  uint32_t tensors;      /* parameter and buffer tensors moved by a stop-and-go copy */
  uint32_t batch;
  double input_token_ns; /* extra compute per input token; 0 = tokens ignored */
  double output_token_ns;
  struct profile_timing timing[CATALOG_HW_MAX]; /* by hw index */
};

struct model {
  uint32_t profile; /* index into catalog->profiles */
  uint32_t variant; /* 0-based within the profile: "resnet152-7" is variant 7 */
};

struct catalog {
  GPtrArray *profiles; /* of struct profile *, owned */
  GArray *models;      /* of struct model, by model id */
  uint32_t hw_count;
  GArray *first_model; /* of uint32_t: model id of each profile's variant 0 */
  GHashTable *by_name; /* profile name to index + 1; looked up only, never iterated */
};

/* All layers zero; every timing has its layer_ns. */
struct profile *profile_new(const char *name, uint32_t layers);
void profile_free(struct profile *profile);

/* Sets param_bytes from layer_bytes. */
void profile_sum(struct profile *profile);
/* What the first inference in a new process takes beyond a warm one. */
static inline double first_inference_more_ns(const struct profile_timing *timing)
{
  return timing->first_inference_ns > timing->warm_ns ? timing->first_inference_ns - timing->warm_ns : 0;
}

/* Scales timing[hw].layer_ns so that its sum is warm_ns (all equal parts if the rows sum to 0). */
void profile_scale(struct profile *profile, uint32_t hw, double warm_ns);

struct catalog *catalog_new(uint32_t hw_count);
void catalog_free(struct catalog *catalog);
/* Takes profile (its name is not to change any more; of two with one name the first is found); adds its
 * variants' models; returns the first model id. */
uint32_t catalog_add(struct catalog *catalog, struct profile *profile, uint32_t variants);
/* Models of one profile: their ids are consecutive from first_model[profile]. */
uint32_t catalog_variants(const struct catalog *catalog, uint32_t profile);
/* Model id of "profile-N" (a variant) or -1; *profile_index gets the index of a profile named exactly so,
 * else -1. */
int64_t catalog_find(const struct catalog *catalog, const char *name, int64_t *profile_index);
/* "profile-N"; free with g_free. */
char *catalog_model_name(const struct catalog *catalog, uint32_t model);

static inline uint32_t catalog_models(const struct catalog *catalog)
{
  return catalog->models->len;
}

static inline const struct model *catalog_model(const struct catalog *catalog, uint32_t model)
{
  return &((const struct model *)(const void *)catalog->models->data)[model];
}

static inline const struct profile *catalog_profile(const struct catalog *catalog, uint32_t model)
{
  const struct model *m = catalog_model(catalog, model);
  return (const struct profile *)catalog->profiles->pdata[m->profile];
}

static inline uint64_t catalog_bytes(const struct catalog *catalog, uint32_t model)
{
  return catalog_profile(catalog, model)->param_bytes;
}

#endif
