/* What peers may do to an actor: no number of theirs is trusted, nobody is believed what is not theirs to
 * say, and what they do costs no memory for ever. */
#include "scripted_world.h"

#include <criterion/criterion.h>
#include <string.h>

#include "core/controller.h"
#include "core/gpu_server.h"

static const char *const all_systems[] = {"ideal", "ideal-shared", "distmind",     "pipeswitch",
                                          "mps",   "ray",          "serverlessllm"};

static struct controller *controller_of(struct scripted_world *w)
{
  struct controller *c = controller_new(&w->config, &w->world);
  scripted_world_start(w, &controller_actor, c);
  for (uint32_t s = 0; s < 2; s++)
    scripted_world_say(w, ACTOR(ACTOR_GPU_SERVER, s),
                       &(struct message){.type = MESSAGE_JOIN, .join = {.epoch = 1}});
  return c;
}

static void request(struct scripted_world *w, uint64_t id, uint32_t model)
{
  struct message m = {.type = MESSAGE_REQUEST, .request = {.id = id, .model = model, .slot = NO_INDEX}};
  scripted_world_say(w, ACTOR(ACTOR_CLIENT, 0), &m);
}

/* The GPU server answers what it was sent. */
static void done(struct scripted_world *w, const struct scripted_mail *dispatch)
{
  const struct message_dispatch *d = &dispatch->message.dispatch;
  struct message m = {
      .type = MESSAGE_DONE,
      .done = {.id = d->id, .tag = d->tag, .attempt = d->attempt, .waited_ns = 0, .executed_ns = 1}};
  scripted_world_say(w, dispatch->to, &m);
}

/* --- any message from anybody
 * ---------------------------------------------------------------------------------------------------------*/

static uint64_t wild(GRand *rand)
{
  static const uint64_t edges[] = {0,
                                   1,
                                   2,
                                   3,
                                   4,
                                   5,
                                   63,
                                   64,
                                   INT32_MAX,
                                   UINT32_MAX - 1,
                                   UINT32_MAX,
                                   INT64_MAX,
                                   (uint64_t)INT64_MAX + 1,
                                   UINT64_MAX};
  return g_rand_int_range(rand, 0, 3) ? (uint64_t)g_rand_int_range(rand, 0, 5)
                                      : edges[g_rand_int_range(rand, 0, G_N_ELEMENTS(edges))];
}

/* A message with any numbers, as if its decoder had no bounds. */
static struct message wild_message(GRand *rand)
{
  struct message message = {.type = (enum message_type)g_rand_int_range(rand, 0, MESSAGE_TYPES)};
  switch (message.type) {
#define F(type, field, bound) m->field = (message_##type)wild(rand);
#define M(TYPE, name, fields)                                                                                \
  case MESSAGE_##TYPE: {                                                                                     \
    struct message_##name *m = &message.name;                                                                \
    fields break;                                                                                            \
  }
    MESSAGE_TABLE(M)
#undef M
#undef F
  case MESSAGE_TYPES:
    break;
  }
  return message;
}

static actor_id wild_actor(GRand *rand)
{
  return ACTOR(g_rand_int_range(rand, 0, 4), wild(rand) & 0xffffff);
}

Test(peers, a_controller_bears_any_message)
{
  for (size_t i = 0; i < G_N_ELEMENTS(all_systems); i++) {
    g_autoptr(ScriptedWorld) w = scripted_world_new(all_systems[i]);
    GRand *rand = g_rand_new_with_seed((guint32)i);
    w->config.train_profile = i % 2 ? 0 : NO_INDEX;
    w->config.timeout_ns = 50 * NS_PER_MS;
    struct controller *c = controller_of(w);
    for (int k = 0; k < 20000; k++) {
      struct message m = wild_message(rand);
      if (m.type == MESSAGE_REQUEST) /* of these the queues grow as they should */
        m.request.service_ns = MIN(m.request.service_ns, NS_PER_S);
      scripted_world_say(w, wild_actor(rand), &m);
      if (k % 16 == 0)
        scripted_world_until(w, w->now + g_rand_int_range(rand, 0, NS_PER_MS));
      if (k % 64 == 0)
        g_array_set_size(w->mail, 0);
    }
    controller_free(c);
    g_rand_free(rand);
  }
}

