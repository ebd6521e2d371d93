/* The controller's beliefs; see cluster_view.h. */
#include "core/cluster_view.h"

/* A victim of the shadow: the model will not be on the GPU any more. */
static void shadow_evicted(void *context, const struct tier_entry *victim, double value)
{
  (void)value;
  const struct shadow_owner *owner = context;
  bit_set(view_holds(owner->view, victim->model), owner->gpu, FALSE);
}

static struct tier *shadow_new(struct cluster_view *view, uint32_t gpu)
{
  const struct config *config = view->config;
  uint32_t hw = view->gpu[gpu].hw;
  view->gpu[gpu].owner = (struct shadow_owner){view, gpu};
  return tier_new(config_gpu_bytes(config, hw), FALSE, config_models_max(config, hw),
                  catalog_models(config->catalog), &tier_policy_lru, shadow_evicted, &view->gpu[gpu].owner);
}

static void gpus_init(struct cluster_view *view)
{
  const struct config *config = view->config;
  for (uint32_t s = 0; s < config->servers; s++)
    for (uint32_t g = 0; g < config->server[s].gpus; g++) {
      uint32_t gpu = config->server[s].first_gpu + g;
      view->gpu[gpu] = (struct gpu_view){.server = s,
                                         .hw = config->server[s].hw,
                                         .first = NO_INDEX,
                                         .last = NO_INDEX,
                                         .last_dispatch = INT64_MIN};
      view->free_at[gpu] = TIME_NEVER;
      if (config->system->residence != RESIDENCE_EVERYWHERE)
        view->gpu[gpu].shadow = shadow_new(view, gpu);
    }
}

struct cluster_view *cluster_view_new(const struct config *config)
{
  struct cluster_view *view = g_new0(struct cluster_view, 1);
  view->config = config;
  view->gpus = config->gpus;
  view->gpu_words = (config->gpus + 63) / 64;
  view->server_words = (config->servers + 63) / 64;
  view->free_at = g_new(int64_t, config->gpus);
  view->gpu = g_new0(struct gpu_view, config->gpus);
  view->server = g_new0(struct server_view, config->servers);
  uint32_t models = catalog_models(config->catalog);
  view->holds = g_new0(uint64_t, (size_t)models * view->gpu_words);
  view->ready = g_new0(uint64_t, (size_t)models * view->gpu_words);
  view->cached = g_new0(uint64_t, (size_t)models * view->server_words);
  view->coming = g_new0(uint64_t, (size_t)models * view->server_words);
  view->speed = g_new(double, config->hardware_count);
  for (uint32_t hw = 0; hw < config->hardware_count; hw++) {
    view->concurrency[hw] = config_concurrency(config, hw);
    view->speed[hw] = hardware_speedup(&config->hardware[hw], view->concurrency[hw]);
    view->hop_ns[hw] = ns_round(config->hardware[hw].control_ns);
  }
  gpus_init(view);
  return view;
}

void cluster_view_free(struct cluster_view *view)
{
  if (!view)
    return;
  for (uint32_t g = 0; g < view->gpus; g++)
    tier_free(view->gpu[g].shadow);
  g_free(view->free_at);
  g_free(view->gpu);
  g_free(view->server);
  g_free(view->holds);
  g_free(view->ready);
  g_free(view->cached);
  g_free(view->coming);
  g_free(view->speed);
  g_free(view);
}

static void gpu_forget(struct cluster_view *view, uint32_t gpu)
{
  if (!view->gpu[gpu].shadow)
    return;
  tier_free(view->gpu[gpu].shadow);
  view->gpu[gpu].shadow = shadow_new(view, gpu);
  for (uint32_t m = 0; m < catalog_models(view->config->catalog); m++) {
    bit_set(view_holds(view, m), gpu, FALSE);
    bit_set(view->ready + (size_t)m * view->gpu_words, gpu, FALSE);
  }
}

static void server_forget(struct cluster_view *view, uint32_t server)
{
  const struct server_config *sc = &view->config->server[server];
  for (uint32_t g = 0; g < sc->gpus; g++)
    gpu_forget(view, sc->first_gpu + g);
  for (uint32_t m = 0; m < catalog_models(view->config->catalog); m++) {
    bit_set(view->cached + (size_t)m * view->server_words, server, FALSE);
    bit_set(view->coming + (size_t)m * view->server_words, server, FALSE);
  }
}

void cluster_view_up(struct cluster_view *view, uint32_t server, int64_t now)
{
  const struct server_config *sc = &view->config->server[server];
  struct server_view *sv = &view->server[server];
  server_forget(view, server);
  *sv = (struct server_view){.state = MEMBER_UP, .last_heard = now};
  for (uint32_t g = sc->first_gpu; g < sc->first_gpu + sc->gpus; g++) {
    view->free_at[g] = now;
    view->gpu[g].training = view->gpu[g].saving = FALSE;
    view->gpu[g].load_until = now;
  }
  view->up_gpus += sc->gpus;
}

