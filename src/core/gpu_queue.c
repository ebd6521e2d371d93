/* The queue of one GPU: requests are secured, run and answered in order.
 *
 * Securing a request pins its model in GPU memory or begins its load; it happens in order of arrival, so a
 * later request never takes the room of an earlier one. */
#include "core/gpu_server_internal.h"

/* Loads under way for one GPU: that of the request at the head, and the next one's. */
#define LOADS_MAX 2

/* --- tasks
 * ----------------------------------------------------------------------------------------------------------*/

static struct task *task_new(struct gpu_server *s)
{
  if (s->free_task == NO_INDEX) {
    struct task *task = g_new0(struct task, 1);
    task->self = s->tasks->len;
    g_ptr_array_add(s->tasks, task);
    return task;
  }
  struct task *task = task_at(s, s->free_task);
  s->free_task = task->next;
  return task;
}

static void task_free(struct gpu_server *s, struct task *task)
{
  task->next = s->free_task;
  s->free_task = task->self;
}

static void queue_remove(struct gpu_server *s, struct gpu *gpu, struct task *task)
{
  uint32_t previous = NO_INDEX;
  for (uint32_t i = gpu->first; i != task->self; i = task_at(s, i)->next)
    previous = i;
  if (previous == NO_INDEX)
    gpu->first = task->next;
  else
    task_at(s, previous)->next = task->next;
  if (gpu->last == task->self)
    gpu->last = previous;
  if (gpu->unsecured == task->self)
    gpu->unsecured = task->next;
}

static void answer(struct gpu_server *s, const struct task *task, enum outcome outcome)
{
  int64_t now = world_now(s->world);
  gboolean started = task->state == TASK_RUNNING;
  struct message m = {.type = MESSAGE_DONE,
                      .done = {.id = task->id,
                               .tag = task->tag,
                               .attempt = task->attempt,
                               .outcome = outcome,
                               .found = task->found,
                               .waited_ns = (started ? task->started : now) - task->arrived,
                               .executed_ns = started ? now - task->started : -1}};
  server_send(s, &m);
}

static void hold(struct gpu_server *s, struct gpu *gpu)
{
  if (gpu->running++ == 0)
    gpu->held_since = world_now(s->world);
}

static void unhold(struct gpu_server *s, struct gpu *gpu)
{
  if (--gpu->running == 0)
    gpu->held_ns += (double)(world_now(s->world) - gpu->held_since);
}

/* --- securing
 * -------------------------------------------------------------------------------------------------------*/

struct load *gpu_find_load(struct gpu_server *s, struct gpu *gpu, uint32_t model)
{
  for (uint32_t i = gpu->loads_first; i != NO_INDEX; i = load_at(s, i)->next)
    if (load_at(s, i)->model == model)
      return load_at(s, i);
  return NULL;
}

static gboolean secure(struct gpu_server *s, struct gpu *gpu, struct task *task)
{
  if (!gpu->memory) {
    task->found = FOUND_RESIDENT;
    task->state = TASK_SECURED;
    return TRUE;
  }
  int64_t now = world_now(s->world);
  enum tier_state state = tier_state(gpu->memory, task->model);
  if (state == TIER_ABSENT) {
    const struct loader_ops *loader = s->config->system->loader;
    if (loader->pipelined && gpu->loads >= LOADS_MAX)
      return FALSE;
    gpu->evict_request = task->id;
    if (!loader->begin(s, gpu, task))
      return FALSE;
  } else {
    task->found = state == TIER_READY ? FOUND_RESIDENT : FOUND_JOINED;
  }
  tier_pin(gpu->memory, task->model);
  tier_touch(gpu->memory, task->model, now);
  if (s->host)
    tier_touch(s->host, task->model, now);
  task->state = TASK_SECURED;
  return TRUE;
}

/* --- running
 * --------------------------------------------------------------------------------------------------------*/

static uint32_t free_stream(struct gpu_server *s, const struct gpu *gpu)
{
  uint32_t stream = 0;
  for (uint32_t i = gpu->running_first; i != NO_INDEX;) {
    const struct task *task = task_at(s, i);
    if (task->stream == stream) { /* taken: try the next from the start */
      stream++;
      i = gpu->running_first;
    } else {
      i = task->next;
    }
  }
  return stream;
}

