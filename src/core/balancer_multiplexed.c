/* Multiplexed: the replica that holds the model if its queue is short, else the least loaded (Ray Serve's
 * model multiplexing). */
#include "core/balancer.h"

#define SHORT_QUEUE 2 /* requests at the replica, the running one included: design, section 4 */

static uint32_t holder_with_shortest_queue(const struct cluster_view *view, uint32_t model, uint32_t below)
{
  uint32_t best = NO_INDEX, least = below;
  for (uint32_t g = 0; g < view->gpus; g++)
    if (view->free_at[g] != TIME_NEVER && bit_get(view_holds(view, model), g) &&
        view->gpu[g].outstanding < least) {
      least = view->gpu[g].outstanding;
      best = g;
    }
  return best;
}

static gboolean multiplexed_choose(struct cluster_view *view, const struct balance_request *request,
                                   int64_t now, struct choice *choice)
{
  uint32_t gpu = holder_with_shortest_queue(view, request->model, SHORT_QUEUE);
  choice->reason = REASON_SHORT_QUEUE;
  if (gpu == NO_INDEX) {
    gpu = balancer_least_work(view);
    choice->reason = REASON_LEAST_LOADED;
  }
  if (gpu == NO_INDEX)
    return FALSE;
  choice->gpu = gpu;
  choice->other_ns = TIME_NEVER;
  cluster_view_forecast(view, gpu, request->model, request->service_ns, now, &choice->forecast);
  return TRUE;
}

const struct balancer_ops balancer_multiplexed = {.name = "multiplexed", .choose = multiplexed_choose};
