/* The memory server as an actor: its shards at the start, and who handles what; see memory_server.h. */
#include "core/memory_server_internal.h"

const struct placement *memory_server_placement(const struct memory_server *s, const struct pool_plan *plan,
                                                uint32_t model)
{
  const struct model *m = catalog_model(s->config->catalog, model);
  return plan->placement[m->profile * plan->rotations + m->variant % plan->rotations];
}

static gboolean holds(const struct memory_server *s, const struct pool_plan *plan, uint32_t slot)
{
  for (uint32_t copy = 0; copy < s->config->replicas && copy < plan->slots; copy++)
    if (pool_plan_server(plan, slot, copy) == s->index)
      return TRUE;
  return FALSE;
}

void memory_server_pieces(const struct memory_server *s, const struct pool_plan *plan, uint32_t model,
                          GArray *pieces)
{
  if (!plan || plan->slots == 0)
    return;
  const struct placement *placement = memory_server_placement(s, plan, model);
  for (uint32_t i = 0; i < placement->extents; i++) {
    const struct extent *extent = &placement->extent[i];
    struct piece piece = {.offset = extent->offset, .length = extent->length};
    if (holds(s, plan, extent->slot))
      g_array_append_val(pieces, piece);
  }
  pieces_merge(pieces);
}

void memory_server_serve(struct memory_server *s, uint32_t model, struct piece piece,
                         const struct ranges *place)
{
  s->world->ops->serve(s->world, model, piece.offset, piece.length, place);
}

/* Shards of a model on one server at once: of two plans, each cut by the other; with slack at both ends of
 * each. */
static uint64_t shards_most(const struct config *config, uint32_t model)
{
  const struct grouping *home =
      load_plan(config->plans, catalog_model(config->catalog, model)->profile, 0, SOURCE_REMOTE)->grouping;
  return 4ULL * home->groups * config->replicas;
}

uint64_t memory_server_bytes(const struct config *config, uint32_t index)
{
  uint64_t models = 0, shards = 0;
  if (config->system->residence != RESIDENCE_POOL || index >= config->memory_servers)
    return 0;
  for (uint32_t m = 0; m < catalog_models(config->catalog); m++) {
    models += catalog_bytes(config->catalog, m);
    shards += shards_most(config, m);
  }
  return arena_bytes(MIN(models, config->memory_hardware.host_memory_bytes), shards);
}

/* --- birth and death
 * ------------------------------------------------------------------------------------------------*/

struct memory_server *memory_server_new(const struct config *config, uint32_t index, struct world *world)
{
  struct memory_server *s = g_new0(struct memory_server, 1);
  s->config = config;
  s->world = world;
  s->index = index;
  s->epoch = 1;
  s->store = shard_store_new(catalog_models(config->catalog), memory_server_bytes(config, index));
  s->wanted = g_array_new(FALSE, FALSE, sizeof(struct piece));
  return s;
}

void memory_server_free(struct memory_server *s)
{
  if (!s)
    return;
  for (uint32_t i = 0; i < MOVES_MAX; i++)
    fetch_plan_free(s->move[i].plan);
  pool_plan_free(s->plan);
  pool_plan_free(s->incoming);
  pool_plan_free(s->plan_from);
  shard_store_free(s->store);
  g_array_unref(s->wanted);
  g_free(s);
}

/* A server that is there at the start has its shards already. Setup has seen to it that they fit. */
static void hold_first_plan(struct memory_server *s, uint32_t members)
{
  s->plan = pool_plan_new(s->config->plans, s->config->sharding, 1,
                          members >= 64 ? UINT64_MAX : (1ULL << members) - 1);
  for (uint32_t m = 0; m < catalog_models(s->config->catalog); m++) {
    g_array_set_size(s->wanted, 0);
    memory_server_pieces(s, s->plan, m, s->wanted);
    for (uint32_t i = 0; i < s->wanted->len; i++) {
      struct piece piece = g_array_index(s->wanted, struct piece, i);
      struct shard *shard = shard_store_add(s->store, m, piece);
      g_return_if_fail(shard != NULL);
      shard->here = TRUE;
      s->world->ops->fill(s->world, m, piece.offset, piece.length, NO_INDEX, &shard->place);
      memory_server_serve(s, m, piece, &shard->place);
    }
  }
  s->peak = shard_store_held(s->store);
}

static void memory_server_start(void *actor)
{
  struct memory_server *s = actor;
  struct message m = {
      .type = MESSAGE_JOIN,
      .join = {.epoch = s->epoch, .memory_bytes = s->config->memory_hardware.host_memory_bytes}};
  uint32_t n = s->config->memory_servers_at_start;
  if (s->index < n && s->config->system->residence == RESIDENCE_POOL)
    hold_first_plan(s, n);
  world_send(s->world, ACTOR(ACTOR_CONTROLLER, 0), &m);
  if (s->config->heartbeat_ns > 0)
    s->world->ops->timer(s->world, s->config->heartbeat_ns, MEMORY_TIMER_HEARTBEAT);
}

/* --- what comes in
 * --------------------------------------------------------------------------------------------------*/

static void memory_server_message(void *actor, actor_id from, const struct message *m)
{
  struct memory_server *s = actor;
  (void)from;
  if (m->type == MESSAGE_PLACE)
    memory_move_place(s, &m->place);
  else if (m->type == MESSAGE_DROP)
    memory_move_drop(s, m->drop.version);
  else if (m->type == MESSAGE_LEAVE)
    s->leaving = TRUE;
}

static void memory_server_timer(void *actor, uint64_t tag)
{
  struct memory_server *s = actor;
  struct message m = {.type = MESSAGE_HEARTBEAT, .heartbeat = {.epoch = s->epoch}};
  if (tag == MEMORY_TIMER_FILL) {
    memory_move_fill(s);
    return;
  }
  if (s->leaving)
    return;
  world_send(s->world, ACTOR(ACTOR_CONTROLLER, 0), &m);
  s->world->ops->timer(s->world, s->config->heartbeat_ns, tag);
}

static void memory_server_completion(void *actor, const struct completion *completion)
{
  memory_move_ended(actor, (uint32_t)completion->tag, completion->status);
}

static void memory_server_peer_lost(void *actor, actor_id peer)
{
  if (ACTOR_KIND(peer) == ACTOR_MEMORY_SERVER)
    memory_move_peer_lost(actor);
}

const struct actor_ops memory_server_actor = {
    .start = memory_server_start,
    .message = memory_server_message,
    .timer = memory_server_timer,
    .completion = memory_server_completion,
    .peer_lost = memory_server_peer_lost,
};

uint64_t memory_server_held(const struct memory_server *s)
{
  return shard_store_held(s->store);
}

uint64_t memory_server_peak(const struct memory_server *s)
{
  return s->peak;
}