/* After the storm, and as if it had not been: a GPU server that nobody has confused serves. */
Test(peers, a_gpu_server_bears_any_message)
{
  for (size_t i = 0; i < G_N_ELEMENTS(all_systems); i++) {
    g_autoptr(ScriptedWorld) w = scripted_world_new(all_systems[i]);
    GRand *rand = g_rand_new_with_seed((guint32)i);
    w->config.train_profile = i % 2 ? 0 : NO_INDEX;
    struct gpu_server *s = gpu_server_new(&w->config, 1, &w->world);
    scripted_world_start(w, &gpu_server_actor, s);
    for (int k = 0; k < 20000; k++) {
      struct message m = wild_message(rand);
      scripted_world_say(w, wild_actor(rand), &m);
      for (int n = g_rand_int_range(rand, 0, 8); n > 0; n--)
        scripted_world_complete(w);
      if (k % 16 == 0)
        scripted_world_until(w, w->now + g_rand_int_range(rand, 0, NS_PER_MS));
    }
    while (scripted_world_complete(w) || w->live_timers > 0)
      scripted_world_until(w, w->now + NS_PER_MS);
    cr_expect_eq(scripted_world_count(w, MESSAGE_DONE) > 100, TRUE, "%s: %u requests done", all_systems[i],
                 scripted_world_count(w, MESSAGE_DONE));
    gpu_server_free(s);
    g_rand_free(rand);
  }
}

/* --- who may say what
 * ---------------------------------------------------------------------------------------------------------*/

Test(peers, a_plan_of_servers_that_are_not_there_is_ignored)
{
  g_autoptr(ScriptedWorld) w = scripted_world_new("distmind");
  struct gpu_server *s = gpu_server_new(&w->config, 0, &w->world);
  scripted_world_start(w, &gpu_server_actor, s);
  struct message plan = {.type = MESSAGE_PLAN, .plan = {.version = 1, .members = 1ULL << 3 | 1}};
  scripted_world_say(w, ACTOR(ACTOR_CONTROLLER, 0), &plan);
  cr_expect_eq(scripted_world_count(w, MESSAGE_PLAN), 0);
  plan.plan.members = 7;
  scripted_world_say(w, ACTOR(ACTOR_CONTROLLER, 0), &plan);
  cr_assert_eq(scripted_world_count(w, MESSAGE_PLAN), 1);
  cr_expect_eq(scripted_world_sent(w, MESSAGE_PLAN)->message.plan.members, 7);
  gpu_server_free(s);
}

Test(peers, only_the_server_that_has_a_request_may_answer_it)
{
  g_autoptr(ScriptedWorld) w = scripted_world_new("ideal");
  struct controller *c = controller_of(w);
  request(w, 5, 0);
  struct scripted_mail dispatch = *scripted_world_sent(w, MESSAGE_DISPATCH);
  struct scripted_mail stranger = dispatch;
  stranger.to = ACTOR(ACTOR_GPU_SERVER, 1 - ACTOR_INDEX(dispatch.to));
  done(w, &stranger);
  stranger.to = ACTOR(ACTOR_MEMORY_SERVER, ACTOR_INDEX(dispatch.to));
  done(w, &stranger);
  stranger.to = ACTOR(ACTOR_CLIENT, ACTOR_INDEX(dispatch.to));
  done(w, &stranger);
  struct message known = {.type = MESSAGE_DONE,
                          .done = {.id = 5, .tag = dispatch.message.dispatch.tag, .found = FOUND_COUNT}};
  scripted_world_say(w, dispatch.to, &known); /* no way to find a model */
  cr_expect_eq(scripted_world_count(w, MESSAGE_ANSWER), 0);
  done(w, &dispatch);
  cr_expect_eq(scripted_world_count(w, MESSAGE_ANSWER), 1);
  done(w, &dispatch);
  cr_expect_eq(scripted_world_count(w, MESSAGE_ANSWER), 1, "answered twice");
  request(w, 6, 4); /* there are four models */
  cr_expect_eq(scripted_world_count(w, MESSAGE_DISPATCH), 1);
  controller_free(c);
}

