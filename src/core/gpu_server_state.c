/* What lies and runs on a GPU server now, for an onlooker. */
#include "core/gpu_server_internal.h"

void gpu_server_gpu_state(const struct gpu_server *s, uint32_t index, struct gpu_state *state)
{
  struct gpu_server *server = (struct gpu_server *)s; /* the slabs' accessors are for those who change them */
  const struct gpu *gpu = &s->gpu[index];
  *state = (struct gpu_state){.running = gpu->running};
  for (uint32_t t = gpu->first; t != NO_INDEX; t = task_at(server, t)->next)
    state->waiting++;
  for (uint32_t l = gpu->loads_first; l != NO_INDEX; l = load_at(server, l)->next)
    state->loads[load_at(server, l)->source]++;
  if (!gpu->memory)
    return;
  state->used_bytes = tier_used(gpu->memory);
  state->limit_bytes = tier_capacity(gpu->memory);
  state->models = tier_count(gpu->memory);
}

gboolean gpu_server_cache_state(const struct gpu_server *s, struct cache_state *state)
{
  if (!s->host)
    return FALSE;
  *state = (struct cache_state){
      .used_bytes = tier_used(s->host), .limit_bytes = tier_capacity(s->host), .models = tier_count(s->host)};
  return TRUE;
}