void cluster_view_down(struct cluster_view *view, uint32_t server, enum member_state state)
{
  const struct server_config *sc = &view->config->server[server];
  if (view->server[server].state == MEMBER_UP)
    view->up_gpus -= sc->gpus;
  view->server[server].state = state;
  for (uint32_t g = sc->first_gpu; g < sc->first_gpu + sc->gpus; g++)
    view->free_at[g] = TIME_NEVER;
}

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

uint64_t cluster_view_evicts(const struct cluster_view *view, uint32_t gpu, uint32_t model)
{
  uint64_t bytes = 0;
  if (!view->gpu[gpu].shadow || bit_get(view_holds(view, model), gpu))
    return 0;
  tier_can_reserve(view->gpu[gpu].shadow, config_entry_bytes(view->config, view->gpu[gpu].hw, model), &bytes);
  return bytes;
}

int64_t cluster_view_dispatch(struct cluster_view *view, uint32_t gpu, uint32_t model,
                              const struct forecast *forecast, double service_ns, int64_t now)
{
  struct gpu_view *gv = &view->gpu[gpu];
  gv->outstanding++;
  gv->last_dispatch = now;
  gv->work_ns += service_ns;
  view->free_at[gpu] = min_i64(forecast->finish_ns, TIME_NEVER / 2); /* a queue of centuries stays one */
  if (!gv->shadow)
    return forecast->finish_ns;
  if (tier_state(gv->shadow, model) == TIER_ABSENT &&
      tier_reserve(gv->shadow, model, config_entry_bytes(view->config, gv->hw, model), 0, now)) {
    tier_ready(gv->shadow, model);
    bit_set(view_holds(view, model), gpu, TRUE);
    gv->load_until = forecast->loaded_ns;
    if (forecast->source == SOURCE_REMOTE) {
      bit_set(view->coming + (size_t)model * view->server_words, gv->server, TRUE);
      view->server[gv->server].net_left += catalog_bytes(view->config->catalog, model);
      view->server[gv->server].fetches++;
    }
  }
  tier_touch(gv->shadow, model, now);
  if (view->config->system->residence == RESIDENCE_PROCESS && tier_state(gv->shadow, model) != TIER_ABSENT)
    tier_pin(gv->shadow, model); /* a process with requests is not ended */
  return forecast->finish_ns;
}

void cluster_view_done(struct cluster_view *view, uint32_t gpu, uint32_t model, double service_ns,
                       int64_t predicted, int64_t shift, int64_t now)
{
  struct gpu_view *gv = &view->gpu[gpu];
  int64_t ended = now - view->hop_ns[gv->hw];
  gv->outstanding--;
  gv->work_ns = gv->outstanding ? gv->work_ns - service_ns : 0;
  if (view->config->system->residence == RESIDENCE_PROCESS && tier_pins(gv->shadow, model) > 0)
    tier_unpin(gv->shadow, model);
  if (view->free_at[gpu] == TIME_NEVER)
    return;
  if (gv->outstanding == 0) {
    gv->load_until = min_i64(gv->load_until, ended);
    view->free_at[gpu] = ended;
    return;
  }
  if (view->concurrency[gv->hw] > 1) { /* no chain to correct: what is left cannot take longer than alone */
    view->free_at[gpu] = min_i64(view->free_at[gpu], now + ns_round(gv->work_ns / view->speed[gv->hw]));
    return;
  }
  int64_t error = ended - (predicted + gv->shift - shift);
  gv->shift += error;
  view->free_at[gpu] = max_i64(view->free_at[gpu] + error, ended);
}

void cluster_view_model_state(struct cluster_view *view, uint32_t server,
                              const struct message_model_state *state, gboolean wanted, int64_t now)
{
  if (state->state != TIER_FILLING) /* a fetch has ended, or was in vain */
    bit_set(view->coming + (size_t)state->model * view->server_words, server, FALSE);
  if (state->gpu == NO_INDEX) {
    bit_set(view->cached + (size_t)state->model * view->server_words, server, state->state == TIER_READY);
    return;
  }
  uint32_t gpu = view->config->server[server].first_gpu + state->gpu;
  struct gpu_view *gv = &view->gpu[gpu];
  if (!gv->shadow)
    return;
  bit_set(view->ready + (size_t)state->model * view->gpu_words, gpu, state->state == TIER_READY);
  gboolean held = bit_get(view_holds(view, state->model), gpu);
  if (state->state == TIER_ABSENT && held && !wanted) {
    tier_remove(gv->shadow, state->model);
    bit_set(view_holds(view, state->model), gpu, FALSE);
  } else if (state->state == TIER_READY && !held && gv->outstanding == 0 &&
             tier_reserve(gv->shadow, state->model, config_entry_bytes(view->config, gv->hw, state->model), 0,
                          now)) {
    tier_ready(gv->shadow, state->model);
    bit_set(view_holds(view, state->model), gpu, TRUE);
  }
}

void cluster_view_report(struct cluster_view *view, uint32_t server, const struct message_report *report)
{
  struct server_view *sv = &view->server[server];
  sv->net_left = report->net_left_bytes;
  sv->fetches = report->fetches;
  sv->net_rate = (double)report->net_rate;
}
