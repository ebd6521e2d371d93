/* The controller as an actor: state, start, and who handles which message. */
#include "core/controller_internal.h"

struct controller *controller_new(const struct config *config, struct world *world)
{
  struct controller *c = g_new0(struct controller, 1);
  c->config = config;
  c->world = world;
  c->view = cluster_view_new(config);
  c->free_slot = NO_INDEX;
  c->central = c->open = (struct tag_list){NO_INDEX, NO_INDEX};
  uint32_t models = catalog_models(config->catalog);
  c->central_model = g_new(struct tag_list, models);
  for (uint32_t m = 0; m < models; m++)
    c->central_model[m] = c->central;
  c->memory = g_new0(struct memory_member, MAX(1, config->memory_servers));
  c->server_plan = g_new0(uint32_t, MAX(1, config->servers));
  c->server_leaving = g_new0(gboolean, MAX(1, config->servers));
  c->jobs = g_array_new(FALSE, TRUE, sizeof(struct job));
  c->trainee = g_new0(struct trainee, config->gpus);
  for (uint32_t g = 0; g < config->gpus; g++)
    c->trainee[g].job = NO_INDEX;
  if (config->train_profile != NO_INDEX && config->train_endless) {
    struct job endless = {.gpus = config->gpus, .next = 1, .steps_left = UINT64_MAX};
    g_array_append_val(c->jobs, endless);
  }
  return c;
}

void controller_free(struct controller *c)
{
  if (!c)
    return;
  cluster_view_free(c->view);
  g_free(c->slot);
  g_free(c->central_model);
  g_free(c->memory);
  g_free(c->server_plan);
  g_free(c->server_leaving);
  g_array_unref(c->jobs);
  g_free(c->trainee);
  g_free(c);
}

static void controller_start(void *actor)
{
  struct controller *c = actor;
  uint32_t n = c->config->memory_servers_at_start;
  c->plan_version = 1;
  c->plan_members = c->alive_members = n >= 64 ? UINT64_MAX : (1ULL << n) - 1;
  /* The founders are up until they are silent: the first of them to join is no reason to move shards. */
  for (uint32_t i = 0; i < n; i++)
    c->memory[i] = (struct memory_member){.state = MEMBER_UP, .last_heard = world_now(c->world)};
  if (c->config->heartbeat_ns > 0)
    c->world->ops->timer(c->world, c->config->heartbeat_ns, TIMER_TAG(TIMER_HEARTBEAT, 0));
}

/* A model that a request on its way to the GPU needs is kept in the beliefs: it will be loaded again. */
static void controller_model_state(struct controller *c, uint32_t server, const struct message_model_state *m)
{
  gboolean wanted = FALSE;
  if (m->model >= catalog_models(c->config->catalog))
    return;
  if (m->gpu != NO_INDEX) {
    if (m->gpu >= c->config->server[server].gpus)
      return; /* not a GPU of its sender */
    uint32_t gpu = c->config->server[server].first_gpu + m->gpu;
    for (uint32_t tag = c->view->gpu[gpu].first; tag != NO_INDEX && !wanted; tag = c->slot[tag].next)
      wanted = c->slot[tag].model == m->model;
  }
  cluster_view_model_state(c->view, server, m, wanted, world_now(c->world));
}

/* What only a GPU server may say. */
static void gpu_server_says(struct controller *c, uint32_t server, const struct message *m)
{
  switch (m->type) {
  case MESSAGE_DONE:
    controller_done(c, server, &m->done);
    break;
  case MESSAGE_MODEL_STATE:
    controller_model_state(c, server, &m->model_state);
    break;
  case MESSAGE_REPORT:
    cluster_view_report(c->view, server, &m->report);
    break;
  case MESSAGE_PLAN:
    controller_plan_ack(c, server, &m->plan);
    break;
  case MESSAGE_TRAINED:
    controller_trained(c, server, &m->trained);
    break;
  default:
    break;
  }
}

/* What clients and operators may say. */
static void client_says(struct controller *c, const struct message *m)
{
  if (m->type == MESSAGE_REQUEST)
    controller_request(c, &m->request);
  else if (m->type == MESSAGE_JOB)
    controller_job(c, &m->job);
  else if (m->type == MESSAGE_REMOVE)
    controller_remove(c, &m->remove);
}

/* Nobody is believed what is not theirs to say; a message for somebody else is ignored. */
static void controller_message(void *actor, actor_id from, const struct message *m)
{
  struct controller *c = actor;
  uint32_t index = ACTOR_INDEX(from);
  gboolean gpu = ACTOR_KIND(from) == ACTOR_GPU_SERVER && index < c->config->servers;
  gboolean memory = ACTOR_KIND(from) == ACTOR_MEMORY_SERVER && index < c->config->memory_servers;
  if ((gpu || memory) && m->type == MESSAGE_JOIN)
    controller_join(c, from, &m->join);
  else if ((gpu || memory) && m->type == MESSAGE_HEARTBEAT)
    controller_heard(c, from, m->heartbeat.epoch);
  else if (gpu)
    gpu_server_says(c, index, m);
  else if (memory && m->type == MESSAGE_PLACED)
    controller_placed(c, index, &m->placed);
  else if (ACTOR_KIND(from) == ACTOR_CLIENT)
    client_says(c, m);
}

static void controller_timer(void *actor, uint64_t tag)
{
  struct controller *c = actor;
  switch ((enum controller_timer)(tag >> 32)) {
  case TIMER_PROXY:
    controller_proxy_passed(c, (uint32_t)tag);
    break;
  case TIMER_LATE:
    controller_late(c);
    break;
  case TIMER_HEARTBEAT:
    controller_check_heartbeats(c);
    break;
  case TIMER_TRAIN:
    controller_train_timer(c, (uint32_t)tag);
    break;
  }
}

static void controller_completion(void *actor, const struct completion *completion)
{
  (void)actor; /* the controller begins no operation */
  (void)completion;
}

static void controller_peer_lost(void *actor, actor_id peer)
{
  controller_lost(actor, peer);
}

const struct actor_ops controller_actor = {
    .start = controller_start,
    .message = controller_message,
    .timer = controller_timer,
    .completion = controller_completion,
    .peer_lost = controller_peer_lost,
};

uint64_t controller_queue(const struct controller *c)
{
  return c->queued + c->central_length;
}

uint64_t controller_jobs_done(const struct controller *c)
{
  return c->jobs_done;
}

uint64_t controller_jobs_seen(const struct controller *c)
{
  return c->jobs_seen;
}

uint64_t controller_jobs_left(const struct controller *c)
{
  return c->jobs_left;
}

void controller_record(struct controller *c, struct record record)
{
  c->world->ops->record(c->world, &record);
}
