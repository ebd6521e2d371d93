/* Members of both pools: who joined, who is silent, who leaves. */
#include "core/controller_internal.h"

void controller_record_member(struct controller *c, actor_id member, enum record_reason reason)
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

static void send_member(struct controller *c, uint32_t server, uint32_t index, gboolean alive)
{
  struct message m = {.type = MESSAGE_MEMBER, .member = {.index = index, .alive = alive}};
  world_send(c->world, ACTOR(ACTOR_GPU_SERVER, server), &m);
}

void controller_tell_member(struct controller *c, uint32_t index, gboolean alive)
{
  c->memory[index].told_dead = !alive;
  for (uint32_t s = 0; s < c->config->servers; s++)
    if (member_is_there(c->view->server[s].state))
      send_member(c, s, index, alive);
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
    controller_send_plan(c, server);
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

/* It is to leave and was lost, or has begun anew: nothing is sent to it any more. */
static void gpu_server_leaves(struct controller *c, uint32_t server)
{
  cluster_view_up(c->view, server, world_now(c->world));
  cluster_view_down(c->view, server, MEMBER_LEAVING);
  controller_retry_server(c, server);
  controller_leave_if_idle(c, server);
}

static void gpu_server_joined(struct controller *c, uint32_t index, uint32_t epoch)
{
  if (member_is_there(c->view->server[index].state)) { /* it started anew before its silence was noticed */
    cluster_view_down(c->view, index, MEMBER_LOST);
    lose_training(c, index);
  }
  if (c->server_leaving[index])
    gpu_server_leaves(c, index);
  else
    gpu_server_up(c, index);
  c->view->server[index].epoch = epoch;
}

/* Silent for long, but the same. */
static void gpu_server_back(struct controller *c, uint32_t index, uint32_t epoch)
{
  gpu_server_joined(c, index, epoch);
  for (uint32_t i = 0; i < c->config->memory_servers; i++) /* what it missed meanwhile */
    if (c->alive_members >> i & 1 && member_is_there(c->view->server[index].state))
      send_member(c, index, i, TRUE);
}

/* holds: what the plan gives it. One that is to leave does so when its shards are elsewhere. */
static void memory_server_up(struct controller *c, uint32_t index, gboolean holds)
{
  struct memory_member *member = &c->memory[index];
  member->state = member->leaving ? MEMBER_LEAVING : MEMBER_UP;
  if (holds) {
    c->alive_members |= 1ULL << index;
    if (c->plan_members >> index & 1 || member->told_dead)
      controller_tell_member(c, index, TRUE);
  }
  controller_replan(c);
}

static void memory_server_lost(struct controller *c, uint32_t index)
{
  c->usage.members_lost++;
  controller_record_member(c, ACTOR(ACTOR_MEMORY_SERVER, index), REASON_LOST);
  c->memory[index].state = MEMBER_LOST;
  c->alive_members &= ~(1ULL << index);
  controller_tell_member(c, index, FALSE);
  if ((c->next_members | c->plan_members) >> index & 1 && c->plan_version != c->next_version)
    c->next_members = 0; /* it was to hold shards of the next plan, or to give them: plan anew */
  controller_replan(c);
}

/* A process that began anew has the shards of the first plan, if it is a founder, and nothing else: of a
 * later plan it holds its part only once that was placed again. */
static void memory_server_joined(struct controller *c, uint32_t index, uint32_t epoch)
{
  struct memory_member *member = &c->memory[index];
  gboolean known =
      member_is_there(member->state) && member->epoch != 0; /* a founder counts as up from the start */
  gboolean holds = c->plan_version == 1 && index < c->config->memory_servers_at_start;
  if (known) /* its silence was not noticed */
    memory_server_lost(c, index);
  member->epoch = epoch;
  member->last_heard = world_now(c->world);
  memory_server_up(c, index, holds || !(c->plan_members >> index & 1));
}

void controller_join(struct controller *c, actor_id from, const struct message_join *m)
{
  uint32_t index = ACTOR_INDEX(from);
  controller_record_member(c, from, REASON_JOINED);
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
    if (back)
      gpu_server_back(c, index, epoch);
  } else {
    c->memory[index].last_heard = now;
    if (c->memory[index].state == MEMBER_LOST && c->memory[index].epoch == epoch)
      memory_server_up(c, index, TRUE);
  }
}

