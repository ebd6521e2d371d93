/* Pinned: each demand slot has a replica of its own, slot s on the s-th usable GPU; requests without a slot
 * go to their model's. As a Ray Serve user would deploy one replica an application. */
#include "core/balancer.h"

static gboolean pinned_choose(struct cluster_view *view, const struct balance_request *request, int64_t now,
                              struct choice *choice)
{
  if (view->up_gpus == 0)
    return FALSE;
  uint32_t wanted = (request->slot == NO_INDEX ? request->model : request->slot) % view->up_gpus;
  for (uint32_t gpu = 0; gpu < view->gpus; gpu++)
    if (view->free_at[gpu] != TIME_NEVER && wanted-- == 0) {
      choice->gpu = gpu;
      choice->reason = REASON_PINNED;
      choice->other_ns = TIME_NEVER;
      cluster_view_forecast(view, gpu, request->model, request->service_ns, now, &choice->forecast);
      return TRUE;
    }
  return FALSE;
}

const struct balancer_ops balancer_pinned = {.name = "pinned", .choose = pinned_choose};
