/* Where shards lie as memory servers change.
 *
 * A change of the memory pool goes: PLACE to the servers of the next plan (they fetch what they lack from the
 * holders under the present one), PLACED from all, PLAN to the GPU servers, their acknowledgement when no
 * fetch uses the old plan, DROP to the memory servers. One change at a time; what happened meanwhile is the
 * next change. */
#include "core/controller_internal.h"

void controller_send_plan(struct controller *c, uint32_t server)
{
  struct message m = {.type = MESSAGE_PLAN, .plan = {.version = c->plan_version, .members = c->plan_members}};
  world_send(c->world, ACTOR(ACTOR_GPU_SERVER, server), &m);
}

static uint64_t members_in(const struct controller *c, enum member_state state)
{
  uint64_t members = 0;
  for (uint32_t i = 0; i < c->config->memory_servers; i++)
    if (c->memory[i].state == state)
      members |= 1ULL << i;
  return members;
}

/* The members of the next plan, 0: none is to be, or can be. What the dead held can be had while a copy of
 * each shard is left. What others lost when they began anew is read from its source: so too where the dead
 * leave no other plan than the present one. */
static uint64_t next_plan(const struct controller *c)
{
  uint64_t wanted = members_in(c, MEMBER_UP), missing = c->plan_members & ~c->alive_members;
  uint64_t dead = missing & ~wanted & ~members_in(c, MEMBER_LEAVING);
  if (c->config->system->residence != RESIDENCE_POOL)
    return 0;
  if ((uint32_t)__builtin_popcountll(dead) < c->config->replicas)
    return wanted == c->plan_members && missing == 0 ? 0 : wanted;
  return missing & wanted ? c->plan_members : 0;
}

/* Those that are to leave and hold nothing of the plan. */
static void let_go(struct controller *c)
{
  struct message leave = {.type = MESSAGE_LEAVE};
  for (uint32_t i = 0; i < c->config->memory_servers; i++) {
    if (c->memory[i].state != MEMBER_LEAVING || c->plan_members >> i & 1)
      continue;
    world_send(c->world, ACTOR(ACTOR_MEMORY_SERVER, i), &leave);
    c->memory[i].state = MEMBER_ABSENT;
    c->memory[i].leaving = FALSE;
    c->alive_members &= ~(1ULL << i);
  }
}

void controller_replan(struct controller *c)
{
  if (c->next_members != 0)
    return;
  let_go(c);
  uint64_t next = next_plan(c);
  if (next == 0)
    return;
  c->plan_again = FALSE;
  c->next_members = next;
  c->asked_members = next & members_in(c, MEMBER_UP);
  c->next_version = MAX(c->next_version, c->plan_version) + 1;
  struct message m = {.type = MESSAGE_PLACE,
                      .place = {.version = c->next_version,
                                .members = next,
                                .present = c->plan_members,
                                .from = c->plan_members & c->alive_members}};
  for (uint32_t i = 0; i < c->config->memory_servers; i++) {
    c->memory[i].placed = !(c->asked_members >> i & 1);
    if (c->asked_members >> i & 1)
      world_send(c->world, ACTOR(ACTOR_MEMORY_SERVER, i), &m);
  }
}

/* A server that began anew without them holds its shards again. */
static void fill_up(struct controller *c)
{
  for (uint32_t i = 0; i < c->config->memory_servers; i++)
    if (c->asked_members >> i & 1 && member_is_there(c->memory[i].state) && !(c->alive_members >> i & 1)) {
      c->alive_members |= 1ULL << i;
      controller_tell_member(c, i, TRUE);
    }
}

void controller_placed(struct controller *c, uint32_t server, const struct message_placed *m)
{
  if (m->version != c->next_version || c->next_members == 0)
    return;
  if (m->result != PLACED_DONE) { /* the present plan stays */
    c->next_members = 0;
    c->plan_again = m->result == PLACED_GIVEN_UP;
    if (m->result == PLACED_NO_ROOM)
      controller_record_member(c, ACTOR(ACTOR_MEMORY_SERVER, server), REASON_NO_ROOM);
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
    if (member_is_there(c->view->server[s].state))
      controller_send_plan(c, s);
}

void controller_plan_settled(struct controller *c)
{
  for (uint32_t s = 0; s < c->config->servers; s++)
    if (member_is_there(c->view->server[s].state) && c->server_plan[s] != c->plan_version)
      return;
  if (c->next_members == 0)
    return;
  c->next_members = 0;
  struct message drop = {.type = MESSAGE_DROP, .drop = {.version = c->plan_version}};
  for (uint32_t i = 0; i < c->config->memory_servers; i++)
    if (c->memory[i].state == MEMBER_UP)
      world_send(c->world, ACTOR(ACTOR_MEMORY_SERVER, i), &drop);
  controller_replan(c);
}

void controller_plan_ack(struct controller *c, uint32_t server, const struct message_plan *m)
{
  c->server_plan[server] = m->version;
  controller_plan_settled(c);
}
