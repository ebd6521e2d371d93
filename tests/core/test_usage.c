/* What the controller counts for an onlooker. */
#include "scripted_world.h"

#include <criterion/criterion.h>

#include "core/cluster_view.h"
#include "core/controller.h"

#define BEAT  (100 * NS_PER_MS)
#define CLOCK 7777777 /* when the controller starts, by its clock */

static void say_all(struct scripted_world *w, enum message_type type, uint32_t servers)
{
  struct message m = {.type = type};
  if (type == MESSAGE_JOIN)
    m.join.epoch = 1;
  else
    m.heartbeat.epoch = 1;
  for (uint32_t s = 0; s < servers; s++)
    scripted_world_say(w, ACTOR(ACTOR_GPU_SERVER, s), &m);
  for (uint32_t i = 0; i < w->config.memory_servers; i++)
    scripted_world_say(w, ACTOR(ACTOR_MEMORY_SERVER, i), &m);
}

static struct controller *controller_of(struct scripted_world *w)
{
  w->config.heartbeat_ns = BEAT;
  w->config.heartbeat_misses = 5;
  w->now = CLOCK;
  struct controller *c = controller_new(&w->config, &w->world);
  scripted_world_start(w, &controller_actor, c);
  say_all(w, MESSAGE_JOIN, 2);
  return c;
}

static void request(struct scripted_world *w, uint64_t id)
{
  struct message m = {.type = MESSAGE_REQUEST, .request = {.id = id, .model = 1, .slot = NO_INDEX}};
  scripted_world_say(w, ACTOR(ACTOR_CLIENT, 0), &m);
}

static void done(struct scripted_world *w, const struct scripted_mail *dispatch, enum outcome outcome,
                 enum found found)
{
  const struct message_dispatch *d = &dispatch->message.dispatch;
  struct message m = {.type = MESSAGE_DONE,
                      .done = {.id = d->id,
                               .tag = d->tag,
                               .attempt = d->attempt,
                               .outcome = outcome,
                               .found = found,
                               .executed_ns = 1}};
  scripted_world_say(w, dispatch->to, &m);
}

/* A request takes exactly this long from admission to answer. */
static void serve(struct scripted_world *w, uint64_t id, int64_t took, enum found found)
{
  request(w, id);
  struct scripted_mail dispatch = *scripted_world_sent(w, MESSAGE_DISPATCH);
  for (int64_t end = w->now + took; w->now < end;) { /* nobody falls silent meanwhile */
    scripted_world_until(w, MIN(end, w->now + BEAT));
    say_all(w, MESSAGE_HEARTBEAT, 2);
  }
  done(w, &dispatch, OUTCOME_COMPLETED, found);
}

/* On a bound and one past it, for each class; and what is longer than all. */
Test(usage, times_fall_into_their_classes)
{
  g_autoptr(ScriptedWorld) w = scripted_world_new("distmind");
  struct controller *c = controller_of(w);
  struct controller_usage u;
  uint64_t id = 0, expected[LATENCY_BOUNDS + 1] = {0};
  double sum = 0;
  for (uint32_t i = 0; i < LATENCY_BOUNDS; i++) {
    cr_assert(i == 0 || latency_bound_ns[i] > latency_bound_ns[i - 1]);
    for (int past = 0; past < 2; past++) {
      serve(w, id, latency_bound_ns[i] + past, (enum found)(id % FOUND_COUNT));
      id++;
      expected[i + past]++;
      sum += (double)(latency_bound_ns[i] + past);
    }
  }
  controller_usage(c, &u);
  cr_assert_eq(u.admitted, id);
  cr_assert_eq(u.outcomes[OUTCOME_COMPLETED], id);
  cr_assert_eq(u.latency_ns, sum);
  for (uint32_t i = 0; i <= LATENCY_BOUNDS; i++)
    cr_expect_eq(u.latency[i], expected[i], "class %u: %" G_GUINT64_FORMAT, i, u.latency[i]);
  uint64_t found = 0;
  for (uint32_t i = 0; i < FOUND_COUNT; i++)
    found += u.found[i];
  cr_assert_eq(found, id);
  cr_assert_eq(u.heartbeats_missed, 0);
  controller_free(c);
}

/* Retried while it may be, then lost: one admission, one outcome, no time. */
Test(usage, failures_and_retries)
{
  g_autoptr(ScriptedWorld) w = scripted_world_new("distmind");
  struct controller *c = controller_of(w);
  struct controller_usage u;
  request(w, 1);
  for (int i = 0; i < 4; i++)
    done(w, &g_array_index(w->mail, struct scripted_mail, w->mail->len - 1), OUTCOME_LOST, FOUND_RESIDENT);
  cr_assert_eq(scripted_world_sent(w, MESSAGE_ANSWER)->message.answer.outcome, OUTCOME_LOST);
  w->config.max_queue = 1;
  for (uint64_t id = 2; id < 12; id++)
    request(w, id);
  controller_usage(c, &u);
  cr_assert_eq(u.retries, 3);
  cr_assert_eq(u.outcomes[OUTCOME_LOST], 1);
  cr_assert_eq(u.admitted, 11);
  cr_assert_gt(u.outcomes[OUTCOME_REJECTED], 0);
  cr_assert_eq(u.outcomes[OUTCOME_REJECTED], scripted_world_count(w, MESSAGE_ANSWER) - 1);
  cr_assert_eq(u.latency_ns, 0);
  controller_free(c);
}

/* One GPU server is silent from the start on: missed from the second beat, lost after the fifth. */
Test(usage, silence)
{
  g_autoptr(ScriptedWorld) w = scripted_world_new("distmind");
  struct controller *c = controller_of(w);
  struct controller_usage u;
  uint32_t state[MEMBER_STATES];
  const uint64_t missed[] = {0, 0, 1, 2, 3, 4, 5, 5, 5};
  for (int beat = 1; beat <= 8; beat++) {
    scripted_world_until(w, CLOCK + beat * BEAT);
    say_all(w, MESSAGE_HEARTBEAT, 1);
    controller_usage(c, &u);
    cr_expect_eq(u.heartbeats_missed, missed[beat], "beat %d: %" G_GUINT64_FORMAT, beat, u.heartbeats_missed);
    cr_expect_eq(u.members_lost, beat > 5, "beat %d", beat);
    controller_members(c, ACTOR_GPU_SERVER, state);
    cr_expect_eq(state[MEMBER_UP], beat > 5 ? 1 : 2);
    cr_expect_eq(state[MEMBER_LOST], beat > 5);
  }
  controller_members(c, ACTOR_MEMORY_SERVER, state);
  cr_assert_eq(state[MEMBER_UP], 3);
  controller_free(c);
}
