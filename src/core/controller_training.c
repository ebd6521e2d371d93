/* GPU allocation between inference and elastic training.
 *
 * A GPU without requests goes to the first job that wants more GPUs, once it has been idle for as long as
 * giving it and taking it back costs (the ski-rental rule: never more than twice the cost of knowing the
 * future). Inference takes it back by being dispatched there; the GPU server stops its trainer itself.
 * Processes (MPS) are no exception: a GPU trains while no request is at any of its processes. */
#include "core/controller_internal.h"

#define STEPS_MAX  1e15             /* of one job: exact as a double, and years of the shortest steps */
#define REFUSED_NS (10 * NS_PER_MS) /* a GPU server without room for a trainer is not asked sooner again */

static int64_t switch_cost_ns(const struct controller *c, uint32_t gpu)
{
  const struct hardware *hw = &c->config->hardware[c->view->gpu[gpu].hw];
  return ns_round(2 * transfer_ns(c->config->train_state_bytes, hw->pcie_bytes_s));
}

static struct job *job_at(struct controller *c, uint32_t index)
{
  return &g_array_index(c->jobs, struct job, index);
}

/* First come first served. Jobs that are done are unlinked on the way, so that a long job at the head does
 * not leave all those after it to be looked at again: what is walked over are jobs that hold GPUs. */
static uint32_t next_job(struct controller *c)
{
  uint32_t *link = &c->first_job;
  while (*link < c->jobs->len) {
    struct job *job = job_at(c, *link);
    if (job->done) {
      *link = job->next;
      continue;
    }
    if (job->steps_left > 0 && job->running < job->gpus)
      return *link;
    link = &job->next;
  }
  return NO_INDEX;
}

static void send_train(struct controller *c, uint32_t gpu, uint32_t job, uint64_t steps)
{
  uint32_t server = c->view->gpu[gpu].server;
  struct message m = {
      .type = MESSAGE_TRAIN,
      .train = {.gpu = gpu - c->config->server[server].first_gpu, .job = job, .steps = steps}};
  world_send(c->world, ACTOR(ACTOR_GPU_SERVER, server), &m);
}

/* Hands out the next steps of a job: an even part of what is left, at most a burst. */
static void train_more(struct controller *c, uint32_t gpu, uint32_t index)
{
  struct job *job = job_at(c, index);
  uint64_t steps = c->config->train_burst;
  if (job->steps_left != UINT64_MAX) {
    uint64_t part = (job->steps_left + job->gpus - 1) / job->gpus;
    steps = MIN(steps, part);
    job->steps_left -= steps;
  }
  job->steps_out += steps;
  c->trainee[gpu].job = index;
  c->trainee[gpu].steps = steps;
  send_train(c, gpu, index, steps);
}

/* At most one timer a GPU, however often it falls idle within its time. */
static void look_again(struct controller *c, uint32_t gpu, int64_t delay_ns)
{
  struct trainee *trainee = &c->trainee[gpu];
  if (trainee->timer != 0)
    c->world->ops->timer_cancel(c->world, trainee->timer);
  trainee->timer = c->world->ops->timer(c->world, delay_ns, TIMER_TAG(TIMER_TRAIN, gpu));
}

static void train_if_idle(struct controller *c, uint32_t gpu)
{
  struct gpu_view *gv = &c->view->gpu[gpu];
  int64_t idle = world_now(c->world) - c->trainee[gpu].idle_since;
  if (gv->outstanding > 0 || gv->training || c->view->free_at[gpu] == TIME_NEVER ||
      idle < switch_cost_ns(c, gpu))
    return;
  uint32_t job = next_job(c);
  if (job == NO_INDEX)
    return;
  gv->training = TRUE;
  gv->saving = FALSE;
  job_at(c, job)->running++;
  train_more(c, gpu, job);
}

void controller_train_timer(struct controller *c, uint32_t gpu)
{
  c->trainee[gpu].timer = 0;
  train_if_idle(c, gpu);
}

static void gpu_idle(struct controller *c, uint32_t gpu, int64_t least_ns)
{
  if (c->config->train_profile == NO_INDEX)
    return;
  c->trainee[gpu].idle_since = world_now(c->world);
  if (next_job(c) != NO_INDEX)
    look_again(c, gpu, max_i64(switch_cost_ns(c, gpu), least_ns));
}

