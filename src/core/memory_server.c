/* The memory server; see memory_server.h. */
#include "core/memory_server.h"

struct memory_server {
  const struct config *config;
  struct world *world;
  uint32_t index, epoch;
  struct pool_plan *plan;      /* whose shards it holds; NULL: none */
  struct pool_plan *incoming;  /* being fetched for */
  struct pool_plan *plan_from; /* where the shards lie now */
  struct message_place again;  /* the change to follow when a given-up one has ended; members 0 = none */
  uint64_t from;               /* members of the old plan that answer */
  struct fetch_plan *fetching;
  uint32_t sources[MEMORY_SERVERS_MAX];
  uint64_t held, peak;
  op_id op;
  gboolean leaving;
};

struct memory_server *memory_server_new(const struct config *config, uint32_t index, struct world *world)
{
  struct memory_server *s = g_new0(struct memory_server, 1);
  s->config = config;
  s->world = world;
  s->index = index;
  s->epoch = 1;
  return s;
}

static void fetching_free(struct memory_server *s)
{
  if (!s->fetching)
    return;
  g_free(s->fetching->slot);
  g_free(s->fetching->bytes);
  g_free(s->fetching->group_bytes);
  g_free(s->fetching);
  s->fetching = NULL;
}

void memory_server_free(struct memory_server *s)
{
  if (!s)
    return;
  pool_plan_free(s->plan);
  pool_plan_free(s->incoming);
  pool_plan_free(s->plan_from);
  fetching_free(s);
  g_free(s);
}

static uint64_t plan_bytes(const struct memory_server *s, const struct pool_plan *plan)
{
  uint64_t bytes = 0;
  for (uint32_t m = 0; plan && m < catalog_models(s->config->catalog); m++)
    bytes += pool_plan_bytes(plan, s->config->catalog, m, s->index, s->config->replicas);
  return bytes;
}

static void set_held(struct memory_server *s, uint64_t bytes)
{
  s->held = bytes;
  s->peak = MAX(s->peak, bytes);
}

static void memory_server_start(void *actor)
{
  struct memory_server *s = actor;
  struct message m = {
      .type = MESSAGE_JOIN,
      .join = {.epoch = s->epoch, .memory_bytes = s->config->memory_hardware.host_memory_bytes}};
  uint32_t n = s->config->memory_servers_at_start;
  if (s->index < n && s->config->system->residence == RESIDENCE_POOL) {
    s->plan = pool_plan_new(s->config->plans, s->config->sharding, 1, n >= 64 ? UINT64_MAX : (1ULL << n) - 1);
    set_held(s, plan_bytes(s, s->plan));
  }
  world_send(s->world, ACTOR(ACTOR_CONTROLLER, 0), &m);
  if (s->config->heartbeat_ns > 0)
    s->world->ops->timer(s->world, s->config->heartbeat_ns, 0);
}

/* --- what a new plan lacks
 * ------------------------------------------------------------------------------------------*/

static const struct placement *placement_of(const struct pool_plan *plan, const struct catalog *catalog,
                                            uint32_t model)
{
  const struct model *m = catalog_model(catalog, model);
  return plan->placement[m->profile * plan->rotations + m->variant % plan->rotations];
}

static gboolean holds(const struct memory_server *s, const struct pool_plan *plan, uint32_t slot)
{
  for (uint32_t copy = 0; copy < s->config->replicas && copy < plan->slots; copy++)
    if (pool_plan_server(plan, slot, copy) == s->index)
      return TRUE;
  return FALSE;
}

/* A memory server that answers and holds the slot under the old plan, NO_INDEX if none does. */
static uint32_t holder(const struct memory_server *s, uint32_t slot)
{
  for (uint32_t copy = 0; copy < s->config->replicas && copy < s->plan_from->slots; copy++) {
    uint32_t server = pool_plan_server(s->plan_from, slot, copy);
    if (s->from >> server & 1)
      return server;
  }
  return NO_INDEX;
}

/* Adds to bytes[server] what extent of the new plan must come from each server. FALSE: some of it is nowhere.
 */
static gboolean extent_sources(const struct memory_server *s, const struct placement *old,
                               const struct extent *extent, uint64_t bytes[MEMORY_SERVERS_MAX])
{
  for (uint32_t i = 0; i < old->extents; i++) {
    const struct extent *have = &old->extent[i];
    uint64_t begin = MAX(have->offset, extent->offset);
    uint64_t end = MIN(have->offset + have->length, extent->offset + extent->length);
    if (begin >= end || (s->plan && holds(s, s->plan, have->slot)))
      continue;
    uint32_t server = holder(s, have->slot);
    if (server == NO_INDEX)
      return FALSE;
    bytes[server] += end - begin;
  }
  return TRUE;
}

static gboolean missing(const struct memory_server *s, uint64_t bytes[MEMORY_SERVERS_MAX])
{
  const struct catalog *catalog = s->config->catalog;
  for (uint32_t m = 0; m < catalog_models(catalog); m++) {
    const struct placement *new = placement_of(s->incoming, catalog, m),
                           *old = placement_of(s->plan_from, catalog, m);
    for (uint32_t i = 0; i < new->extents; i++)
      if (holds(s, s->incoming, new->extent[i].slot) && !extent_sources(s, old, &new->extent[i], bytes))
        return FALSE;
  }
  return TRUE;
}

