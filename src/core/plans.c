/* Groupings and shard placements of a run; see plans.h. */
#include "core/plans.h"

static void load_plan_fill(struct load_plan *plan, const struct profile *profile, uint32_t hw,
                           const struct grouping_policy *policy, const struct load_path *path,
                           enum load_source source)
{
  plan->path = *path;
  plan->grouping = grouping_new(profile, hw, policy, path);
  uint32_t groups = plan->grouping->groups;
  double(*stages)[3] = g_malloc_n(groups, sizeof *stages);
  plan->latency_ns = grouping_latency_ns(plan->grouping, path, stages);
  plan->load_ns = stages[groups - 1][1];
  g_free(stages);
  if (source == SOURCE_SSD) {
    struct placement *one = placement_new(SHARDING_PER_APP, plan->grouping, 1, 0);
    plan->local = fetch_plan_new(one, plan->grouping);
    placement_free(one);
  }
}

struct load_plans *load_plans_new(const struct catalog *catalog, const struct hardware *hardware,
                                  const struct hardware *memory, uint32_t memory_servers,
                                  enum sharding_kind sharding, gboolean sequential, gboolean gpudirect,
                                  const struct grouping_policy *policy)
{
  struct load_plans *plans = g_new0(struct load_plans, 1);
  plans->profiles = catalog->profiles->len;
  plans->hw_count = catalog->hw_count;
  plans->plan = g_new0(struct load_plan, (size_t)plans->profiles * plans->hw_count * LOAD_SOURCES);
  plans->resident_ns = g_new0(double, (size_t)plans->profiles * plans->hw_count);
  for (uint32_t p = 0; p < plans->profiles; p++)
    for (uint32_t hw = 0; hw < plans->hw_count; hw++) {
      const struct profile *profile = g_ptr_array_index(catalog->profiles, p);
      for (int source = 0; source < LOAD_SOURCES; source++) {
        struct load_path path = cost_load_path(&hardware[hw], memory, memory_servers ? memory_servers : 1,
                                               sharding, sequential, gpudirect, (enum load_source)source);
        load_plan_fill((struct load_plan *)load_plan(plans, p, hw, (enum load_source)source), profile, hw,
                       policy, &path, (enum load_source)source);
      }
      plans->resident_ns[p * plans->hw_count + hw] =
          grouping_resident_ns(load_plan(plans, p, hw, SOURCE_HOST)->grouping, hardware[hw].launch_ns);
    }
  return plans;
}

void load_plans_free(struct load_plans *plans)
{
  if (!plans)
    return;
  for (size_t i = 0; i < (size_t)plans->profiles * plans->hw_count * LOAD_SOURCES; i++) {
    grouping_free(plans->plan[i].grouping);
    if (plans->plan[i].local)
      fetch_plan_free(plans->plan[i].local);
  }
  g_free(plans->plan);
  g_free(plans->resident_ns);
  g_free(plans);
}

struct pool_plan *pool_plan_new(const struct load_plans *plans, enum sharding_kind sharding, uint32_t version,
                                uint64_t members)
{
  struct pool_plan *plan = g_new0(struct pool_plan, 1);
  *plan = (struct pool_plan){
      .version = version, .members = members, .profiles = plans->profiles, .hw_count = plans->hw_count};
  for (uint32_t i = 0; i < 64; i++)
    if (members >> i & 1)
      plan->server[plan->slots++] = i;
  if (plan->slots == 0)
    return plan;
  plan->rotations = sharding == SHARDING_PER_APP ? plan->slots : 1;
  plan->placement = g_new0(struct placement *, (size_t)plan->profiles * plan->rotations);
  plan->fetch = g_new0(struct fetch_plan *, (size_t)plan->profiles * plan->hw_count * plan->rotations);
  for (uint32_t p = 0; p < plan->profiles; p++)
    for (uint32_t r = 0; r < plan->rotations; r++) {
      /* Shard boundaries follow the groups of GPU kind 0: a placement is one for all readers. */
      const struct grouping *home = load_plan(plans, p, 0, SOURCE_REMOTE)->grouping;
      struct placement *placement = placement_new(sharding, home, plan->slots, r);
      plan->placement[p * plan->rotations + r] = placement;
      for (uint32_t hw = 0; hw < plan->hw_count; hw++)
        plan->fetch[(p * plan->hw_count + hw) * plan->rotations + r] =
            fetch_plan_new(placement, load_plan(plans, p, hw, SOURCE_REMOTE)->grouping);
    }
  return plan;
}

void pool_plan_free(struct pool_plan *plan)
{
  if (!plan)
    return;
  for (uint32_t i = 0; i < plan->profiles * plan->rotations; i++)
    placement_free(plan->placement[i]);
  for (uint32_t i = 0; i < plan->profiles * plan->hw_count * plan->rotations; i++)
    fetch_plan_free(plan->fetch[i]);
  g_free(plan->placement);
  g_free(plan->fetch);
  g_free(plan);
}

const struct fetch_plan *pool_plan_fetch(const struct pool_plan *plan, const struct catalog *catalog,
                                         uint32_t model, uint32_t hw)
{
  const struct model *m = catalog_model(catalog, model);
  return plan->fetch[(m->profile * plan->hw_count + hw) * plan->rotations + m->variant % plan->rotations];
}

uint64_t pool_plan_bytes(const struct pool_plan *plan, const struct catalog *catalog, uint32_t model,
                         uint32_t server, uint32_t replicas)
{
  const struct model *m = catalog_model(catalog, model);
  uint64_t bytes = 0;
  for (uint32_t slot = 0; slot < plan->slots; slot++)
    for (uint32_t copy = 0; copy < replicas && copy < plan->slots; copy++)
      if (pool_plan_server(plan, slot, copy) == server)
        bytes += placement_slot_bytes(
            plan->placement[m->profile * plan->rotations + m->variant % plan->rotations], slot);
  return bytes;
}
