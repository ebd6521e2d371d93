/* What a request would cost on a GPU, as the controller believes it: when its model would be there, and when
 * it would be done; see cluster_view.h. */
#include "core/cluster_view.h"

double cluster_view_service_ns(const struct cluster_view *view, uint32_t gpu, uint32_t model,
                               int64_t service_ns)
{
  if (service_ns > 0)
    return (double)service_ns;
  const struct model *m = catalog_model(view->config->catalog, model);
  return resident_ns(view->config->plans, m->profile, view->gpu[gpu].hw);
}

/* A remote load's time on the network beside what else the server's link still has to bring, over a link that
 * lately gave less than its nominal rate. Max-min sharing gives each of n other loads at most as much as
 * ours. */
static double network_ns(const struct cluster_view *view, uint32_t gpu, uint64_t bytes, double nominal)
{
  const struct server_view *server = &view->server[view->gpu[gpu].server];
  double rate = nominal, most = (double)server->fetches * (double)bytes;
  if (server->net_rate > 0 && (nominal <= 0 || server->net_rate < nominal))
    rate = server->net_rate;
  double others = (double)server->net_left < most ? (double)server->net_left : most;
  return transfer_ns(bytes, rate) + (rate > 0 ? others * 1e9 / rate : 0);
}

/* What the loads of the GPUs behind the same PCIe switch take of its link: each at most as much as ours. */
static double switch_ns(const struct cluster_view *view, uint32_t gpu, double pcie_ns, int64_t now)
{
  const struct gpu_view *gv = &view->gpu[gpu];
  const struct server_config *sc = &view->config->server[gv->server];
  uint32_t width = view->config->hardware[gv->hw].gpus_per_pcie_switch;
  double sum = 0;
  if (width <= 1)
    return 0;
  uint32_t from = sc->first_gpu + (gpu - sc->first_gpu) / width * width, end = sc->first_gpu + sc->gpus;
  for (uint32_t g = from; g < from + width && g < end; g++) {
    double left = (double)(view->gpu[g].load_until - now);
    if (g != gpu && left > 0)
      sum += left < pcie_ns ? left : pcie_ns;
  }
  return sum;
}

/* Stages overlap: a load takes as much longer than alone as the busiest stage takes longer than the slowest
 * does alone. pcie_ns: of that, its own time on PCIe. */
static double contention_ns(const struct cluster_view *view, uint32_t gpu, uint64_t bytes,
                            const struct load_path *path, gboolean fetches, int64_t now, double *pcie_ns)
{
  *pcie_ns = transfer_ns(bytes, view->config->hardware[view->gpu[gpu].hw].pcie_bytes_s);
  double alone = *pcie_ns, busiest = *pcie_ns + switch_ns(view, gpu, *pcie_ns, now);
  if (path->remote) {
    double net = transfer_ns(bytes, path->net_bytes_s);
    double shared = fetches ? network_ns(view, gpu, bytes, path->net_bytes_s) : net;
    alone = net > alone ? net : alone;
    busiest = shared > busiest ? shared : busiest;
  }
  return busiest > alone ? busiest - alone : 0;
}

static double process_start_ns(const struct cluster_view *view, uint32_t gpu, const struct profile *profile)
{
  const struct hardware *hw = &view->config->hardware[view->gpu[gpu].hw];
  const struct profile_timing *timing = &profile->timing[view->gpu[gpu].hw];
  return hw->mps_process_start_ns + timing->unpickle_ns +
         transfer_ns(profile->param_bytes, hw->pageable_bytes_s) + first_inference_more_ns(timing);
}

/* Stop and go: nothing overlaps; a model that must leave is copied back first. Which one leaves is not known:
 * beyond its bytes it is taken to cost what the new one will when it leaves. */
static double stop_and_go_ns(const struct cluster_view *view, uint32_t gpu, uint32_t model)
{
  const struct hardware *hw = &view->config->hardware[view->gpu[gpu].hw];
  const struct profile *profile = catalog_profile(view->config->catalog, model);
  double back = 0, tensors = profile->tensors * hw->ray_tensor_ns;
  uint64_t evicts = cluster_view_evicts(view, gpu, model);
  if (evicts > 0)
    back = transfer_ns(evicts, hw->pageable_to_host_bytes_s) + tensors +
           profile->timing[view->gpu[gpu].hw].swap_extra_ns;
  return back + transfer_ns(profile->param_bytes, hw->pageable_bytes_s) + tensors;
}

static enum load_source forecast_source(const struct cluster_view *view, uint32_t gpu, uint32_t model)
{
  enum residence residence = view->config->system->residence;
  if (residence == RESIDENCE_HOST ||
      bit_get(view->cached + (size_t)model * view->server_words, view->gpu[gpu].server))
    return SOURCE_HOST;
  return residence == RESIDENCE_SSD ? SOURCE_SSD : SOURCE_REMOTE;
}