/* A server that starts anew before anybody missed it has forgotten what it was sent: it is sent again. */
Test(peers, a_server_that_started_anew_is_sent_its_requests_again)
{
  g_autoptr(ScriptedWorld) w = scripted_world_new("distmind");
  w->config.train_profile = 0;
  w->config.train_endless = TRUE;
  struct controller *c = controller_of(w);
  scripted_world_until(w, w->now + NS_PER_MS); /* all four GPUs train */
  cr_expect_eq(scripted_world_count(w, MESSAGE_TRAIN), 4);
  request(w, 5, 0);
  struct scripted_mail first = *scripted_world_sent(w, MESSAGE_DISPATCH);
  struct message join = {.type = MESSAGE_JOIN, .join = {.epoch = 2}};
  g_array_set_size(w->mail, 0);
  scripted_world_say(w, first.to, &join);
  cr_assert_eq(scripted_world_count(w, MESSAGE_DISPATCH), 1);
  struct scripted_mail again = *scripted_world_sent(w, MESSAGE_DISPATCH);
  cr_expect_eq(again.message.dispatch.attempt, 1);
  done(w, &first);
  cr_expect_eq(scripted_world_count(w, MESSAGE_ANSWER), 0, "an answer from before counts for nothing");
  done(w, &again);
  cr_expect_eq(scripted_world_count(w, MESSAGE_ANSWER), 1);
  scripted_world_until(w, w->now + 10 * NS_PER_MS);
  cr_expect_eq(scripted_world_count(w, MESSAGE_TRAIN), 2, "its GPUs train again: %u",
               scripted_world_count(w, MESSAGE_TRAIN));
  controller_free(c);
}

/* Given up by the controller, a server may still train when it is heard again: it says so, and nobody waits
 * for it. */
Test(peers, a_trainer_that_is_busy_says_so)
{
  g_autoptr(ScriptedWorld) w = scripted_world_new("ideal");
  w->config.train_profile = 0;
  struct gpu_server *s = gpu_server_new(&w->config, 0, &w->world);
  scripted_world_start(w, &gpu_server_actor, s);
  for (uint32_t job = 3; job < 5; job++)
    scripted_world_say(w, ACTOR(ACTOR_CONTROLLER, 0),
                       &(struct message){.type = MESSAGE_TRAIN, .train = {.job = job, .steps = 10}});
  cr_assert_eq(scripted_world_count(w, MESSAGE_TRAINED), 1);
  const struct message_trained *refused = &scripted_world_sent(w, MESSAGE_TRAINED)->message.trained;
  cr_expect(refused->job == 4 && refused->steps == 0 && refused->stopped);
  scripted_world_complete(w);
  const struct message_trained *trained = &scripted_world_sent(w, MESSAGE_TRAINED)->message.trained;
  cr_expect(trained->job == 3 && trained->steps == 10 && !trained->stopped);
  gpu_server_free(s);
}

/* --- what they cost
 * ---------------------------------------------------------------------------------------------------------*/

/* A hundred thousand requests within their time limit: one timer at a time stands for all of them. */
Test(peers, time_limits_cost_one_timer)
{
  g_autoptr(ScriptedWorld) w = scripted_world_new("ideal");
  w->config.timeout_ns = 10 * NS_PER_S;
  struct controller *c = controller_of(w);
  for (uint64_t id = 0; id < 100000; id++) {
    request(w, id, id % 4);
    scripted_world_until(w, w->now + NS_PER_MS);
    struct scripted_mail dispatch = *scripted_world_sent(w, MESSAGE_DISPATCH);
    done(w, &dispatch);
    g_array_set_size(w->mail, 0);
  }
  cr_expect_eq(w->most_timers, 1, "%u timers", w->most_timers);
  controller_free(c);
}

