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