static gboolean model_runs(struct gpu_server *s, const struct gpu *gpu, uint32_t model)
{
  for (uint32_t i = gpu->running_first; i != NO_INDEX; i = task_at(s, i)->next)
    if (task_at(s, i)->model == model)
      return TRUE;
  return FALSE;
}

static gboolean can_start(struct gpu_server *s, struct gpu *gpu, const struct task *task)
{
  if (gpu->running >= config_concurrency(s->config, s->hw) || task->state != TASK_SECURED ||
      trainer_blocks(s, gpu))
    return FALSE;
  if (s->config->system->sharing == SHARING_PROCESS)
    return tier_state(gpu->memory, task->model) == TIER_READY && !model_runs(s, gpu, task->model);
  return TRUE;
}

static void start(struct gpu_server *s, struct gpu *gpu, struct task *task)
{
  queue_remove(s, gpu, task);
  task->stream = config_concurrency(s->config, s->hw) == 1 ? 0 : free_stream(s, gpu);
  task->state = TASK_RUNNING;
  task->started = world_now(s->world);
  task->next = gpu->running_first;
  gpu->running_first = task->self;
  hold(s, gpu);
  if (!gpu->memory || tier_state(gpu->memory, task->model) == TIER_READY) {
    gpu_compute_resident(s, task);
  } else if (s->config->system->loader->pipelined) {
    struct load *load = gpu_find_load(s, gpu, task->model);
    if (load->broken)
      task->stalled = TRUE;
    else
      gpu_compute_groups(s, task, load->grouping, load);
  } /* else: computed when the load is done */
}

static void drop_lost(struct gpu_server *s, struct gpu *gpu, struct task *task)
{
  queue_remove(s, gpu, task);
  answer(s, task, OUTCOME_LOST);
  task_free(s, task);
}

/* Requests in order, from the first that is not secured: a long queue costs nothing at each event. Where
 * processes run side by side, one that must wait lets others pass. */
static void secure_in_order(struct gpu_server *s, struct gpu *gpu)
{
  gboolean pass = s->config->system->sharing == SHARING_PROCESS;
  for (uint32_t i = gpu->unsecured, next; i != NO_INDEX; i = next) {
    struct task *task = task_at(s, i);
    next = task->next;
    if (task->state != TASK_QUEUED || secure(s, gpu, task)) {
      if (gpu->unsecured == i)
        gpu->unsecured = next;
      continue;
    }
    if (task->lost)
      drop_lost(s, gpu, task);
    else if (!pass)
      return;
  }
}

void gpu_advance(struct gpu_server *s, struct gpu *gpu)
{
  gboolean pass = s->config->system->sharing == SHARING_PROCESS;
  secure_in_order(s, gpu);
  for (uint32_t i = gpu->first, next; i != NO_INDEX; i = next) {
    struct task *task = task_at(s, i);
    next = task->next;
    if (can_start(s, gpu, task))
      start(s, gpu, task);
    else if (!pass)
      return;
  }
}

void gpu_advance_all(struct gpu_server *s)
{
  for (uint32_t g = 0; g < s->gpus; g++)
    gpu_advance(s, &s->gpu[g]);
}

static void finish(struct gpu_server *s, struct gpu *gpu, struct task *task, enum outcome outcome)
{
  uint32_t *link = &gpu->running_first;
  while (*link != task->self)
    link = &task_at(s, *link)->next;
  *link = task->next;
  unhold(s, gpu);
  answer(s, task, outcome);
  if (gpu->memory)
    tier_unpin(gpu->memory, task->model);
  task_free(s, task);
}

/* A group of the task failed, as its load did, which may have been mended meanwhile. */
static void go_on(struct gpu_server *s, struct gpu *gpu, struct task *task)
{
  struct load *load = gpu_find_load(s, gpu, task->model);
  if (load && load->broken) {
    load_mend(s, load);
  } else if (load) {
    gpu_resume_tasks(s, gpu, load);
  } else {
    task->stalled = FALSE;
    gpu_compute_groups(s, task, task->grouping, NULL);
  }
}

