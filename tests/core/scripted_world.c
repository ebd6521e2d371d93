/* A world for tests of one actor; see scripted_world.h. */
#include "scripted_world.h"

#include "core/balancer.h"

static struct scripted_world *of(struct world *world)
{
  return (struct scripted_world *)(void *)world;
}

static int64_t world_now_scripted(struct world *world)
{
  return of(world)->now;
}

static timer_id set_timer(struct world *world, int64_t delay_ns, uint64_t tag)
{
  struct scripted_world *w = of(world);
  struct scripted_timer timer = {.at = w->now + delay_ns, .tag = tag, .live = TRUE};
  g_array_append_val(w->timers, timer);
  w->live_timers++;
  w->most_timers = MAX(w->most_timers, w->live_timers);
  return w->timers->len;
}

static void timer_cancel(struct world *world, timer_id id)
{
  struct scripted_world *w = of(world);
  struct scripted_timer *timer = &g_array_index(w->timers, struct scripted_timer, id - 1);
  w->live_timers -= timer->live;
  timer->live = FALSE;
}

static void send(struct world *world, actor_id to, const struct message *message)
{
  struct scripted_mail mail = {.to = to, .message = *message};
  g_array_append_val(of(world)->mail, mail);
}

static op_id begin(struct world *world, uint64_t tag, uint64_t steps, gboolean fetch)
{
  struct scripted_op *op = g_new(struct scripted_op, 1);
  *op = (struct scripted_op){.tag = tag, .steps = steps, .fetch = fetch};
  g_queue_push_tail(of(world)->ops, op);
  return (op_id)(uintptr_t)op;
}

static op_id fetch(struct world *world, const struct fetch_spec *spec)
{
  return begin(world, spec->tag, 0, TRUE);
}

static op_id copy(struct world *world, const struct copy_spec *spec)
{
  return begin(world, spec->tag, 0, FALSE);
}

static op_id compute(struct world *world, const struct compute_spec *spec)
{
  return begin(world, spec->tag, spec->steps, FALSE);
}

static void cancel(struct world *world, op_id op)
{
  (void)world; /* a request only: the operation may end well all the same */
  (void)op;
}

static void fill(struct world *world, uint32_t model, uint64_t offset, uint64_t bytes, uint32_t gpu,
                 const struct ranges *place)
{
  (void)world;
  (void)model;
  (void)offset;
  (void)bytes;
  (void)gpu;
  (void)place;
}

static void serve(struct world *world, uint32_t model, uint64_t offset, uint64_t bytes,
                  const struct ranges *place)
{
  fill(world, model, offset, bytes, 0, place);
}

static void record(struct world *world, const struct record *what)
{
  (void)world; /* nobody listens */
  (void)what;
}

static const struct world_ops scripted_ops = {.now = world_now_scripted,
                                              .timer = set_timer,
                                              .timer_cancel = timer_cancel,
                                              .send = send,
                                              .fetch = fetch,
                                              .copy = copy,
                                              .compute = compute,
                                              .cancel = cancel,
                                              .fill = fill,
                                              .serve = serve,
                                              .record = record,
                                              .capabilities = UINT32_MAX};

static void cluster_init(struct scripted_world *w)
{
  struct config *config = &w->config;
  config->hardware_count = 1;
  config->hardware[0] = (struct hardware){.gpu_memory_bytes = 100,
                                          .host_memory_bytes = 1000,
                                          .gpus_per_server = 2,
                                          .nic_bytes_s = 1e9,
                                          .memory_nic_bytes_s = 1e9,
                                          .spine_oversubscription = 1,
                                          .pcie_bytes_s = 1e9,
                                          .gpus_per_pcie_switch = 1,
                                          .pageable_bytes_s = 1e9,
                                          .pageable_to_host_bytes_s = 1e9,
                                          .mps_max_processes = 2,
                                          .mps_train_share = 0.5,
                                          .control_ns = 1000};
  config->memory_hardware = config->hardware[0];
  w->catalog = catalog_new(1);
  struct profile *profile = profile_new("net", 2);
  for (uint32_t i = 0; i < 2; i++) {
    profile->layer_bytes[i] = 20;
    profile->timing[0].warm_ns += profile->timing[0].layer_ns[i] = 1000000;
  }
  profile_sum(profile);
  catalog_add(w->catalog, profile, 4);
  for (uint32_t m = 0; m < 4; m++)
    w->popular[m] = m;
  for (uint32_t s = 0; s < 2; s++)
    w->server[s] = (struct server_config){.gpus = 2, .first_gpu = 2 * s};
}

