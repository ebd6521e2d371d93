/* What the controller counts for an onlooker: requests by their end, times, members. */
#include "core/controller_internal.h"

const int64_t latency_bound_ns[LATENCY_BOUNDS] = {
    1 * NS_PER_MS,    2500000,         5 * NS_PER_MS,   10 * NS_PER_MS,  25 * NS_PER_MS,
    50 * NS_PER_MS,   100 * NS_PER_MS, 250 * NS_PER_MS, 500 * NS_PER_MS, 1000 * NS_PER_MS,
    2500 * NS_PER_MS, 5 * NS_PER_S,    10 * NS_PER_S,   30 * NS_PER_S};

uint32_t latency_class(int64_t took_ns)
{
  uint32_t class = 0;
  while (class < LATENCY_BOUNDS && took_ns > latency_bound_ns[class])
    class ++;
  return class;
}

void controller_count_answer(struct controller *c, const struct request_slot *r, enum outcome outcome,
                             enum found found)
{
  struct controller_usage *u = &c->usage;
  u->outcomes[outcome]++;
  if (outcome != OUTCOME_COMPLETED)
    return;
  int64_t took = world_now(c->world) - r->arrived;
  u->latency[latency_class(took)]++;
  u->latency_ns += (double)took;
  u->found[found]++;
}

void controller_usage(const struct controller *c, struct controller_usage *usage)
{
  *usage = c->usage;
}

void controller_members(const struct controller *c, enum actor_kind pool, uint32_t *count)
{
  for (uint32_t state = 0; state < MEMBER_STATES; state++)
    count[state] = 0;
  if (pool == ACTOR_GPU_SERVER)
    for (uint32_t s = 0; s < c->config->servers; s++)
      count[c->view->server[s].state]++;
  else
    for (uint32_t i = 0; i < c->config->memory_servers; i++)
      count[c->memory[i].state]++;
}
