/* Least outstanding work: with equal GPUs and known service times this is one first-come-first-served queue.
 */
#include "core/balancer.h"

static gboolean least_loaded_choose(struct cluster_view *view, const struct balance_request *request,
                                    int64_t now, struct choice *choice)
{
  uint32_t gpu = balancer_least_work(view);
  if (gpu == NO_INDEX)
    return FALSE;
  choice->gpu = gpu;
  choice->reason = REASON_LEAST_LOADED;
  choice->other_ns = TIME_NEVER;
  cluster_view_forecast(view, gpu, request->model, request->service_ns, now, &choice->forecast);
  return TRUE;
}

const struct balancer_ops balancer_least_loaded = {.name = "least_loaded", .choose = least_loaded_choose};
