/* Plans of a run: how every profile is grouped for each GPU kind and source, and where its shards lie.
 *
 * load_plans is made once and shared. A pool_plan follows from the set of memory servers alone, so every
 * actor that knows the set derives the same one; it changes when a memory server joins or leaves. */
#ifndef DM_PLANS_H
#define DM_PLANS_H

#include "core/cost.h"
#include "core/sharding.h"

struct load_plan {
  struct grouping *grouping;
  struct load_path path;    /* uncontended */
  double latency_ns;        /* load and compute alone */
  double load_ns;           /* until the last group is on the GPU */
  struct fetch_plan *local; /* SOURCE_SSD: all groups from one device; else NULL */
};

struct load_plans {
  uint32_t profiles, hw_count;
  struct load_plan *plan; /* [(profile * hw_count + hw) * LOAD_SOURCES + source] */
  double *resident_ns;    /* [profile * hw_count + hw] compute time on a GPU that has the model */
};

/* gpudirect: of the remote path (cost.h). */
struct load_plans *load_plans_new(const struct catalog *catalog, const struct hardware *hardware,
                                  const struct hardware *memory, uint32_t memory_servers,
                                  enum sharding_kind sharding, gboolean sequential, gboolean gpudirect,
                                  const struct grouping_policy *policy);
void load_plans_free(struct load_plans *plans);

static inline const struct load_plan *load_plan(const struct load_plans *plans, uint32_t profile, uint32_t hw,
                                                enum load_source source)
{
  return &plans->plan[(profile * plans->hw_count + hw) * LOAD_SOURCES + source];
}

static inline double resident_ns(const struct load_plans *plans, uint32_t profile, uint32_t hw)
{
  return plans->resident_ns[profile * plans->hw_count + hw];
}

struct pool_plan {
  uint32_t version;
  uint64_t members;    /* bit i: memory server i */
  uint32_t slots;      /* number of members */
  uint32_t server[64]; /* [slots] in increasing order */
  uint32_t rotations;  /* per-app: slots; else 1 */
  uint32_t profiles, hw_count;
  struct placement **placement; /* [profile * rotations + rotation] */
  struct fetch_plan **fetch;    /* [(profile * hw_count + hw) * rotations + rotation] */
};

struct pool_plan *pool_plan_new(const struct load_plans *plans, enum sharding_kind sharding, uint32_t version,
                                uint64_t members);
void pool_plan_free(struct pool_plan *plan);
const struct fetch_plan *pool_plan_fetch(const struct pool_plan *plan, const struct catalog *catalog,
                                         uint32_t model, uint32_t hw);
/* Server that holds copy `copy` of slot. */
static inline uint32_t pool_plan_server(const struct pool_plan *plan, uint32_t slot, uint32_t copy)
{
  return plan->server[(slot + copy) % plan->slots];
}
/* Bytes that a server holds of a model under the plan, all copies. */
uint64_t pool_plan_bytes(const struct pool_plan *plan, const struct catalog *catalog, uint32_t model,
                         uint32_t server, uint32_t replicas);

#endif