struct scripted_world *scripted_world_new(const char *system)
{
  struct scripted_world *w = g_new0(struct scripted_world, 1);
  struct config *config = &w->config;
  w->world.ops = &scripted_ops;
  w->now = 7777777; /* no actor's clock begins at 0 */
  w->mail = g_array_new(FALSE, FALSE, sizeof(struct scripted_mail));
  w->timers = g_array_new(FALSE, FALSE, sizeof(struct scripted_timer));
  w->ops = g_queue_new();
  cluster_init(w);
  config->catalog = w->catalog;
  config->system = system_by_name(system);
  config->server = w->server;
  config->servers = config->servers_at_start = 2;
  config->gpus = 4;
  config->memory_servers = config->memory_servers_at_start = 3;
  config->staging_bytes = 40;
  config->host_cache_bytes = 80;
  config->host_policy =
      tier_policy_by_name(config->system->host_policy ? config->system->host_policy : "lru");
  config->balancer = balancer_by_name(config->system->balancer);
  config->popular = w->popular;
  config->sharding = config->system->sharding;
  config->replicas = config->ssd_copies = 1;
  config->heartbeat_misses = 3;
  config->report_ns = NS_PER_MS;
  config->train_profile = NO_INDEX;
  config->train_step_ns = NS_PER_MS;
  config->train_burst = 10;
  w->plans = load_plans_new(w->catalog, config->hardware, &config->memory_hardware, 3, config->sharding,
                            FALSE, FALSE, &config->system->grouping);
  config->plans = w->plans;
  return w;
}

void scripted_world_free(struct scripted_world *w)
{
  g_array_unref(w->mail);
  g_array_unref(w->timers);
  g_queue_free_full(w->ops, g_free);
  load_plans_free(w->plans);
  catalog_free(w->catalog);
  g_free(w);
}

void scripted_world_start(struct scripted_world *w, const struct actor_ops *ops, void *actor)
{
  w->actor_ops = ops;
  w->actor = actor;
  ops->start(actor);
}

/* The live timer that is due first; ties: the one set first. */
static struct scripted_timer *first_due(const struct scripted_world *w, int64_t now)
{
  struct scripted_timer *first = NULL;
  for (guint i = 0; i < w->timers->len; i++) {
    struct scripted_timer *timer = &g_array_index(w->timers, struct scripted_timer, i);
    if (timer->live && timer->at <= now && (!first || timer->at < first->at))
      first = timer;
  }
  return first;
}

void scripted_world_until(struct scripted_world *w, int64_t now)
{
  struct scripted_timer *timer;
  while (w->live_timers > 0 && (timer = first_due(w, now))) {
    timer->live = FALSE;
    w->live_timers--;
    w->now = MAX(w->now, timer->at);
    w->actor_ops->timer(w->actor, timer->tag);
  }
  w->now = MAX(w->now, now);
  if (w->live_timers == 0)
    g_array_set_size(w->timers, 0);
}

void scripted_world_say(struct scripted_world *w, actor_id from, const struct message *message)
{
  w->actor_ops->message(w->actor, from, message);
}

gboolean scripted_world_complete(struct scripted_world *w)
{
  g_autofree struct scripted_op *op = g_queue_pop_head(w->ops);
  if (!op)
    return FALSE;
  struct completion completion = {
      .tag = op->tag, .status = OP_DONE, .bytes = op->fetch ? 40 : 0, .steps = op->steps};
  w->actor_ops->completion(w->actor, &completion);
  return TRUE;
}

const struct scripted_mail *scripted_world_sent(const struct scripted_world *w, enum message_type type)
{
  for (guint i = w->mail->len; i-- > 0;) {
    const struct scripted_mail *mail = &g_array_index(w->mail, struct scripted_mail, i);
    if (mail->message.type == type)
      return mail;
  }
  return NULL;
}

uint32_t scripted_world_count(const struct scripted_world *w, enum message_type type)
{
  uint32_t count = 0;
  for (guint i = 0; i < w->mail->len; i++)
    count += g_array_index(w->mail, struct scripted_mail, i).message.type == type;
  return count;
}
