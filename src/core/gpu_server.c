/* The GPU server as an actor: state, start with warm tiers, who handles which message and completion. */
#include "core/gpu_server_internal.h"

void server_send(struct gpu_server *s, const struct message *m)
{
  world_send(s->world, ACTOR(ACTOR_CONTROLLER, 0), m);
}

void server_record(struct gpu_server *s, struct record record)
{
  s->world->ops->record(s->world, &record);
}

void server_tell_state(struct gpu_server *s, uint32_t gpu, uint32_t model, enum tier_state state)
{
  struct message m = {.type = MESSAGE_MODEL_STATE,
                      .model_state = {.model = model, .gpu = gpu, .state = state}};
  server_send(s, &m);
}

/* --- evictions
 * ------------------------------------------------------------------------------------------------------*/

#define VALUE_MOST 9e18 /* a policy's value may be any double */

static void record_eviction(struct gpu_server *s, uint32_t gpu, const struct tier_entry *victim, double value,
                            enum record_reason reason, uint64_t request)
{
  server_record(s, (struct record){.kind = RECORD_EVICT,
                                   .reason = reason,
                                   .request = request,
                                   .model = victim->model,
                                   .gpu = gpu,
                                   .group = NO_INDEX,
                                   .source = NO_INDEX,
                                   .a = (int64_t)victim->bytes,
                                   .b = world_now(s->world) - victim->last_use_ns,
                                   .c = (int64_t)CLAMP(value, -VALUE_MOST, VALUE_MOST)});
}

static void count_eviction(struct gpu_server *s, enum record_reason reason)
{
  s->usage.evictions++;
  s->usage.evicted[reason]++;
}

static void gpu_evicted(void *context, const struct tier_entry *victim, double value)
{
  struct gpu *gpu = context;
  struct gpu_server *s = gpu->server;
  gboolean limit = config_models_max(s->config, s->hw) > 0 &&
                   tier_count(gpu->memory) + 1 >= config_models_max(s->config, s->hw);
  enum record_reason reason = limit ? REASON_LIMIT : REASON_SPACE;
  count_eviction(s, reason);
  if (world_records(s->world))
    record_eviction(s, gpu->index, victim, value, reason, gpu->evict_request);
  if (s->config->system->loader == &loader_stop_and_go)
    stop_and_go_evicted(s, gpu, victim->model);
  server_tell_state(s, gpu->index, victim->model, TIER_ABSENT);
}

static void host_evicted(void *context, const struct tier_entry *victim, double value)
{
  struct gpu_server *s = context;
  enum record_reason reason = s->cache_request == UINT64_MAX ? REASON_SHRUNK : REASON_CACHE_SPACE;
  count_eviction(s, reason);
  if (world_records(s->world))
    record_eviction(s, NO_INDEX, victim, value, reason, s->cache_request);
  server_tell_state(s, NO_INDEX, victim->model, TIER_ABSENT);
}

/* --- birth, start, death
 * --------------------------------------------------------------------------------------------*/

static void gpu_init(struct gpu_server *s, uint32_t index)
{
  struct gpu *gpu = &s->gpu[index];
  *gpu = (struct gpu){.server = s,
                      .index = index,
                      .first = NO_INDEX,
                      .last = NO_INDEX,
                      .unsecured = NO_INDEX,
                      .running_first = NO_INDEX,
                      .loads_first = NO_INDEX,
                      .evict_request = UINT64_MAX};
  if (s->config->system->residence != RESIDENCE_EVERYWHERE)
    gpu->memory = tier_new(config_gpu_bytes(s->config, s->hw), FALSE, config_models_max(s->config, s->hw),
                           catalog_models(s->config->catalog), &tier_policy_lru, gpu_evicted, gpu);
}

static uint64_t all_models_bytes(const struct config *config)
{
  uint64_t bytes = 0;
  for (uint32_t m = 0; m < catalog_models(config->catalog); m++)
    bytes += catalog_bytes(config->catalog, m);
  return bytes;
}

