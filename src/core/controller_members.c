/* Members of both pools: who joined, who is silent, who leaves; and where shards lie as memory servers
 * change.
 *
 * A change of the memory pool goes: PLACE to the servers of the next plan (they fetch what they lack from the
 * holders under the present one), PLACED from all, PLAN to the GPU servers, their acknowledgement when no
 * fetch uses the old plan, DROP to the memory servers. One change at a time; what happened meanwhile is the
 * next change. */
#include "core/controller_internal.h"

static void record_member(struct controller *c, actor_id member, enum record_reason reason)
{
  if (!world_records(c->world))
    return;
  gboolean gpu = ACTOR_KIND(member) == ACTOR_GPU_SERVER;
  controller_record(c, (struct record){.kind = RECORD_MEMBER,
                                       .reason = reason,
                                       .request = UINT64_MAX,
                                       .model = NO_INDEX,
                                       .server = gpu ? ACTOR_INDEX(member) : NO_INDEX,
                                       .gpu = NO_INDEX,
                                       .group = NO_INDEX,
                                       .source = NO_INDEX,
                                       .a = ACTOR_KIND(member),
                                       .b = ACTOR_INDEX(member)});
}

static void send_plan(struct controller *c, uint32_t server)
{
  struct message m = {.type = MESSAGE_PLAN, .plan = {.version = c->plan_version, .members = c->plan_members}};
  world_send(c->world, ACTOR(ACTOR_GPU_SERVER, server), &m);
}

static void send_member(struct controller *c, uint32_t server, uint32_t index, gboolean alive)
{
  struct message m = {.type = MESSAGE_MEMBER, .member = {.index = index, .alive = alive}};
  world_send(c->world, ACTOR(ACTOR_GPU_SERVER, server), &m);
}

static gboolean is_member(enum member_state state)
{
  return state == MEMBER_UP || state == MEMBER_LEAVING;
}

static void tell_member(struct controller *c, uint32_t index, gboolean alive)
{
  c->memory[index].told_dead = !alive;
  for (uint32_t s = 0; s < c->config->servers; s++)
    if (is_member(c->view->server[s].state))
      send_member(c, s, index, alive);
}

/* --- the plan of the memory pool
 * ------------------------------------------------------------------------------------*/

static uint64_t wanted_members(const struct controller *c)
{
  uint64_t members = 0;
  for (uint32_t i = 0; i < c->config->memory_servers; i++)
    if (c->memory[i].state == MEMBER_UP)
      members |= 1ULL << i;
  return members;
}

/* Lost shards can be rebuilt while a copy of each is left. */
static gboolean can_replan(const struct controller *c, uint64_t wanted)
{
  uint32_t lost = (uint32_t)__builtin_popcountll(c->plan_members & ~c->alive_members);
  return wanted != 0 && lost < c->config->replicas && c->config->system->residence == RESIDENCE_POOL;
}

static void replan(struct controller *c)
{
  uint64_t wanted = wanted_members(c);
  gboolean whole = (c->plan_members & ~c->alive_members) == 0;
  if (c->next_members != 0 || (wanted == c->plan_members && whole) || !can_replan(c, wanted))
    return;
  c->next_members = wanted;
  c->next_version = MAX(c->next_version, c->plan_version) + 1;
  struct message m = {.type = MESSAGE_PLACE,
                      .place = {.version = c->next_version,
                                .members = wanted,
                                .present = c->plan_members,
                                .from = c->plan_members & c->alive_members}};
  for (uint32_t i = 0; i < c->config->memory_servers; i++) {
    c->memory[i].placed = !(wanted >> i & 1);
    if (wanted >> i & 1)
      world_send(c->world, ACTOR(ACTOR_MEMORY_SERVER, i), &m);
  }
}

/* A server that began anew without them holds its shards again. */
static void fill_up(struct controller *c)
{
  for (uint32_t i = 0; i < c->config->memory_servers; i++)
    if (c->plan_members >> i & 1 && is_member(c->memory[i].state) && !(c->alive_members >> i & 1)) {
      c->alive_members |= 1ULL << i;
      tell_member(c, i, TRUE);
    }
}

void controller_placed(struct controller *c, uint32_t server, const struct message_placed *m)
{
  if (m->version != c->next_version || c->next_members == 0)
    return;
  if (!m->ok) { /* the shards do not fit: the present plan stays */
    c->next_members = 0;
    return;
  }
  c->memory[server].placed = TRUE;
  for (uint32_t i = 0; i < c->config->memory_servers; i++)
    if (!c->memory[i].placed)
      return;
  c->plan_members = c->next_members;
  c->plan_version = c->next_version;
  fill_up(c);
  for (uint32_t s = 0; s < c->config->servers; s++)
    if (is_member(c->view->server[s].state))
      send_plan(c, s);
}