void gpu_computed(struct gpu_server *s, struct task *task, uint32_t group, enum op_status status)
{
  struct gpu *gpu = &s->gpu[task->gpu];
  task->computes--;
  if (status != OP_DONE)
    task->stalled = TRUE;
  else if (group == task->groups_done) /* else one before it failed: it is computed anew */
    load_computed(s, gpu, task->model, ++task->groups_done);
  if (task->computes > 0)
    return;
  if (task->stalled && !task->last) {
    go_on(s, gpu, task);
    return;
  }
  finish(s, gpu, task, task->stalled ? OUTCOME_LOST : OUTCOME_COMPLETED);
  gpu_advance(s, gpu);
}

gboolean gpu_computes(struct gpu_server *s, const struct gpu *gpu, uint32_t model)
{
  for (uint32_t i = gpu->running_first; i != NO_INDEX; i = task_at(s, i)->next)
    if (task_at(s, i)->model == model && task_at(s, i)->computes > 0)
      return TRUE;
  return FALSE;
}

void gpu_resume_tasks(struct gpu_server *s, struct gpu *gpu, struct load *load)
{
  for (uint32_t i = gpu->running_first; i != NO_INDEX; i = task_at(s, i)->next) {
    struct task *task = task_at(s, i);
    if (task->model != load->model || !task->stalled || task->computes > 0)
      continue;
    task->stalled = FALSE;
    gpu_compute_groups(s, task, load->grouping, load);
  }
}

/* The model that a non-pipelined load brought is there: what held the GPU for it computes. */
static void compute_waiting(struct gpu_server *s, struct gpu *gpu, uint32_t model)
{
  for (uint32_t i = gpu->running_first; i != NO_INDEX; i = task_at(s, i)->next) {
    struct task *task = task_at(s, i);
    if (task->model == model && task->computes == 0)
      gpu_compute_resident(s, task);
  }
}

void gpu_loaded(struct gpu_server *s, struct gpu *gpu, uint32_t model)
{
  if (!s->config->system->loader->pipelined)
    compute_waiting(s, gpu, model);
  gpu_advance(s, gpu);
}

void gpu_fail_tasks(struct gpu_server *s, struct gpu *gpu, uint32_t model)
{
  for (uint32_t i = gpu->running_first, next; i != NO_INDEX; i = next) {
    struct task *task = task_at(s, i);
    next = task->next;
    if (task->model == model)
      finish(s, gpu, task, OUTCOME_LOST);
  }
  for (uint32_t i = gpu->first, next; i != NO_INDEX; i = next) {
    struct task *task = task_at(s, i);
    next = task->next;
    if (task->model != model || task->state != TASK_SECURED)
      continue;
    queue_remove(s, gpu, task);
    answer(s, task, OUTCOME_LOST);
    tier_unpin(gpu->memory, model);
    task_free(s, task);
  }
}

void gpu_queue_add(struct gpu_server *s, const struct message_dispatch *m)
{
  if (m->gpu >= s->gpus)
    return;
  struct gpu *gpu = &s->gpu[m->gpu];
  struct task *task = task_new(s);
  uint32_t self = task->self;
  *task = (struct task){.id = m->id,
                        .service_ns = m->service_ns,
                        .arrived = world_now(s->world),
                        .tag = m->tag,
                        .attempt = m->attempt,
                        .model = m->model,
                        .gpu = m->gpu,
                        .self = self,
                        .next = NO_INDEX};
  if (gpu->last == NO_INDEX || gpu->first == NO_INDEX)
    gpu->first = self;
  else
    task_at(s, gpu->last)->next = self;
  gpu->last = self;
  if (gpu->unsecured == NO_INDEX)
    gpu->unsecured = self;
  trainer_yield(s, gpu);
  gpu_advance(s, gpu);
}

void gpu_queue_revoke(struct gpu_server *s, const struct message_revoke *m)
{
  if (m->gpu >= s->gpus)
    return;
  struct gpu *gpu = &s->gpu[m->gpu];
  for (uint32_t i = gpu->first; i != NO_INDEX; i = task_at(s, i)->next) {
    struct task *task = task_at(s, i);
    if (task->id != m->id || task->attempt != m->attempt)
      continue;
    queue_remove(s, gpu, task);
    answer(s, task, OUTCOME_TIMED_OUT);
    if (task->state == TASK_SECURED && gpu->memory)
      tier_unpin(gpu->memory, task->model);
    task_free(s, task);
    gpu_advance(s, gpu);
    return;
  }
}