/* Load and compute of a missing model. */
struct missing {
  double latency_ns;
  double load_ns; /* until it is on the GPU */
  double pcie_ns; /* its own time on PCIe, where that overlaps with other loads */
  enum load_source source;
  gboolean joins; /* its server fetches it already, for another GPU */
};

static struct missing missing_forecast(const struct cluster_view *view, uint32_t gpu, uint32_t model,
                                       double service, int64_t now)
{
  const struct config *config = view->config;
  const struct profile *profile = catalog_profile(config->catalog, model);
  const struct model *m = catalog_model(config->catalog, model);
  struct missing missing = {.source = forecast_source(view, gpu, model)};
  if (!config->system->pipelined) {
    missing.load_ns = config->system->residence == RESIDENCE_PROCESS ? process_start_ns(view, gpu, profile)
                                                                     : stop_and_go_ns(view, gpu, model);
    missing.latency_ns = missing.load_ns + service;
    return missing;
  }
  const struct load_plan *plan = load_plan(config->plans, m->profile, view->gpu[gpu].hw, missing.source);
  missing.joins = missing.source == SOURCE_REMOTE && !config->gpudirect &&
                  bit_get(view->coming + (size_t)model * view->server_words, view->gpu[gpu].server);
  double more = contention_ns(view, gpu, profile->param_bytes, &plan->path,
                              missing.source == SOURCE_REMOTE && !missing.joins, now, &missing.pcie_ns);
  missing.load_ns = plan->load_ns + more;
  double latency =
      plan->latency_ns + more + service - resident_ns(config->plans, m->profile, view->gpu[gpu].hw);
  missing.latency_ns = latency > missing.load_ns ? latency : missing.load_ns;
  if (missing.joins)
    missing.source = SOURCE_HOST;
  return missing;
}

/* Beside a process the rest of the step takes its share of the GPU; else requests wait for the trainer. */
static double training_penalty_ns(const struct cluster_view *view, uint32_t gpu, double service)
{
  if (!view->gpu[gpu].training || view->gpu[gpu].saving)
    return 0;
  double step = (double)view->config->train_step_ns;
  if (view->config->system->sharing == SHARING_PROCESS) {
    double share = view->config->hardware[view->gpu[gpu].hw].mps_train_share;
    return share < 1 ? MIN(share * step / 2, share / (1 - share) * service) : step / 2;
  }
  if (!view->config->yield_layer)
    return step / 2;
  const struct profile *p = view->config->catalog->profiles->pdata[view->config->train_profile];
  return step / (2 * (double)p->layers);
}

static enum record_reason missing_reason(const struct missing *missing)
{
  return missing->joins                   ? REASON_JOIN
         : missing->source == SOURCE_HOST ? REASON_HOST
         : missing->source == SOURCE_SSD  ? REASON_SSD
                                          : REASON_REMOTE;
}

static void missing_finish(const struct cluster_view *view, uint32_t gpu, int64_t start, int64_t arrives,
                           double service, struct missing missing, struct forecast *forecast)
{
  /* Where the GPU has room for a second model, the load runs while earlier requests compute, but behind
   * earlier loads. */
  gboolean ahead = view->config->system->pipelined && config_models_max(view->config, view->gpu[gpu].hw) != 1;
  int64_t begin = ahead ? arrives : start;
  int64_t behind = view->gpu[gpu].load_until + ns_round(missing.pcie_ns);
  forecast->source = missing.source;
  forecast->reason = missing_reason(&missing);
  forecast->load_ns = ns_round(missing.latency_ns);
  forecast->loaded_ns = max_i64(begin + ns_round(missing.load_ns), behind);
  forecast->finish_ns = max_i64(start + ns_round(service),
                                forecast->loaded_ns + ns_round(missing.latency_ns - missing.load_ns));
}

void cluster_view_forecast(const struct cluster_view *view, uint32_t gpu, uint32_t model, int64_t service_ns,
                           int64_t now, struct forecast *forecast)
{
  double service = cluster_view_service_ns(view, gpu, model, service_ns);
  int64_t arrives = now + view->hop_ns[view->gpu[gpu].hw];
  int64_t start = max_i64(view->free_at[gpu], arrives);
  forecast->wait_ns = start - arrives;
  if (view->gpu[gpu].training)
    start += ns_round(training_penalty_ns(view, gpu, service));
  forecast->source = LOAD_SOURCES;
  if (!view->gpu[gpu].shadow || bit_get(view_holds(view, model), gpu)) {
    gboolean ready = !view->gpu[gpu].shadow || bit_get(view->ready + (size_t)model * view->gpu_words, gpu);
    forecast->reason = ready ? REASON_RESIDENT : REASON_JOIN;
    forecast->load_ns = ns_round(service / view->speed[view->gpu[gpu].hw]);
    forecast->finish_ns = start + forecast->load_ns;
    return;
  }
  missing_finish(view, gpu, start, arrives, service, missing_forecast(view, gpu, model, service, now),
                 forecast);
}