static void host_init(struct gpu_server *s)
{
  enum residence residence = s->config->system->residence;
  if (residence == RESIDENCE_HOST)
    s->usage.host_bytes = all_models_bytes(s->config);
  if (residence != RESIDENCE_POOL && residence != RESIDENCE_SSD)
    return;
  s->usage.host_bytes = s->config->host_cache_bytes + s->gpus * config_staging_bytes(s->config);
  s->host = tier_new(s->config->host_cache_bytes, FALSE, 0, catalog_models(s->config->catalog),
                     s->config->host_policy, host_evicted, s);
}

struct gpu_server *gpu_server_new(const struct config *config, uint32_t index, struct world *world)
{
  struct gpu_server *s = g_new0(struct gpu_server, 1);
  s->config = config;
  s->world = world;
  s->index = index;
  s->hw = config->server[index].hw;
  s->gpus = config->server[index].gpus;
  s->hardware = &config->hardware[s->hw];
  s->gpu = g_new0(struct gpu, s->gpus);
  s->tasks = g_ptr_array_new_with_free_func(g_free);
  s->loads = g_ptr_array_new();
  s->fetches = g_ptr_array_new_with_free_func(g_free);
  s->free_task = s->free_load = s->free_fetch = s->fetch_first = NO_INDEX;
  s->epoch = 1;
  s->cache_request = UINT64_MAX;
  for (uint32_t g = 0; g < s->gpus; g++)
    gpu_init(s, g);
  host_init(s);
  places_init(s);
  return s;
}

void gpu_server_free(struct gpu_server *s)
{
  if (!s)
    return;
  for (uint32_t g = 0; g < s->gpus; g++) {
    tier_free(s->gpu[g].memory);
    arena_free(s->gpu[g].staging);
  }
  tier_free(s->host);
  g_free(s->home);
  for (uint32_t i = 0; i < s->loads->len; i++)
    g_free(load_at(s, i)->copy);
  g_ptr_array_set_free_func(s->loads, g_free);
  for (uint32_t i = s->fetch_first; i != NO_INDEX; i = fetch_at(s, i)->next) {
    struct plan_ref *ref = fetch_at(s, i)->plan_ref;
    if (ref && ref != s->plan && --ref->users == 0) {
      pool_plan_free(ref->plan);
      g_free(ref);
    }
  }
  if (s->plan)
    pool_plan_free(s->plan->plan);
  g_free(s->plan);
  g_ptr_array_unref(s->tasks);
  for (uint32_t i = 0; i < s->fetches->len; i++)
    ranges_clear(&fetch_at(s, i)->staging);
  g_ptr_array_unref(s->loads);
  g_ptr_array_unref(s->fetches);
  g_free(s->gpu);
  g_free(s);
}

static void world_fill(struct gpu_server *s, uint32_t model, uint32_t gpu, const struct ranges *place)
{
  s->world->ops->fill(s->world, model, 0, catalog_bytes(s->config->catalog, model), gpu, place);
}

static gboolean fill(struct gpu_server *s, struct tier *tier, uint32_t model, uint64_t bytes,
                     double reload_ns, uint32_t gpu)
{
  uint64_t evicts;
  if (!tier_can_reserve(tier, bytes, &evicts) || evicts > 0)
    return FALSE;
  tier_reserve(tier, model, bytes, reload_ns, world_now(s->world));
  tier_ready(tier, model);
  world_fill(s, model, gpu, tier_place(tier, model));
  server_tell_state(s, gpu, model, TIER_READY);
  return TRUE;
}

static uint32_t gpus_at_start(const struct config *config)
{
  const struct server_config *last = &config->server[config->servers_at_start - 1];
  return last->first_gpu + last->gpus;
}