void controller_gpu_idle(struct controller *c, uint32_t gpu)
{
  gpu_idle(c, gpu, 0);
}

void controller_stop_training(struct controller *c, uint32_t gpu)
{
  send_train(c, gpu, c->trainee[gpu].job, 0);
}

void controller_job(struct controller *c, const struct message_job *m)
{
  c->jobs_seen++;
  if (c->config->train_profile == NO_INDEX || m->gpus_milli == 0)
    return;
  double step = (double)c->config->train_step_ns;
  double wanted = (double)m->gpus_milli / 1000 * (double)m->duration_ns / step;
  double steps = wanted > 1 ? MIN(wanted, STEPS_MAX) : 1; /* a peer may have sent any duration */
  struct job job = {.gpus = m->gpus_milli / 1000 + (m->gpus_milli % 1000 > 0),
                    .steps_left = (uint64_t)steps,
                    .next = c->jobs->len + 1};
  if ((double)job.steps_left < steps || job.steps_left == 0)
    job.steps_left++;
  g_array_append_val(c->jobs, job);
  c->jobs_left++;
  int64_t now = world_now(c->world);
  for (uint32_t gpu = 0; gpu < c->view->gpus; gpu++) {
    int64_t rest = c->trainee[gpu].idle_since + switch_cost_ns(c, gpu) - now;
    if (rest > 0) /* no job wanted it when it fell idle, so no timer was set */
      look_again(c, gpu, rest);
    else
      train_if_idle(c, gpu);
  }
}

static void job_check_done(struct controller *c, struct job *job)
{
  if (job->done || job->steps_left > 0 || job->steps_out > 0)
    return;
  job->done = TRUE;
  c->jobs_left--;
  c->jobs_done++;
}

static void leave_job(struct controller *c, uint32_t gpu)
{
  struct trainee *trainee = &c->trainee[gpu];
  struct job *job = job_at(c, trainee->job);
  job->running--;
  trainee->job = NO_INDEX;
  c->view->gpu[gpu].training = c->view->gpu[gpu].saving = FALSE;
}

static void account(struct controller *c, uint32_t gpu, uint64_t steps)
{
  struct trainee *trainee = &c->trainee[gpu];
  struct job *job = job_at(c, trainee->job);
  job->steps_out -= trainee->steps;
  if (job->steps_left != UINT64_MAX)
    job->steps_left += trainee->steps - MIN(steps, trainee->steps);
  trainee->steps = 0;
  job_check_done(c, job);
}

void controller_trained(struct controller *c, uint32_t server, const struct message_trained *m)
{
  if (m->gpu >= c->config->server[server].gpus)
    return;
  uint32_t gpu = c->config->server[server].first_gpu + m->gpu;
  struct gpu_view *gv = &c->view->gpu[gpu];
  struct trainee *trainee = &c->trainee[gpu];
  if (trainee->job == NO_INDEX || trainee->job != m->job)
    return;
  account(c, gpu, m->steps);
  if (m->stopped) {
    leave_job(c, gpu);
    if (gv->outstanding == 0)
      gpu_idle(c, gpu, m->steps == 0 && m->lost == 0 ? REFUSED_NS : 0);
    controller_leave_if_idle(c, server);
    return;
  }
  if (gv->outstanding > 0 || c->view->free_at[gpu] == TIME_NEVER)
    return; /* it is being stopped, or its server leaves */
  struct job *job = job_at(c, trainee->job);
  if (job->steps_left > 0) {
    train_more(c, gpu, trainee->job);
    return;
  }
  uint32_t next = next_job(c);
  if (next == NO_INDEX) {
    send_train(c, gpu, trainee->job, 0);
    return;
  }
  job->running--; /* same GPU, same training model: the next job goes on at once */
  job_at(c, next)->running++;
  train_more(c, gpu, next);
}

void controller_training_lost(struct controller *c, uint32_t gpu)
{
  if (c->trainee[gpu].job == NO_INDEX)
    return;
  account(c, gpu, 0);
  leave_job(c, gpu);
}
