/* Cache-aware: the GPU with the earliest predicted finish, from outstanding work, residency, and load time
 * under the link use last reported. Among GPUs that would finish about equally early, the one that evicts
 * least. */
#include "core/balancer.h"

/* Forecast finishes closer than this part of the load are equal: forecasts are no better than that, and what
 * is evicted must be loaded again. */
#define EQUAL_PART 16

struct best {
  uint32_t gpu;
  struct forecast forecast;
  uint64_t evicts;
};

/* GPUs that hold the model (or will): only their queues differ, so one pass over free_at decides. */
static void best_holder(const struct cluster_view *view, const struct balance_request *request, int64_t now,
                        struct best *best)
{
  int64_t least = TIME_NEVER;
  const uint64_t *holds = view_holds(view, request->model);
  best->gpu = NO_INDEX;
  for (uint32_t word = 0; word < view->gpu_words; word++)
    for (uint64_t bits = holds[word]; bits; bits &= bits - 1) {
      uint32_t gpu = word * 64 + (uint32_t)__builtin_ctzll(bits);
      int64_t free_at = view->free_at[gpu];
      if (free_at >= least)
        continue;
      least = free_at;
      best->gpu = gpu;
      if (free_at <= now)
        goto found; /* idle: no holder is earlier */
    }
found:
  if (best->gpu != NO_INDEX)
    cluster_view_forecast(view, best->gpu, request->model, request->service_ns, now, &best->forecast);
}

static void best_loader(const struct cluster_view *view, const struct balance_request *request, int64_t now,
                        struct best *best)
{
  const uint64_t *holds = view_holds(view, request->model);
  int64_t best_key = TIME_NEVER;
  best->gpu = NO_INDEX;
  for (uint32_t gpu = 0; gpu < view->gpus; gpu++) {
    if (view->free_at[gpu] == TIME_NEVER || bit_get(holds, gpu))
      continue;
    struct forecast forecast;
    cluster_view_forecast(view, gpu, request->model, request->service_ns, now, &forecast);
    int64_t quantum = max_i64(1, forecast.load_ns / EQUAL_PART);
    int64_t key = best->gpu == NO_INDEX ? forecast.finish_ns : best_key;
    if (best->gpu != NO_INDEX && forecast.finish_ns > key + quantum)
      continue;
    uint64_t evicts = cluster_view_evicts(view, gpu, request->model);
    gboolean better = best->gpu == NO_INDEX || forecast.finish_ns + quantum < key || evicts < best->evicts ||
                      (evicts == best->evicts && forecast.finish_ns < key);
    if (!better)
      continue;
    *best = (struct best){gpu, forecast, evicts};
    best_key = forecast.finish_ns;
  }
}

static gboolean cache_aware_choose(struct cluster_view *view, const struct balance_request *request,
                                   int64_t now, struct choice *choice)
{
  struct best holder, loader = {.gpu = NO_INDEX};
  best_holder(view, request, now, &holder);
  /* A holder without a queue cannot be beaten: loading takes longer than having. */
  if (holder.gpu == NO_INDEX || holder.forecast.wait_ns > 0)
    best_loader(view, request, now, &loader);
  gboolean load = loader.gpu != NO_INDEX &&
                  (holder.gpu == NO_INDEX || loader.forecast.finish_ns < holder.forecast.finish_ns);
  const struct best *best = load ? &loader : &holder, *other = load ? &holder : &loader;
  if (best->gpu == NO_INDEX)
    return FALSE;
  *choice = (struct choice){.gpu = best->gpu,
                            .reason = best->forecast.reason,
                            .forecast = best->forecast,
                            .other_ns = other->gpu == NO_INDEX ? TIME_NEVER : other->forecast.finish_ns};
  return TRUE;
}

const struct balancer_ops balancer_cache_aware = {.name = "cache_aware", .choose = cache_aware_choose};