/* GPU memories: the r-th most popular model goes to GPU r mod GPUs, and over again while there is room. */
static void warm_gpu(struct gpu_server *s, struct gpu *gpu)
{
  uint32_t models = catalog_models(s->config->catalog), gpus = gpus_at_start(s->config);
  uint32_t most = config_models_max(s->config, s->hw);
  uint32_t rank = s->config->server[s->index].first_gpu + gpu->index;
  for (uint32_t i = 0; i < models; i++, rank += gpus) {
    uint32_t model = s->config->popular[rank % models];
    if (tier_state(gpu->memory, model) != TIER_ABSENT) {
      if (models % gpus == 0 || gpus % models == 0)
        rank++; /* the stride would visit the same ones again */
      model = s->config->popular[rank % models];
    }
    if (most > 0 && tier_count(gpu->memory) >= most)
      return;
    if (tier_state(gpu->memory, model) == TIER_ABSENT)
      fill(s, gpu->memory, model, config_entry_bytes(s->config, s->hw, model), 0, gpu->index);
  }
}

static void warm_host(struct gpu_server *s)
{
  for (uint32_t i = 0; i < catalog_models(s->config->catalog); i++) {
    uint32_t model = s->config->popular[i];
    const struct model *m = catalog_model(s->config->catalog, model);
    enum load_source source = s->config->system->residence == RESIDENCE_SSD ? SOURCE_SSD : SOURCE_REMOTE;
    double reload = load_plan(s->config->plans, m->profile, s->hw, source)->load_ns;
    fill(s, s->host, model, catalog_bytes(s->config->catalog, model), reload, NO_INDEX);
  }
}

static void fill_home(struct gpu_server *s)
{
  struct home home;
  for (uint32_t m = 0; s->home && m < catalog_models(s->config->catalog); m++)
    world_fill(s, m, NO_INDEX, places_home(s, m, &home));
}

static void gpu_server_start(void *actor)
{
  struct gpu_server *s = actor;
  struct message m = {.type = MESSAGE_JOIN,
                      .join = {.epoch = s->epoch, .memory_bytes = s->config->host_cache_bytes}};
  server_send(s, &m);
  fill_home(s);
  if (s->config->warm && s->index < s->config->servers_at_start) {
    for (uint32_t g = 0; g < s->gpus; g++)
      if (s->gpu[g].memory)
        warm_gpu(s, &s->gpu[g]);
    if (s->host)
      warm_host(s);
  }
  if (s->config->heartbeat_ns > 0)
    s->world->ops->timer(s->world, s->config->heartbeat_ns, (uint64_t)SERVER_TIMER_HEARTBEAT << 56);
}

/* --- what comes in
 * --------------------------------------------------------------------------------------------------*/

/* What the numbers of a message name is there; a peer may send any. */
static gboolean is_sane(const struct gpu_server *s, const struct message *m)
{
  uint32_t pool = s->config->memory_servers;
  switch (m->type) {
  case MESSAGE_DISPATCH:
    return m->dispatch.gpu < s->gpus && m->dispatch.model < catalog_models(s->config->catalog);
  case MESSAGE_REVOKE:
    return m->revoke.gpu < s->gpus;
  case MESSAGE_TRAIN:
    return m->train.gpu < s->gpus;
  case MESSAGE_PLAN:
    return pool >= MEMORY_SERVERS_MAX || m->plan.members >> pool == 0;
  case MESSAGE_MEMBER:
    return m->member.index < pool;
  default:
    return TRUE;
  }
}

/* The cache gets what it may have of the host's memory beside staging; memory that is real cannot grow past
 * what was taken at the start. */
static void resize_cache(struct gpu_server *s, uint64_t bytes)
{
  uint64_t staging = s->gpus * config_staging_bytes(s->config), host = s->hardware->host_memory_bytes;
  if (!s->host)
    return;
  uint64_t cache = MIN(bytes, host > staging ? host - staging : 0);
  if (!(s->world->ops->capabilities & WORLD_UNBOUNDED_MEMORY))
    cache = MIN(cache, s->config->host_cache_bytes);
  tier_set_capacity(s->host, cache, world_now(s->world));
  s->usage.host_bytes = MAX(s->usage.host_bytes, cache + staging);
}

