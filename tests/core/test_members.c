/* The controller and its servers' comings and goings, by hand: what it asks of the memory pool when servers
 * begin anew, fail or have no room, and that who was asked to leave leaves, whatever happens to it meanwhile.
 */
#include "scripted_world.h"

#include <criterion/criterion.h>

#include "core/controller.h"

#define BEAT      (100 * NS_PER_MS)
#define MEMORY(i) ACTOR(ACTOR_MEMORY_SERVER, i)
#define GPUS(i)   ACTOR(ACTOR_GPU_SERVER, i)

struct pool {
  struct scripted_world *w;
  struct controller *c;
};

static void join(struct pool *p, actor_id who)
{
  scripted_world_say(p->w, who, &(struct message){.type = MESSAGE_JOIN, .join = {.epoch = 1}});
}

/* Two GPU servers, memory servers 0 to 2 and a place for one more. */
static void pool_open(struct pool *p, uint32_t replicas)
{
  p->w = scripted_world_new("distmind");
  p->w->config.memory_servers = 4;
  p->w->config.replicas = replicas;
  p->w->config.heartbeat_ns = BEAT;
  p->c = controller_new(&p->w->config, &p->w->world);
  scripted_world_start(p->w, &controller_actor, p->c);
  for (uint32_t i = 0; i < 2; i++)
    join(p, GPUS(i));
  for (uint32_t i = 0; i < 3; i++)
    join(p, MEMORY(i));
}

static void pool_close(struct pool *p)
{
  controller_free(p->c);
  scripted_world_free(p->w);
}

/* A heartbeat of those whose bit is set, and the time until the next. */
static void beat(struct pool *p, uint32_t gpus, uint32_t memory, int times)
{
  struct message m = {.type = MESSAGE_HEARTBEAT, .heartbeat = {.epoch = 1}};
  for (int n = 0; n < times; n++) {
    for (uint32_t i = 0; i < 4; i++) {
      if (gpus >> i & 1)
        scripted_world_say(p->w, GPUS(i), &m);
      if (memory >> i & 1)
        scripted_world_say(p->w, MEMORY(i), &m);
    }
    scripted_world_until(p->w, p->w->now + BEAT);
  }
}

static void lose(struct pool *p, actor_id who)
{
  controller_actor.peer_lost(p->c, who);
}

static void remove_server(struct pool *p, enum actor_kind kind, uint32_t index)
{
  scripted_world_say(p->w, ACTOR(ACTOR_CLIENT, 0),
                     &(struct message){.type = MESSAGE_REMOVE, .remove = {.kind = kind, .index = index}});
}

static const struct message *last(const struct pool *p, enum message_type type)
{
  const struct scripted_mail *mail = scripted_world_sent(p->w, type);
  return mail ? &mail->message : NULL;
}

/* Who was sent such a message; bits. */
static uint32_t sent_to(const struct pool *p, enum message_type type)
{
  uint32_t to = 0;
  for (guint i = 0; i < p->w->mail->len; i++) {
    const struct scripted_mail *mail = &g_array_index(p->w->mail, struct scripted_mail, i);
    if (mail->message.type == type)
      to |= 1u << ACTOR_INDEX(mail->to);
  }
  return to;
}

static void forget(struct pool *p)
{
  g_array_set_size(p->w->mail, 0);
}

static void placed(struct pool *p, uint32_t server, enum placed_result result)
{
  struct message m = {.type = MESSAGE_PLACED,
                      .placed = {.version = last(p, MESSAGE_PLACE)->place.version, .result = result}};
  scripted_world_say(p->w, MEMORY(server), &m);
}

