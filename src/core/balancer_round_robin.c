/* Round robin over the usable GPUs, whatever they hold. */
#include "core/balancer.h"

static gboolean round_robin_choose(struct cluster_view *view, const struct balance_request *request,
                                   int64_t now, struct choice *choice)
{
  for (uint32_t tried = 0; tried < view->gpus; tried++) {
    uint32_t gpu = view->turn;
    view->turn = (view->turn + 1) % view->gpus;
    if (view->free_at[gpu] == TIME_NEVER)
      continue;
    choice->gpu = gpu;
    choice->reason = REASON_ROUND_ROBIN;
    choice->other_ns = TIME_NEVER;
    cluster_view_forecast(view, gpu, request->model, request->service_ns, now, &choice->forecast);
    return TRUE;
  }
  return FALSE;
}

const struct balancer_ops balancer_round_robin = {.name = "round_robin", .choose = round_robin_choose};
