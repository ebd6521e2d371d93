/* Earliest start: ServerlessLLM's locality-aware choice. Estimated start = wait for the GPU, then the load
 * from the best local tier; only servers that have the model in GPU memory, DRAM or on their SSD qualify. */
#include "core/balancer.h"

static gboolean has_local_copy(const struct cluster_view *view, uint32_t gpu, uint32_t model)
{
  uint32_t server = view->gpu[gpu].server;
  return bit_get(view_holds(view, model), gpu) ||
         bit_get(view->cached + (size_t)model * view->server_words, server) ||
         config_ssd_has(view->config, server, model);
}

static gboolean earliest_start_choose(struct cluster_view *view, const struct balance_request *request,
                                      int64_t now, struct choice *choice)
{
  int64_t least = TIME_NEVER;
  choice->gpu = NO_INDEX;
  choice->other_ns = TIME_NEVER;
  for (uint32_t gpu = 0; gpu < view->gpus; gpu++) {
    if (view->free_at[gpu] == TIME_NEVER || !has_local_copy(view, gpu, request->model))
      continue;
    struct forecast forecast;
    cluster_view_forecast(view, gpu, request->model, request->service_ns, now, &forecast);
    double service = cluster_view_service_ns(view, gpu, request->model, request->service_ns);
    int64_t start = forecast.finish_ns - ns_round(service);
    if (start >= least)
      continue;
    choice->other_ns = least;
    least = start;
    choice->gpu = gpu;
    choice->forecast = forecast;
    choice->reason = forecast.reason;
  }
  return choice->gpu != NO_INDEX;
}

const struct balancer_ops balancer_earliest_start = {.name = "earliest_start",
                                                     .choose = earliest_start_choose};