/* --- leaving
 * --------------------------------------------------------------------------------------------------------*/

static void gpu_server_lost(struct controller *c, uint32_t server)
{
  c->usage.members_lost++;
  controller_record_member(c, ACTOR(ACTOR_GPU_SERVER, server), REASON_LOST);
  cluster_view_down(c->view, server, MEMBER_LOST);
  lose_training(c, server);
  controller_retry_server(c, server);
  controller_give_up_central(c);
  controller_plan_settled(c);
}

void controller_lost(struct controller *c, actor_id peer)
{
  uint32_t index = ACTOR_INDEX(peer);
  if (ACTOR_KIND(peer) == ACTOR_GPU_SERVER && index < c->config->servers &&
      member_is_there(c->view->server[index].state))
    gpu_server_lost(c, index);
  else if (ACTOR_KIND(peer) == ACTOR_MEMORY_SERVER && index < c->config->memory_servers &&
           member_is_there(c->memory[index].state))
    memory_server_lost(c, index);
}

static void check_heartbeat(struct controller *c, actor_id member, enum member_state state,
                            int64_t last_heard)
{
  int64_t silent = world_now(c->world) - last_heard;
  c->usage.heartbeats_missed += member_is_there(state) && silent >= 2 * c->config->heartbeat_ns;
  if (silent > c->config->heartbeat_ns * c->config->heartbeat_misses)
    controller_lost(c, member);
}

void controller_check_heartbeats(struct controller *c)
{
  for (uint32_t s = 0; s < c->config->servers; s++)
    check_heartbeat(c, ACTOR(ACTOR_GPU_SERVER, s), c->view->server[s].state, c->view->server[s].last_heard);
  for (uint32_t i = 0; i < c->config->memory_servers; i++)
    check_heartbeat(c, ACTOR(ACTOR_MEMORY_SERVER, i), c->memory[i].state, c->memory[i].last_heard);
  if (c->plan_again)
    controller_replan(c);
  c->world->ops->timer(c->world, c->config->heartbeat_ns, TIMER_TAG(TIMER_HEARTBEAT, 0));
}

static void remove_gpu_server(struct controller *c, uint32_t server)
{
  const struct server_config *sc = &c->config->server[server];
  enum member_state state = c->view->server[server].state;
  c->server_leaving[server] = state != MEMBER_ABSENT;
  if (state != MEMBER_UP)
    return;
  cluster_view_down(c->view, server, MEMBER_LEAVING);
  for (uint32_t g = sc->first_gpu; g < sc->first_gpu + sc->gpus; g++)
    if (c->trainee[g].job != NO_INDEX)
      controller_stop_training(c, g);
  controller_give_up_central(c);
  controller_leave_if_idle(c, server);
}

static void remove_memory_server(struct controller *c, uint32_t index)
{
  struct memory_member *member = &c->memory[index];
  member->leaving = member->state != MEMBER_ABSENT;
  if (member->state != MEMBER_UP)
    return;
  member->state = MEMBER_LEAVING;
  controller_replan(c);
}

void controller_remove(struct controller *c, const struct message_remove *m)
{
  if (m->kind == ACTOR_GPU_SERVER && m->index < c->config->servers)
    remove_gpu_server(c, m->index);
  else if (m->kind == ACTOR_MEMORY_SERVER && m->index < c->config->memory_servers)
    remove_memory_server(c, m->index);
}

void controller_leave_if_idle(struct controller *c, uint32_t server)
{
  const struct server_config *sc = &c->config->server[server];
  if (c->view->server[server].state != MEMBER_LEAVING)
    return;
  for (uint32_t g = sc->first_gpu; g < sc->first_gpu + sc->gpus; g++)
    if (c->view->gpu[g].outstanding > 0 || c->trainee[g].job != NO_INDEX)
      return;
  controller_record_member(c, ACTOR(ACTOR_GPU_SERVER, server), REASON_LEFT);
  c->view->server[server].state = MEMBER_ABSENT;
  c->server_leaving[server] = FALSE;
  struct message m = {.type = MESSAGE_LEAVE};
  world_send(c->world, ACTOR(ACTOR_GPU_SERVER, server), &m);
  controller_plan_settled(c);
}
