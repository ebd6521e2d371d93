/* Cache-aware: the GPU with the earliest predicted finish, from outstanding work, residency, and load time
 * under the link use last reported; a load behind other requests must gain what it costs others. Among GPUs
 * that would finish about equally early, the one that evicts least; then one whose victim is held by another
 * GPU too, so that replicas which a load no longer needs are the first to go; then the earliest; then the
 * longest unused. */
#include "core/balancer.h"

/* Forecast finishes closer than this part of the load are equal: forecasts are no better than that, and what
 * is evicted must be loaded again. */
#define EQUAL_PART 16

struct best {
  uint32_t gpu;
  struct forecast forecast;
  uint64_t evicts;
  gboolean lone; /* the model that would leave first is on no other GPU */
  int64_t
      second_ns; /* earliest finish among those that were weighed and are not the best; TIME_NEVER: none */
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

static gboolean victim_is_lone(const struct cluster_view *view, uint32_t gpu, int64_t now)
{
  uint32_t victim = tier_victim(view->gpu[gpu].shadow, now);
  uint32_t holders = 0;
  if (victim == UINT32_MAX)
    return FALSE;
  const uint64_t *holds = view_holds(view, victim);
  for (uint32_t word = 0; word < view->gpu_words; word++)
    holders += (uint32_t)__builtin_popcountll(holds[word]);
  return holders <= 1;
}

static gboolean is_better(const struct cluster_view *view, const struct best *a, const struct best *b,
                          int64_t quantum)
{
  if (b->gpu == NO_INDEX || a->forecast.finish_ns + quantum < b->forecast.finish_ns)
    return TRUE;
  if (a->evicts != b->evicts)
    return a->evicts < b->evicts;
  if (a->lone != b->lone)
    return b->lone;
  if (a->forecast.finish_ns != b->forecast.finish_ns)
    return a->forecast.finish_ns < b->forecast.finish_ns;
  return a->evicts > 0 && view->gpu[a->gpu].last_dispatch < view->gpu[b->gpu].last_dispatch;
}

static void best_loader(const struct cluster_view *view, const struct balance_request *request, int64_t now,
                        struct best *best)
{
  const uint64_t *holds = view_holds(view, request->model);
  int64_t second = TIME_NEVER;
  best->gpu = NO_INDEX;
  for (uint32_t gpu = 0; gpu < view->gpus; gpu++) {
    if (view->free_at[gpu] == TIME_NEVER || bit_get(holds, gpu))
      continue;
    struct best one = {.gpu = gpu};
    cluster_view_forecast(view, gpu, request->model, request->service_ns, now, &one.forecast);
    int64_t quantum = max_i64(1, one.forecast.load_ns / EQUAL_PART);
    if (best->gpu != NO_INDEX && one.forecast.finish_ns > best->forecast.finish_ns + quantum) {
      second = min_i64(second, one.forecast.finish_ns);
      continue;
    }
    one.evicts = cluster_view_evicts(view, gpu, request->model);
    one.lone = one.evicts > 0 && victim_is_lone(view, gpu, now);
    gboolean better = is_better(view, &one, best, quantum);
    const struct best *loser = better ? best : &one;
    if (loser->gpu != NO_INDEX)
      second = min_i64(second, loser->forecast.finish_ns);
    if (better)
      *best = one;
  }
  best->second_ns = second;
}

/* What a load must gain on where the model is: nothing on an idle GPU; on one where requests wait, as much as
 * they wait, up to the load's time. For it takes links and a place from others: once every queue is long,
 * queues differ by more than a load seems to cost, and if that decided, nearly every request would load, and
 * the links, then full, would keep the queues long. */
static int64_t load_price(const struct forecast *loader)
{
  return min_i64(loader->wait_ns, loader->load_ns);
}

static gboolean cache_aware_choose(struct cluster_view *view, const struct balance_request *request,
                                   int64_t now, struct choice *choice)
{
  struct best holder, loader = {.gpu = NO_INDEX, .second_ns = TIME_NEVER};
  best_holder(view, request, now, &holder);
  /* A holder without a queue cannot be beaten: loading takes longer than having. */
  if (holder.gpu == NO_INDEX || holder.forecast.wait_ns > 0)
    best_loader(view, request, now, &loader);
  gboolean load = loader.gpu != NO_INDEX &&
                  (holder.gpu == NO_INDEX ||
                   holder.forecast.finish_ns - loader.forecast.finish_ns > load_price(&loader.forecast));
  const struct best *best = load ? &loader : &holder, *other = load ? &holder : &loader;
  int64_t other_ns = other->gpu == NO_INDEX ? TIME_NEVER : other->forecast.finish_ns;
  if (best->gpu == NO_INDEX)
    return FALSE;
  gboolean dear = !load && other_ns < best->forecast.finish_ns;
  *choice = (struct choice){.gpu = best->gpu,
                            .reason = dear ? REASON_LOAD_DEAR : best->forecast.reason,
                            .forecast = best->forecast,
                            .other_ns = load ? min_i64(other_ns, loader.second_ns) : other_ns};
  return TRUE;
}

const struct balancer_ops balancer_cache_aware = {.name = "cache_aware", .choose = cache_aware_choose};