/* --- following the plan
 * ---------------------------------------------------------------------------------------------*/

static void placed(struct memory_server *s, gboolean ok)
{
  struct message m = {.type = MESSAGE_PLACED, .placed = {.version = s->incoming->version, .ok = ok}};
  world_send(s->world, ACTOR(ACTOR_CONTROLLER, 0), &m);
  if (!ok) {
    pool_plan_free(s->incoming);
    s->incoming = NULL;
  }
}

static struct fetch_plan *fetching_new(struct memory_server *s, const uint64_t bytes[MEMORY_SERVERS_MAX])
{
  struct fetch_plan *plan = g_new0(struct fetch_plan, 1);
  plan->groups = 1;
  plan->slot = g_new0(uint32_t, MEMORY_SERVERS_MAX);
  plan->bytes = g_new0(uint64_t, MEMORY_SERVERS_MAX);
  plan->group_bytes = g_new0(uint64_t, 1);
  for (uint32_t server = 0; server < MEMORY_SERVERS_MAX; server++)
    if (bytes[server] > 0) {
      s->sources[plan->streams] = server;
      plan->bytes[plan->streams++] = bytes[server];
      plan->total_bytes += bytes[server];
    }
  plan->group_bytes[0] = plan->total_bytes;
  return plan;
}

static void place(struct memory_server *s, const struct message_place *m)
{
  uint64_t bytes[MEMORY_SERVERS_MAX] = {0};
  if (s->op != 0) { /* an older change was given up: its fetch ends first, its bytes are not counted on */
    s->world->ops->cancel(s->world, s->op);
    s->again = *m;
    return;
  }
  pool_plan_free(s->incoming);
  pool_plan_free(s->plan_from);
  s->incoming = pool_plan_new(s->config->plans, s->config->sharding, m->version, m->members);
  s->plan_from = pool_plan_new(s->config->plans, s->config->sharding, 0, m->present);
  s->from = m->from;
  if (!missing(s, bytes)) {
    placed(s, FALSE);
    return;
  }
  fetching_free(s);
  s->fetching = fetching_new(s, bytes);
  if (s->held + s->fetching->total_bytes > s->config->memory_hardware.host_memory_bytes) {
    placed(s, FALSE);
    return;
  }
  set_held(s, s->held + s->fetching->total_bytes);
  if (s->fetching->total_bytes == 0) {
    placed(s, TRUE);
    return;
  }
  struct fetch_spec spec = {.model = NO_INDEX,
                            .source = SOURCE_REMOTE,
                            .plan = s->fetching,
                            .server = s->sources,
                            .gpu = NO_INDEX,
                            .request = UINT64_MAX};
  s->op = s->world->ops->fetch(s->world, &spec);
}

static void memory_server_completion(void *actor, const struct completion *completion)
{
  struct memory_server *s = actor;
  s->op = 0;
  if (completion->status != OP_DONE)
    set_held(s, plan_bytes(s, s->plan));
  if (s->again.members != 0) {
    struct message_place again = s->again;
    s->again = (struct message_place){0};
    place(s, &again);
  } else if (s->incoming) {
    placed(s, completion->status == OP_DONE);
  }
}

static void drop(struct memory_server *s, uint32_t version)
{
  if (!s->incoming || s->incoming->version != version)
    return;
  pool_plan_free(s->plan);
  s->plan = s->incoming;
  s->incoming = NULL;
  set_held(s, plan_bytes(s, s->plan));
}

static void memory_server_message(void *actor, actor_id from, const struct message *m)
{
  struct memory_server *s = actor;
  (void)from;
  if (m->type == MESSAGE_PLACE)
    place(s, &m->place);
  else if (m->type == MESSAGE_DROP)
    drop(s, m->drop.version);
  else if (m->type == MESSAGE_LEAVE)
    s->leaving = TRUE;
}

static void memory_server_timer(void *actor, uint64_t tag)
{
  struct memory_server *s = actor;
  struct message m = {.type = MESSAGE_HEARTBEAT, .heartbeat = {.epoch = s->epoch}};
  if (s->leaving)
    return;
  world_send(s->world, ACTOR(ACTOR_CONTROLLER, 0), &m);
  s->world->ops->timer(s->world, s->config->heartbeat_ns, tag);
}

static void memory_server_peer_lost(void *actor, actor_id peer)
{
  struct memory_server *s = actor;
  if (s->op != 0 && ACTOR_KIND(peer) == ACTOR_MEMORY_SERVER)
    s->world->ops->cancel(s->world, s->op);
}

const struct actor_ops memory_server_actor = {
    .start = memory_server_start,
    .message = memory_server_message,
    .timer = memory_server_timer,
    .completion = memory_server_completion,
    .peer_lost = memory_server_peer_lost,
};

uint64_t memory_server_peak(const struct memory_server *s)
{
  return s->peak;
}