/* Late to the nanosecond, each by its own arrival, those that were answered before not at all. */
Test(peers, each_request_is_late_by_its_own_arrival)
{
  g_autoptr(ScriptedWorld) w = scripted_world_new("ideal");
  w->config.timeout_ns = 50 * NS_PER_MS;
  struct controller *c = controller_of(w);
  int64_t began = w->now;
  for (uint64_t id = 0; id < 40; id++) {
    scripted_world_until(w, began + (int64_t)id * NS_PER_MS);
    request(w, id, 0);
    if (id % 3 == 0) {
      struct scripted_mail dispatch = *scripted_world_sent(w, MESSAGE_DISPATCH);
      done(w, &dispatch);
    }
  }
  for (int64_t id = 0; id < 40; id++) {
    g_array_set_size(w->mail, 0);
    scripted_world_until(w, began + id * NS_PER_MS + w->config.timeout_ns - 1);
    cr_expect_eq(scripted_world_count(w, MESSAGE_ANSWER), 0, "request %ld is answered too soon", id);
    scripted_world_until(w, w->now + 1);
    cr_expect_eq(scripted_world_count(w, MESSAGE_ANSWER), id % 3 ? 1 : 0, "request %ld", id);
    if (id % 3)
      cr_expect_eq(scripted_world_sent(w, MESSAGE_ANSWER)->message.answer.id, (uint64_t)id);
  }
  cr_expect_eq(controller_queue(c) <= 27, TRUE);
  controller_free(c);
}

/* A GPU that falls idle a thousand times before it may train has one timer for it, and so for jobs that come
 * meanwhile. */
Test(peers, idle_gpus_cost_one_timer_each)
{
  g_autoptr(ScriptedWorld) w = scripted_world_new("ideal");
  w->config.train_profile = 0;
  w->config.train_endless = TRUE;
  w->config.train_state_bytes = 10000000000; /* 20 s to switch */
  struct controller *c = controller_of(w);
  for (uint64_t id = 0; id < 1000; id++) {
    request(w, id, 0);
    scripted_world_until(w, w->now + NS_PER_MS);
    struct scripted_mail dispatch = *scripted_world_sent(w, MESSAGE_DISPATCH);
    done(w, &dispatch);
    struct message job = {.type = MESSAGE_JOB, .job = {.gpus_milli = UINT32_MAX, .duration_ns = NS_PER_S}};
    scripted_world_say(w, ACTOR(ACTOR_CLIENT, 0), &job);
  }
  cr_expect_eq(w->most_timers, 4, "%u timers", w->most_timers);
  scripted_world_until(w, w->now + 20 * NS_PER_S);
  cr_expect_eq(scripted_world_count(w, MESSAGE_TRAIN), 4);
  controller_free(c);
}

/* Any number of GPUs is some: a job that wants 4,294,968 of them gets all there are, and is done. */
Test(peers, a_job_that_wants_every_gpu_is_done)
{
  g_autoptr(ScriptedWorld) w = scripted_world_new("ideal");
  w->config.train_profile = 0;
  struct controller *c = controller_of(w);
  struct message job = {.type = MESSAGE_JOB, .job = {.gpus_milli = UINT32_MAX, .duration_ns = 1}};
  scripted_world_say(w, ACTOR(ACTOR_CLIENT, 0), &job);
  scripted_world_until(w, w->now + NS_PER_MS);
  uint64_t steps = 0;
  for (int i = 0; i < 100 && controller_jobs_left(c) > 0; i++) {
    g_autoptr(GArray) mail = g_steal_pointer(&w->mail);
    w->mail = g_array_new(FALSE, FALSE, sizeof(struct scripted_mail));
    for (guint k = 0; k < mail->len; k++) {
      const struct scripted_mail *m = &g_array_index(mail, struct scripted_mail, k);
      const struct message_train *train = &m->message.train;
      struct message trained = {
          .type = MESSAGE_TRAINED,
          .trained = {
              .gpu = train->gpu, .job = train->job, .steps = train->steps, .stopped = train->steps == 0}};
      if (m->message.type != MESSAGE_TRAIN)
        continue;
      steps += train->steps;
      scripted_world_say(w, m->to, &trained);
    }
  }
  cr_expect_eq(controller_jobs_done(c), 1);
  cr_expect_eq(steps, 5, "4,294,967.295 ns of GPU time in steps of 1 ms, not %lu", steps);
  controller_free(c);
}