static void plan_settled(struct controller *c)
{
  for (uint32_t s = 0; s < c->config->servers; s++)
    if (is_member(c->view->server[s].state) && c->server_plan[s] != c->plan_version)
      return;
  if (c->next_members == 0)
    return;
  c->next_members = 0;
  struct message drop = {.type = MESSAGE_DROP, .drop = {.version = c->plan_version}};
  struct message leave = {.type = MESSAGE_LEAVE};
  for (uint32_t i = 0; i < c->config->memory_servers; i++)
    if (c->memory[i].state == MEMBER_LEAVING && !(c->plan_members >> i & 1)) {
      world_send(c->world, ACTOR(ACTOR_MEMORY_SERVER, i), &leave);
      c->memory[i].state = MEMBER_ABSENT;
      c->alive_members &= ~(1ULL << i);
    } else if (c->memory[i].state == MEMBER_UP) {
      world_send(c->world, ACTOR(ACTOR_MEMORY_SERVER, i), &drop);
    }
  replan(c);
}

void controller_plan_ack(struct controller *c, uint32_t server, const struct message_plan *m)
{
  c->server_plan[server] = m->version;
  plan_settled(c);
}

/* --- joining
 * --------------------------------------------------------------------------------------------------------*/

static void gpu_server_up(struct controller *c, uint32_t server)
{
  const struct server_config *sc = &c->config->server[server];
  cluster_view_up(c->view, server, world_now(c->world));
  for (uint32_t i = 0; i < c->config->memory_servers; i++)
    if (c->plan_members >> i & 1 && !(c->alive_members >> i & 1))
      send_member(c, server, i, FALSE);
  if (c->plan_version > 0)
    send_plan(c, server);
  controller_retry_server(c, server); /* what was sent to it before it started anew */
  if (c->central_length > 0)
    controller_drain_central(c, NO_INDEX);
  for (uint32_t g = sc->first_gpu; g < sc->first_gpu + sc->gpus; g++)
    controller_gpu_idle(c, g);
}

static void lose_training(struct controller *c, uint32_t server)
{
  const struct server_config *sc = &c->config->server[server];
  for (uint32_t g = sc->first_gpu; g < sc->first_gpu + sc->gpus; g++)
    controller_training_lost(c, g);
}

static void gpu_server_joined(struct controller *c, uint32_t index, uint32_t epoch)
{
  if (is_member(c->view->server[index].state)) { /* it started anew before its silence was noticed */
    cluster_view_down(c->view, index, MEMBER_LOST);
    lose_training(c, index);
  }
  gpu_server_up(c, index);
  c->view->server[index].epoch = epoch;
}

static void memory_server_up(struct controller *c, uint32_t index)
{
  c->memory[index].state = MEMBER_UP;
  c->alive_members |= 1ULL << index;
  if (c->plan_members >> index & 1 || c->memory[index].told_dead)
    tell_member(c, index, TRUE);
  replan(c);
}

static void memory_server_lost(struct controller *c, uint32_t index)
{
  c->usage.members_lost++;
  record_member(c, ACTOR(ACTOR_MEMORY_SERVER, index), REASON_LOST);
  c->memory[index].state = MEMBER_LOST;
  c->alive_members &= ~(1ULL << index);
  tell_member(c, index, FALSE);
  if ((c->next_members | c->plan_members) >> index & 1 && c->plan_version != c->next_version)
    c->next_members = 0; /* it was to hold shards of the next plan, or to give them: plan anew */
  replan(c);
}

/* A process that began anew has the shards of the first plan, if it is a founder, and nothing else: of a
 * later plan it holds its part only once that was placed again. */
static void memory_server_joined(struct controller *c, uint32_t index, uint32_t epoch)
{
  struct memory_member *member = &c->memory[index];
  gboolean known = is_member(member->state) && member->epoch != 0; /* a founder counts as up from the start */
  gboolean holds = c->plan_version == 1 && index < c->config->memory_servers_at_start;
  if (known) /* its silence was not noticed */
    memory_server_lost(c, index);
  member->epoch = epoch;
  member->last_heard = world_now(c->world);
  if (holds || !(c->plan_members >> index & 1)) {
    memory_server_up(c, index);
  } else {
    member->state = MEMBER_UP;
    replan(c);
  }
}

void controller_join(struct controller *c, actor_id from, const struct message_join *m)
{
  uint32_t index = ACTOR_INDEX(from);
  record_member(c, from, REASON_JOINED);
  if (ACTOR_KIND(from) == ACTOR_GPU_SERVER) {
    gpu_server_joined(c, index, m->epoch);
  } else {
    memory_server_joined(c, index, m->epoch);
  }
}