/* PLACE must have been sent to `asked` with these members; all follow it, GPU servers too. */
static void settle(struct pool *p, uint64_t members, uint64_t from, uint32_t asked)
{
  const struct message *place = last(p, MESSAGE_PLACE);
  cr_assert_not_null(place, "no change is begun");
  cr_assert(
      place->place.members == members && place->place.from == from && sent_to(p, MESSAGE_PLACE) == asked,
      "members %lx from %lx asked %x", place->place.members, place->place.from, sent_to(p, MESSAGE_PLACE));
  struct message plan = {.type = MESSAGE_PLAN, .plan = {.version = place->place.version, .members = members}};
  for (uint32_t i = 0; i < 4; i++)
    if (asked >> i & 1)
      placed(p, i, PLACED_DONE);
  cr_assert(last(p, MESSAGE_PLAN) && last(p, MESSAGE_PLAN)->plan.members == members, "no plan is told");
  for (uint32_t i = 0; i < 2; i++)
    if (sent_to(p, MESSAGE_PLAN) >> i & 1)
      scripted_world_say(p->w, GPUS(i), &plan);
}

/* Under a later plan than the first. */
static void pool_of_four(struct pool *p, uint32_t replicas)
{
  pool_open(p, replicas);
  join(p, MEMORY(3));
  settle(p, 15, 7, 15);
  forget(p);
}

static void expect_told(const struct pool *p, uint32_t index, gboolean alive)
{
  const struct message *m = last(p, MESSAGE_MEMBER);
  cr_assert(m && m->member.index == index && m->member.alive == (uint32_t)alive &&
                sent_to(p, MESSAGE_MEMBER) == 3,
            "GPU servers are not told that memory server %u is %s", index, alive ? "there" : "lost");
}

/* --- shards that nobody has
 * --------------------------------------------------------------------------------------------*/

Test(members, a_memory_server_that_began_anew_gets_its_only_copies_back)
{
  struct pool p;
  pool_of_four(&p, 1);
  lose(&p, MEMORY(1));
  expect_told(&p, 1, FALSE);
  cr_assert_null(last(&p, MESSAGE_PLACE), "the others cannot have what it had");
  forget(&p);
  join(&p, MEMORY(1));
  cr_assert_null(last(&p, MESSAGE_MEMBER), "it holds nothing yet");
  settle(&p, 15, 13, 15);
  expect_told(&p, 1, TRUE);
  cr_assert_eq(sent_to(&p, MESSAGE_DROP), 15);
  pool_close(&p);
}

/* Two are gone; the one that is back need not wait for the other. */
Test(members, it_does_not_wait_for_others_that_are_dead)
{
  struct pool p;
  pool_of_four(&p, 1);
  lose(&p, MEMORY(1));
  lose(&p, MEMORY(2));
  forget(&p);
  join(&p, MEMORY(1));
  settle(&p, 15, 9, 11);
  expect_told(&p, 1, TRUE);
  forget(&p);
  beat(&p, 3, 11, 3);
  cr_assert_null(last(&p, MESSAGE_PLACE), "nothing more can be done");
  join(&p, MEMORY(2));
  settle(&p, 15, 11, 15);
  expect_told(&p, 2, TRUE);
  pool_close(&p);
}

/* --- changes that fail
 * --------------------------------------------------------------------------------------------------*/

Test(members, a_change_that_was_given_up_is_tried_again)
{
  struct pool p;
  pool_open(&p, 1);
  join(&p, MEMORY(3));
  for (uint32_t i = 1; i <= 3; i++) {
    cr_assert_eq(scripted_world_count(p.w, MESSAGE_PLACE), 4 * i);
    placed(&p, i, PLACED_GIVEN_UP);
    cr_assert_eq(scripted_world_count(p.w, MESSAGE_PLACE), 4 * i, "not at once");
    beat(&p, 3, 15, 1);
  }
  pool_close(&p);
}

Test(members, a_change_that_does_not_fit_waits_for_another)
{
  struct pool p;
  pool_open(&p, 1);
  join(&p, MEMORY(3));
  placed(&p, 2, PLACED_NO_ROOM);
  forget(&p);
  beat(&p, 3, 15, 5);
  cr_assert_null(last(&p, MESSAGE_PLACE));
  remove_server(&p, ACTOR_MEMORY_SERVER, 3);
  cr_assert_eq(sent_to(&p, MESSAGE_LEAVE), 8, "it holds nothing: it may go");
  pool_close(&p);
}

