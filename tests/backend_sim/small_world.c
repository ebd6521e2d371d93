/* A small cluster in C for tests; see small_world.h. */
#include "small_world.h"

#include "core/balancer.h"

struct small_world *small_world_new(const char *system)
{
  struct small_world *w = g_new0(struct small_world, 1);
  struct config *config = &w->config;
  config->system = system_by_name(system);
  config->hardware_count = 1;
  config->hardware[0] = (struct hardware){.gpu_memory_bytes = 1000 * BYTES_PER_GB,
                                          .host_memory_bytes = 1000 * BYTES_PER_GB,
                                          .nic_bytes_s = 10e9,
                                          .spine_oversubscription = 1,
                                          .pcie_bytes_s = 8e9,
                                          .gpus_per_pcie_switch = 1,
                                          .pageable_bytes_s = 3e9,
                                          .pageable_to_host_bytes_s = 1e9,
                                          .ssd_bytes = 1000 * BYTES_PER_GB,
                                          .ssd_bytes_s = 2e9,
                                          .compute_scale = 1,
                                          .mps_train_share = 0.5};
  config->memory_hardware = config->hardware[0];
  config->memory_hardware.memory_nic_bytes_s = 4e9;
  config->staging_bytes = 1000 * BYTES_PER_GB;
  config->host_policy =
      tier_policy_by_name(config->system->host_policy ? config->system->host_policy : "lru");
  config->balancer = balancer_by_name(config->system->balancer);
  config->sharding = config->system->sharding;
  config->yield_layer = config->system->yield_layer;
  config->replicas = config->ssd_copies = 1;
  config->heartbeat_misses = 3;
  config->train_profile = NO_INDEX;
  w->grouping = config->system->grouping;
  w->servers = w->gpus_per_server = 1;
  w->memory_servers = 4;
  w->catalog = catalog_new(1);
  w->request = g_new0(struct small_request, SMALL_REQUESTS_MAX);
  return w;
}

void small_world_free(struct small_world *w)
{
  sim_free(w->sim);
  load_plans_free(w->plans);
  catalog_free(w->catalog);
  g_free(w->request);
  g_free(w);
}

void small_world_kinds(struct small_world *w, uint32_t kinds)
{
  for (uint32_t k = 1; k < kinds; k++)
    w->config.hardware[k] = w->config.hardware[0];
  w->config.hardware_count = kinds;
  catalog_free(w->catalog);
  w->catalog = catalog_new(kinds);
}

uint32_t small_world_model(struct small_world *w, uint32_t layers, const uint64_t *bytes,
                           const double *compute_ns, uint32_t variants)
{
  g_autofree char *name = g_strdup_printf("net%u", w->catalog->profiles->len);
  struct profile *profile = profile_new(name, layers);
  for (uint32_t i = 0; i < layers; i++)
    profile->layer_bytes[i] = bytes[i];
  for (uint32_t k = 0; k < w->config.hardware_count; k++) {
    struct profile_timing *timing = &profile->timing[k];
    for (uint32_t i = 0; i < layers; i++)
      timing->warm_ns += timing->layer_ns[i] = compute_ns[i] * w->config.hardware[k].compute_scale;
  }
  profile_sum(profile);
  return catalog_add(w->catalog, profile, variants);
}

static uint32_t profile_index(const struct small_world *w, uint32_t model)
{
  return g_array_index(w->catalog->models, struct model, model).profile;
}

struct profile *small_world_profile(struct small_world *w, uint32_t model)
{
  return g_ptr_array_index(w->catalog->profiles, profile_index(w, model));
}

const struct grouping *small_world_grouping(const struct small_world *w, uint32_t model,
                                            enum load_source source)
{
  return load_plan(w->plans, profile_index(w, model), 0, source)->grouping;
}

uint32_t small_world_request(struct small_world *w, int64_t at_ns, uint32_t model)
{
  g_assert(w->requests < SMALL_REQUESTS_MAX &&
           (w->requests == 0 || w->request[w->requests - 1].at_ns <= at_ns));
  w->request[w->requests] = (struct small_request){.at_ns = at_ns, .answered_ns = -1, .model = model};
  return w->requests++;
}

