/* Processes (MPS): a process with the model and the shortest queue, if it has room; else start one on a GPU
 * with no request; else wait in the central queue. Among equals, training is left alone. */
#include "core/balancer.h"

static gboolean is_less_busy(const struct gpu_view *gpu, const struct gpu_view *other)
{
  if (gpu->outstanding != other->outstanding)
    return gpu->outstanding < other->outstanding;
  return !gpu->training && other->training;
}

/* Fewest requests at the model's process; among equals, the GPU whose other processes have fewest. */
static uint32_t shortest_process(const struct cluster_view *view, uint32_t model)
{
  uint32_t best = NO_INDEX, least = UINT32_MAX;
  for (uint32_t g = 0; g < view->gpus; g++) {
    if (view->free_at[g] == TIME_NEVER || !bit_get(view_holds(view, model), g))
      continue;
    uint32_t queue = tier_pins(view->gpu[g].shadow, model);
    uint32_t most = view->config->hardware[view->gpu[g].hw].mps_queue_max;
    if (most > 0 && queue >= most)
      continue;
    if (queue < least || (queue == least && is_less_busy(&view->gpu[g], &view->gpu[best]))) {
      least = queue;
      best = g;
    }
  }
  return best;
}

/* A GPU with no request, the one that needs to evict least; among equals, one without a trainer. */
static uint32_t idle_gpu(const struct cluster_view *view, uint32_t model)
{
  uint32_t best = NO_INDEX;
  uint64_t least = UINT64_MAX;
  for (uint32_t g = 0; g < view->gpus; g++) {
    if (view->free_at[g] == TIME_NEVER || view->gpu[g].outstanding > 0 || bit_get(view_holds(view, model), g))
      continue;
    uint64_t evicts = cluster_view_evicts(view, g, model);
    if (evicts < least || (evicts == least && is_less_busy(&view->gpu[g], &view->gpu[best]))) {
      least = evicts;
      best = g;
    }
  }
  return best;
}

static gboolean processes_choose(struct cluster_view *view, const struct balance_request *request,
                                 int64_t now, struct choice *choice)
{
  choice->reason = REASON_SHORT_QUEUE;
  choice->gpu = shortest_process(view, request->model);
  if (choice->gpu == NO_INDEX) {
    choice->gpu = idle_gpu(view, request->model);
    choice->reason = REASON_PROCESS_START;
  }
  if (choice->gpu == NO_INDEX)
    return FALSE;
  choice->other_ns = TIME_NEVER;
  cluster_view_forecast(view, choice->gpu, request->model, request->service_ns, now, &choice->forecast);
  return TRUE;
}

const struct balancer_ops balancer_processes = {
    .name = "processes", .waits = TRUE, .choose = processes_choose};
