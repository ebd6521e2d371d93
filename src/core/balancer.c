/* Registry of balancers, and what several of them share. */
#include <string.h>
#include "core/balancer.h"

static const struct balancer_ops *const registry[] = {
    &balancer_cache_aware, &balancer_least_loaded, &balancer_round_robin,    &balancer_pinned,
    &balancer_multiplexed, &balancer_processes,    &balancer_earliest_start,
};

const struct balancer_ops *balancer_by_name(const char *name)
{
  for (size_t i = 0; i < G_N_ELEMENTS(registry); i++)
    if (strcmp(registry[i]->name, name) == 0)
      return registry[i];
  return NULL;
}

uint32_t balancer_least_work(const struct cluster_view *view)
{
  uint32_t best = NO_INDEX;
  int64_t least = TIME_NEVER;
  for (uint32_t g = 0; g < view->gpus; g++)
    if (view->free_at[g] < least) {
      least = view->free_at[g];
      best = g;
    }
  return best;
}