/* --- the client
 * -----------------------------------------------------------------------------------------------------*/

/* One timer stands for the next request: durations only, so an offset of the clock does not matter. */
static void arm(struct small_world *w, int64_t from_ns)
{
  if (w->sent < w->requests)
    w->client->ops->timer(w->client, w->request[w->sent].at_ns - from_ns, 0);
}

static void client_start(void *actor)
{
  arm(actor, 0);
}

static void client_timer(void *actor, uint64_t tag)
{
  struct small_world *w = actor;
  int64_t at = w->request[w->sent].at_ns;
  (void)tag;
  while (w->sent < w->requests && w->request[w->sent].at_ns == at) {
    const struct small_request *r = &w->request[w->sent];
    struct message m = {
        .type = MESSAGE_REQUEST,
        .request = {.id = w->sent, .model = r->model, .slot = NO_INDEX, .service_ns = r->service_ns}};
    w->sent++;
    world_send(w->client, ACTOR(ACTOR_CONTROLLER, 0), &m);
  }
  arm(w, at);
}

static void client_message(void *actor, actor_id from, const struct message *m)
{
  struct small_world *w = actor;
  (void)from;
  g_assert(m->type == MESSAGE_ANSWER && m->answer.id < w->sent);
  struct small_request *r = &w->request[m->answer.id];
  r->answered_ns = sim_now(w->sim);
  r->answer = m->answer;
  r->answers++;
  if (++w->answered == w->requests)
    sim_stop(w->sim);
}

static void client_completion(void *actor, const struct completion *completion)
{
  (void)actor;
  (void)completion;
}

static void client_peer_lost(void *actor, actor_id peer)
{
  (void)actor;
  (void)peer;
}

static const struct actor_ops client_ops = {.start = client_start,
                                            .message = client_message,
                                            .timer = client_timer,
                                            .completion = client_completion,
                                            .peer_lost = client_peer_lost};

/* --- the run
 * --------------------------------------------------------------------------------------------------------*/

void small_world_plan(struct small_world *w)
{
  struct config *config = &w->config;
  config->catalog = w->catalog;
  for (uint32_t m = 0; m < catalog_models(w->catalog); m++)
    w->popular[m] = m;
  config->popular = w->popular;
  config->server = w->server;
  config->servers_at_start = w->servers;
  config->servers = w->servers + w->servers_later;
  for (uint32_t s = 0; s < config->servers; s++)
    w->server[s] = (struct server_config){
        .hw = w->kind[s], .gpus = w->gpus_per_server, .first_gpu = s * w->gpus_per_server};
  config->gpus = config->servers * w->gpus_per_server;
  config->memory_servers_at_start = w->memory_servers;
  config->memory_servers = w->memory_servers + w->memory_servers_later;
  w->plans = load_plans_new(w->catalog, config->hardware, &config->memory_hardware, w->memory_servers,
                            config->sharding, config->sequential, config->gpudirect, &w->grouping);
  config->plans = w->plans;
}

void small_world_start(struct small_world *w)
{
  if (!w->plans)
    small_world_plan(w);
  w->sim = sim_new(&w->config, &w->options);
  w->client = sim_client_world(w->sim);
  sim_set_client(w->sim, &client_ops, w);
  sim_start(w->sim);
}

void small_world_run(struct small_world *w, int64_t until_ns)
{
  if (!w->sim)
    small_world_start(w);
  if (w->answered < w->requests || w->requests == 0)
    sim_run(w->sim, until_ns);
}

void small_world_until(struct small_world *w, int64_t until_ns)
{
  if (!w->sim)
    small_world_start(w);
  while (!sim_run(w->sim, until_ns))
    ; /* stopped by the last answer */
}

int64_t small_world_latency(const struct small_world *w, uint32_t request)
{
  const struct small_request *r = &w->request[request];
  return r->answered_ns < 0 ? -1 : r->answered_ns - r->at_ns;
}