/* --- who is to leave
 * ----------------------------------------------------------------------------------------------------*/

static void expect_gone(struct pool *p, uint32_t server, uint64_t members)
{
  cr_assert_eq(sent_to(p, MESSAGE_LEAVE), 1u << server, "memory server %u is not let go", server);
  forget(p);
  beat(p, 3, 15 & ~(1u << server), 5);
  cr_assert_null(last(p, MESSAGE_PLACE));
  join(p, MEMORY(server)); /* later it may come as any other */
  cr_assert_eq(last(p, MESSAGE_PLACE)->place.members, members | 1u << server);
}

Test(members, a_memory_server_leaves_though_it_was_silent_meanwhile)
{
  struct pool p;
  pool_of_four(&p, 1);
  remove_server(&p, ACTOR_MEMORY_SERVER, 1);
  cr_assert_eq(last(&p, MESSAGE_PLACE)->place.members, 13);
  beat(&p, 3, 13, 5);
  expect_told(&p, 1, FALSE);
  forget(&p);
  beat(&p, 3, 15, 1);
  expect_told(&p, 1, TRUE);
  settle(&p, 13, 15, 13);
  expect_gone(&p, 1, 13);
  pool_close(&p);
}

Test(members, a_memory_server_that_nobody_needs_leaves_at_once_when_it_is_back)
{
  for (int anew = 0; anew < 2; anew++) {
    struct pool p;
    pool_of_four(&p, 2);
    lose(&p, MEMORY(1));
    remove_server(&p, ACTOR_MEMORY_SERVER, 1); /* while it is lost */
    settle(&p, 13, 13, 13);
    forget(&p);
    if (anew)
      join(&p, MEMORY(1));
    else
      beat(&p, 3, 15, 1);
    expect_gone(&p, 1, 13);
    pool_close(&p);
  }
}

/* What it had, the others read from the source. */
Test(members, a_memory_server_that_is_to_leave_and_began_anew_is_not_waited_for)
{
  struct pool p;
  pool_of_four(&p, 1);
  remove_server(&p, ACTOR_MEMORY_SERVER, 1);
  lose(&p, MEMORY(1));
  forget(&p);
  join(&p, MEMORY(1));
  settle(&p, 13, 13, 13);
  expect_gone(&p, 1, 13);
  pool_close(&p);
}

static void request(struct pool *p, uint64_t id)
{
  struct message m = {.type = MESSAGE_REQUEST, .request = {.id = id, .model = id % 4, .slot = NO_INDEX}};
  scripted_world_say(p->w, ACTOR(ACTOR_CLIENT, 0), &m);
}

Test(members, a_gpu_server_leaves_though_it_was_silent_meanwhile)
{
  for (int anew = 0; anew < 2; anew++) {
    struct pool p;
    pool_open(&p, 1);
    for (uint64_t id = 0; id < 8; id++)
      request(&p, id);
    cr_assert_eq(sent_to(&p, MESSAGE_DISPATCH), 3);
    remove_server(&p, ACTOR_GPU_SERVER, 1);
    cr_assert_null(last(&p, MESSAGE_LEAVE), "it has requests");
    forget(&p);
    beat(&p, 1, 7, 5);
    cr_assert_eq(sent_to(&p, MESSAGE_DISPATCH), 1, "its requests go elsewhere");
    forget(&p);
    if (anew)
      join(&p, GPUS(1));
    else
      beat(&p, 3, 7, 1);
    cr_assert_eq(sent_to(&p, MESSAGE_LEAVE), 2);
    for (uint64_t id = 8; id < 16; id++)
      request(&p, id);
    cr_assert_eq(sent_to(&p, MESSAGE_DISPATCH), 1, "it is used again");
    forget(&p);
    join(&p, GPUS(1)); /* as any other, later */
    for (uint64_t id = 16; id < 32; id++)
      request(&p, id);
    cr_assert_eq(sent_to(&p, MESSAGE_DISPATCH), 3);
    pool_close(&p);
  }
}
