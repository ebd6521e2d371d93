/* The trainer of a GPU: its state comes over PCIe, steps run until inference wants the GPU, the state goes
 * back. */
#include "core/gpu_server_internal.h"

/* The rest of a trainer's step runs beside inference (MPS): requests share the GPU with it and do not wait.
 */
static gboolean beside(const struct gpu_server *s)
{
  return s->config->system->sharing == SHARING_PROCESS;
}

static void trained(struct gpu_server *s, struct gpu *gpu, uint64_t steps, gboolean stopped)
{
  struct trainer *t = &gpu->trainer;
  struct message m = {
      .type = MESSAGE_TRAINED,
      .trained = {.gpu = gpu->index, .job = t->job, .steps = steps, .lost = t->lost, .stopped = stopped}};
  t->lost = 0;
  if (stopped)
    t->state = TRAINER_NONE;
  server_send(s, &m);
}

static void release(struct gpu_server *s, struct gpu *gpu, uint64_t steps)
{
  if (gpu->memory)
    tier_release(gpu->memory, s->config->train_state_bytes);
  trained(s, gpu, steps, TRUE);
  gpu_advance(s, gpu);
}

static void copy_state(struct gpu_server *s, struct gpu *gpu, gboolean to_host)
{
  struct ranges host = {.range = &gpu->state, .count = 1, .room = 1};
  struct copy_spec spec = {.gpu = gpu->index,
                           .lane = gpu->next_lane++,
                           .model = NO_INDEX,
                           .group = NO_INDEX,
                           .bytes = s->config->train_state_bytes,
                           .host = &host,
                           .ring_bytes = s->config->train_state_bytes,
                           .device = gpu->memory ? tier_held_place(gpu->memory) : NULL,
                           .to_host = to_host,
                           .after = gpu->back, /* a model may have to leave that room first */
                           .request = UINT64_MAX,
                           .tag = TAG(to_host ? TAG_TRAIN_OUT : TAG_TRAIN_IN, gpu->index, 0)};
  s->world->ops->copy(s->world, &spec);
}

static void record_trainer(struct gpu_server *s, struct gpu *gpu, enum record_kind kind,
                           enum record_reason reason, uint64_t done)
{
  if (world_records(s->world))
    server_record(s, (struct record){.kind = kind,
                                     .reason = reason,
                                     .request = UINT64_MAX,
                                     .model = NO_INDEX,
                                     .gpu = gpu->index,
                                     .group = NO_INDEX,
                                     .source = NO_INDEX,
                                     .a = (int64_t)done,
                                     .b = (int64_t)gpu->trainer.lost});
}

static void run_steps(struct gpu_server *s, struct gpu *gpu)
{
  const struct profile *profile = s->config->catalog->profiles->pdata[s->config->train_profile];
  struct trainer *t = &gpu->trainer;
  struct compute_spec spec = {.gpu = gpu->index,
                              .stream = UINT32_MAX,
                              .model = NO_INDEX,
                              .group = NO_INDEX,
                              .compute_ns = (double)s->config->train_step_ns,
                              .layers = profile->layers,
                              .request = UINT64_MAX,
                              .tag = TAG(TAG_TRAIN, gpu->index, 0),
                              .steps = t->steps,
                              .layer_ns = s->config->yield_layer ? profile->timing[s->hw].layer_ns : NULL};
  t->state = TRAINER_RUNNING;
  t->op = s->world->ops->compute(s->world, &spec);
}

static gboolean busy(const struct gpu *gpu)
{
  return gpu->first != NO_INDEX || gpu->running > 0;
}

/* No work for the trainer now: the controller may ask again. */
static void refuse(struct gpu_server *s, uint32_t gpu, uint32_t job)
{
  struct message m = {.type = MESSAGE_TRAINED, .trained = {.gpu = gpu, .job = job, .stopped = TRUE}};
  server_send(s, &m);
}

static void begin(struct gpu_server *s, struct gpu *gpu)
{
  struct trainer *t = &gpu->trainer;
  gboolean room = !gpu->memory || tier_hold(gpu->memory, s->config->train_state_bytes, world_now(s->world));
  if (busy(gpu) || !room) { /* inference came first, or its models fill the GPU */
    if (room && gpu->memory)
      tier_release(gpu->memory, s->config->train_state_bytes);
    refuse(s, gpu->index, t->job);
    return;
  }
  record_trainer(s, gpu, RECORD_TRAIN, REASON_IDLE, 0);
  t->stop = FALSE;
  if (s->config->train_state_bytes > 0) {
    t->state = TRAINER_LOADING;
    copy_state(s, gpu, FALSE);
  } else {
    run_steps(s, gpu);
  }
}

static void stop(struct gpu_server *s, struct gpu *gpu)
{
  struct trainer *t = &gpu->trainer;
  t->stop = TRUE;
  if (t->state == TRAINER_RUNNING)
    s->world->ops->cancel(s->world, t->op);
  else if (t->state == TRAINER_WAITING)
    trainer_stepped(s, gpu, &(struct completion){.status = OP_CANCELLED});
}

void trainer_train(struct gpu_server *s, const struct message_train *m)
{
  if (s->config->train_profile == NO_INDEX)
    return;
  struct gpu *gpu = &s->gpu[m->gpu];
  struct trainer *t = &gpu->trainer;
  if (m->steps == 0) {
    if (t->state != TRAINER_NONE && !t->stop)
      stop(s, gpu);
  } else if (t->state == TRAINER_WAITING) {
    t->job = m->job;
    t->steps = m->steps;
    run_steps(s, gpu);
  } else if (t->state == TRAINER_NONE) {
    t->job = m->job;
    t->steps = m->steps;
    begin(s, gpu);
  } else { /* it still trains for a controller that had given this server up */
    refuse(s, gpu->index, m->job);
  }
}

void trainer_yield(struct gpu_server *s, struct gpu *gpu)
{
  struct trainer *t = &gpu->trainer;
  if (t->state == TRAINER_NONE || t->stop)
    return;
  record_trainer(s, gpu, RECORD_PREEMPT, REASON_INFERENCE, 0);
  stop(s, gpu);
}

gboolean trainer_blocks(const struct gpu_server *s, const struct gpu *gpu)
{
  return gpu->trainer.state == TRAINER_RUNNING && !beside(s);
}

void trainer_copied(struct gpu_server *s, struct gpu *gpu, gboolean in)
{
  struct trainer *t = &gpu->trainer;
  if (!in || t->stop) {
    uint64_t steps = in ? 0 : t->steps;
    release(s, gpu, steps);
    return;
  }
  run_steps(s, gpu);
}

void trainer_stepped(struct gpu_server *s, struct gpu *gpu, const struct completion *completion)
{
  struct trainer *t = &gpu->trainer;
  s->usage.training_steps += completion->steps;
  if (completion->status == OP_DONE && !t->stop) {
    t->state = TRAINER_WAITING;
    trained(s, gpu, completion->steps, FALSE);
    return;
  }
  if (t->state == TRAINER_RUNNING && completion->status == OP_CANCELLED && s->config->yield_layer) {
    t->lost++;
    s->usage.training_lost++;
  }
  record_trainer(s, gpu, RECORD_TRAIN, REASON_INFERENCE, completion->steps);
  t->steps = completion->steps; /* kept until the state is saved */
  if (s->config->train_state_bytes > 0) {
    t->state = TRAINER_SAVING;
    copy_state(s, gpu, TRUE);
    gpu_advance(s, gpu); /* computing need not wait for the copy */
  } else {
    release(s, gpu, completion->steps);
  }
}