static void gpu_server_message(void *actor, actor_id from, const struct message *m)
{
  struct gpu_server *s = actor;
  (void)from;
  if (!is_sane(s, m))
    return;
  switch (m->type) {
  case MESSAGE_DISPATCH:
    gpu_queue_add(s, &m->dispatch);
    break;
  case MESSAGE_REVOKE:
    gpu_queue_revoke(s, &m->revoke);
    break;
  case MESSAGE_PLAN:
    fetch_plan_changed(s, &m->plan);
    break;
  case MESSAGE_MEMBER:
    fetch_member(s, &m->member);
    break;
  case MESSAGE_TRAIN:
    trainer_train(s, &m->train);
    break;
  case MESSAGE_CACHE_SIZE:
    resize_cache(s, m->cache_size.bytes);
    break;
  case MESSAGE_LEAVE:
    s->leaving = TRUE;
    break;
  default: /* not for a GPU server */
    break;
  }
}

static void gpu_server_timer(void *actor, uint64_t tag)
{
  struct gpu_server *s = actor;
  enum server_timer timer = (enum server_timer)(tag >> 56);
  switch (timer) {
  case SERVER_TIMER_REPORT:
    fetch_report_timer(s);
    break;
  case SERVER_TIMER_HEARTBEAT: {
    struct message m = {.type = MESSAGE_HEARTBEAT, .heartbeat = {.epoch = s->epoch}};
    if (s->leaving)
      break;
    server_send(s, &m);
    s->world->ops->timer(s->world, s->config->heartbeat_ns, tag);
    break;
  }
  case SERVER_TIMER_PROCESS:
  case SERVER_TIMER_FIRST:
    process_timer(s, timer, (uint32_t)tag);
    break;
  }
}

static void gpu_server_completion(void *actor, const struct completion *completion)
{
  struct gpu_server *s = actor;
  uint32_t index = TAG_INDEX(completion->tag);
  switch (TAG_KIND(completion->tag)) {
  case TAG_FETCH:
    fetch_ended(s, fetch_at(s, index), completion);
    break;
  case TAG_COPY:
    load_copied(s, load_at(s, index), TAG_DETAIL(completion->tag), completion->status);
    break;
  case TAG_COMPUTE:
    gpu_computed(s, task_at(s, index), TAG_DETAIL(completion->tag), completion->status);
    break;
  case TAG_BACK:
    if (--s->gpu[index].backs == 0)
      s->gpu[index].back = 0;
    break;
  case TAG_TRAIN_IN:
  case TAG_TRAIN_OUT:
    trainer_copied(s, &s->gpu[index], TAG_KIND(completion->tag) == TAG_TRAIN_IN);
    break;
  case TAG_TRAIN:
    trainer_stepped(s, &s->gpu[index], completion);
    break;
  }
}

static void gpu_server_peer_lost(void *actor, actor_id peer)
{
  if (ACTOR_KIND(peer) == ACTOR_MEMORY_SERVER)
    fetch_member(actor, &(struct message_member){.index = ACTOR_INDEX(peer), .alive = 0});
}

const struct actor_ops gpu_server_actor = {
    .start = gpu_server_start,
    .message = gpu_server_message,
    .timer = gpu_server_timer,
    .completion = gpu_server_completion,
    .peer_lost = gpu_server_peer_lost,
};

void gpu_server_usage(const struct gpu_server *s, struct gpu_server_usage *usage)
{
  *usage = s->usage;
  for (uint32_t g = 0; g < s->gpus; g++) {
    usage->held_ns += s->gpu[g].held_ns;
    if (s->gpu[g].running > 0)
      usage->held_ns += (double)(world_now(s->world) - s->gpu[g].held_since);
  }
}