void controller_heard(struct controller *c, actor_id from, uint32_t epoch)
{
  uint32_t index = ACTOR_INDEX(from);
  int64_t now = world_now(c->world);
  if (ACTOR_KIND(from) == ACTOR_GPU_SERVER) {
    struct server_view *server = &c->view->server[index];
    gboolean back = server->state == MEMBER_LOST && server->epoch == epoch;
    server->last_heard = now;
    if (back) {
      gpu_server_up(c, index);
      c->view->server[index].epoch = epoch;
      for (uint32_t i = 0; i < c->config->memory_servers; i++) /* what it missed meanwhile */
        if (c->alive_members >> i & 1)
          send_member(c, index, i, TRUE);
    }
  } else {
    c->memory[index].last_heard = now;
    if (c->memory[index].state == MEMBER_LOST && c->memory[index].epoch == epoch)
      memory_server_up(c, index);
  }
}

/* --- leaving
 * --------------------------------------------------------------------------------------------------------*/

static void gpu_server_lost(struct controller *c, uint32_t server)
{
  c->usage.members_lost++;
  record_member(c, ACTOR(ACTOR_GPU_SERVER, server), REASON_LOST);
  cluster_view_down(c->view, server, MEMBER_LOST);
  lose_training(c, server);
  controller_retry_server(c, server);
  controller_give_up_central(c);
  plan_settled(c);
}

void controller_lost(struct controller *c, actor_id peer)
{
  uint32_t index = ACTOR_INDEX(peer);
  if (ACTOR_KIND(peer) == ACTOR_GPU_SERVER && index < c->config->servers &&
      is_member(c->view->server[index].state))
    gpu_server_lost(c, index);
  else if (ACTOR_KIND(peer) == ACTOR_MEMORY_SERVER && index < c->config->memory_servers &&
           is_member(c->memory[index].state))
    memory_server_lost(c, index);
}

static void check_heartbeat(struct controller *c, actor_id member, enum member_state state,
                            int64_t last_heard)
{
  int64_t silent = world_now(c->world) - last_heard;
  c->usage.heartbeats_missed += is_member(state) && silent >= 2 * c->config->heartbeat_ns;
  if (silent > c->config->heartbeat_ns * c->config->heartbeat_misses)
    controller_lost(c, member);
}

void controller_check_heartbeats(struct controller *c)
{
  for (uint32_t s = 0; s < c->config->servers; s++)
    check_heartbeat(c, ACTOR(ACTOR_GPU_SERVER, s), c->view->server[s].state, c->view->server[s].last_heard);
  for (uint32_t i = 0; i < c->config->memory_servers; i++)
    check_heartbeat(c, ACTOR(ACTOR_MEMORY_SERVER, i), c->memory[i].state, c->memory[i].last_heard);
  c->world->ops->timer(c->world, c->config->heartbeat_ns, TIMER_TAG(TIMER_HEARTBEAT, 0));
}

void controller_remove(struct controller *c, const struct message_remove *m)
{
  if (m->kind == ACTOR_GPU_SERVER && m->index < c->config->servers &&
      c->view->server[m->index].state == MEMBER_UP) {
    const struct server_config *sc = &c->config->server[m->index];
    cluster_view_down(c->view, m->index, MEMBER_LEAVING);
    for (uint32_t g = sc->first_gpu; g < sc->first_gpu + sc->gpus; g++)
      if (c->trainee[g].job != NO_INDEX)
        controller_stop_training(c, g);
    controller_give_up_central(c);
    controller_leave_if_idle(c, m->index);
  } else if (m->kind == ACTOR_MEMORY_SERVER && m->index < c->config->memory_servers &&
             c->memory[m->index].state == MEMBER_UP) {
    c->memory[m->index].state = MEMBER_LEAVING;
    replan(c);
  }
}

void controller_leave_if_idle(struct controller *c, uint32_t server)
{
  const struct server_config *sc = &c->config->server[server];
  if (c->view->server[server].state != MEMBER_LEAVING)
    return;
  for (uint32_t g = sc->first_gpu; g < sc->first_gpu + sc->gpus; g++)
    if (c->view->gpu[g].outstanding > 0 || c->trainee[g].job != NO_INDEX)
      return;
  record_member(c, ACTOR(ACTOR_GPU_SERVER, server), REASON_LEFT);
  c->view->server[server].state = MEMBER_ABSENT;
  struct message m = {.type = MESSAGE_LEAVE};
  world_send(c->world, ACTOR(ACTOR_GPU_SERVER, server), &m);
  plan_settled(c);
}
