/* GPUs that compute for a known time. Operations of a stream run in order; streams share the GPU in space at
 * the total speed that the hardware file gives for their number. Times are exact (fractional ns), so chains
 * do not drift. */
#include <math.h>
#include "backend_sim/sim_internal.h"

struct sim_compute *sim_compute_by_id(struct sim *sim, op_id op)
{
  uint32_t index = OP_INDEX(op);
  if (OP_KIND(op) != SIM_COMPUTE || index >= sim->computes->len)
    return NULL;
  struct sim_compute *c = sim_compute_at(sim, index);
  return c->live && (c->generation & 0xfffffff) == OP_GENERATION(op) ? c : NULL;
}

static struct sim_compute *compute_take(struct sim *sim)
{
  if (sim->free_compute == NONE) {
    struct sim_compute *c = g_new0(struct sim_compute, 1);
    c->self = sim->computes->len;
    g_ptr_array_add(sim->computes, c);
    return c;
  }
  struct sim_compute *c = sim_compute_at(sim, sim->free_compute);
  sim->free_compute = c->next;
  return c;
}

static void compute_give(struct sim *sim, struct sim_compute *c)
{
  c->live = FALSE;
  c->generation++;
  c->next = sim->free_compute;
  sim->free_compute = c->self;
}

/* --- rates
 * ----------------------------------------------------------------------------------------------------------*/

static gboolean is_training(const struct sim_compute *c)
{
  return c->spec.steps > 0;
}

/* Progress per ns of one running operation. */
static double speed_of(const struct sim_gpu *gpu, const struct sim_compute *c)
{
  uint32_t training = gpu->running->len - gpu->inference;
  const struct hardware *hw = gpu->hardware;
  if (is_training(c))
    return gpu->inference > 0 ? hw->mps_train_share / training : 1.0 / training;
  double share = training > 0 ? 1 - hw->mps_train_share : 1;
  return share * (gpu->inference == 1 ? 1 : hardware_speedup(hw, gpu->inference) / gpu->inference);
}

static struct sim_compute *running_at(struct sim *sim, const struct sim_gpu *gpu, uint32_t i)
{
  return sim_compute_at(sim, g_array_index(gpu->running, uint32_t, i));
}

/* Brings the busy times up to a time. */
static void gpu_account(struct sim_gpu *gpu, double exact_ns)
{
  double elapsed = exact_ns - gpu->clock;
  if (elapsed <= 0)
    return;
  struct sim *sim = gpu->port->sim;
  gpu->clock = exact_ns;
  if (gpu->running->len == 0)
    return;
  gpu->any_ns += elapsed;
  if (gpu->inference > 0)
    gpu->inference_ns += elapsed;
  if (gpu->running->len > gpu->inference)
    gpu->training_ns += elapsed;
  for (uint32_t i = 0; i < gpu->running->len; i++) {
    struct sim_compute *c = running_at(sim, gpu, i);
    c->left -= elapsed * speed_of(gpu, c);
  }
}

/* The end of the operation that ends first, exact; its index in *first. */
static double next_end(struct sim *sim, const struct sim_gpu *gpu, uint32_t *first)
{
  double least = INFINITY;
  for (uint32_t i = 0; i < gpu->running->len; i++) {
    const struct sim_compute *c = running_at(sim, gpu, i);
    double speed = speed_of(gpu, c);
    double end = gpu->clock + (c->left <= 0 ? 0 : speed > 0 ? c->left / speed : INFINITY);
    if (end < least) {
      least = end;
      *first = i;
    }
  }
  return least;
}

static void reschedule(struct sim *sim, struct sim_gpu *gpu)
{
  uint32_t first;
  double end = gpu->running->len ? next_end(sim, gpu, &first) : INFINITY;
  if (isinf(end)) {
    if (gpu->event != EVENT_NONE)
      event_queue_remove(sim->queue, gpu->event);
    gpu->event = EVENT_NONE;
    return;
  }
  int64_t at = max_i64(ns_round(end), sim->now);
  if (gpu->event == EVENT_NONE)
    gpu->event = event_queue_add(sim->queue, at, EV_GPU, gpu->global);
  else
    event_queue_move(sim->queue, gpu->event, at);
}

/* --- streams
 * --------------------------------------------------------------------------------------------------------*/

static struct gpu_stream *stream_of(struct sim_gpu *gpu, uint32_t id)
{
  for (uint32_t i = 0; i < gpu->streams->len; i++)
    if (g_array_index(gpu->streams, struct gpu_stream, i).id == id)
      return &g_array_index(gpu->streams, struct gpu_stream, i);
  struct gpu_stream stream = {.id = id, .first = NONE, .last = NONE};
  g_array_append_val(gpu->streams, stream);
  return &g_array_index(gpu->streams, struct gpu_stream, gpu->streams->len - 1);
}

/* Starts the stream's first operation if nothing holds it. */
static void stream_go(struct sim *sim, struct sim_gpu *gpu, struct gpu_stream *stream)
{
  if (stream->first == NONE || !gpu->port->up)
    return;
  struct sim_compute *c = sim_compute_at(sim, stream->first);
  if (c->running || c->waits)
    return;
  double begin = MAX(c->ready, stream->free_at);
  if (ns_round(begin) > sim->now) {
    sim_at(sim, begin, EV_COMPUTE_READY, c->self);
    return;
  }
  gpu_account(gpu, begin);
  c->running = TRUE;
  c->begin = MAX(begin, gpu->clock);
  c->left = c->work;
  g_array_append_val(gpu->running, c->self);
  gpu->inference += !is_training(c);
  reschedule(sim, gpu);
}

static double work_of(const struct sim_gpu *gpu, const struct compute_spec *spec)
{
  if (spec->steps > 0)
    return spec->compute_ns * (double)spec->steps;
  return spec->compute_ns + gpu->hardware->launch_ns * spec->layers +
         (spec->loaded ? gpu->hardware->group_sync_ns : 0);
}

op_id sim_compute_begin(struct port *port, const struct compute_spec *spec)
{
  struct sim *sim = port->sim;
  struct sim_gpu *gpu = sim_gpu_of(port, spec->gpu);
  struct sim_compute *c = compute_take(sim);
  uint32_t self = c->self, generation = c->generation;
  *c = (struct sim_compute){.port = port,
                            .spec = *spec,
                            .self = self,
                            .next = NONE,
                            .generation = generation,
                            .waiter_next = NONE,
                            .live = TRUE,
                            .ready = (double)sim->now,
                            .work = work_of(gpu, spec)};
  struct sim_copy *after = spec->after ? sim_copy_by_id(sim, spec->after) : NULL;
  if (after) {
    c->waits = TRUE;
    c->waiter_next = after->compute_dependents;
    after->compute_dependents = self;
  }
  struct sim_fetch *fetch = spec->after_fetch ? sim_fetch_by_id(sim, spec->after_fetch) : NULL;
  struct gpu_stream *stream = stream_of(gpu, spec->stream);
  if (stream->first == NONE)
    stream->first = self;
  else
    sim_compute_at(sim, stream->last)->next = self;
  stream->last = self;
  if (fetch && sim_fetch_hold(sim, fetch, spec->group, c, &c->ready))
    c->waits = TRUE;
  if (after && after->failing) /* its own completion is still to come */
    sim_compute_fail(sim, c);
  else if (stream->first == self)
    stream_go(sim, gpu, stream);
  return OP(SIM_COMPUTE, generation, self);
}

static void stream_remove(struct sim *sim, struct sim_gpu *gpu, struct sim_compute *c)
{
  struct gpu_stream *stream = stream_of(gpu, c->spec.stream);
  uint32_t previous = NONE;
  for (uint32_t i = stream->first; i != c->self; i = sim_compute_at(sim, i)->next)
    previous = i;
  if (previous == NONE)
    stream->first = c->next;
  else
    sim_compute_at(sim, previous)->next = c->next;
  if (stream->last == c->self)
    stream->last = previous;
}

void sim_compute_met(struct sim *sim, struct sim_compute *c, double ready_ns)
{
  struct sim_gpu *gpu = sim_gpu_of(c->port, c->spec.gpu);
  struct gpu_stream *stream = stream_of(gpu, c->spec.stream);
  c->waits = FALSE;
  c->ready = MAX(c->ready, ready_ns);
  if (stream->first == c->self)
    stream_go(sim, gpu, stream);
}

/* --- ends
 * -----------------------------------------------------------------------------------------------------------*/

static void emit_compute(struct sim *sim, const struct sim_compute *c, double end)
{
  (void)sim;
  sim_emit(c->port, (struct record){.time_ns = ns_round(end),
                                    .kind = is_training(c) ? RECORD_TRAIN : RECORD_GROUP_COMPUTE,
                                    .request = c->spec.request,
                                    .model = c->spec.model,
                                    .gpu = c->spec.gpu,
                                    .group = c->spec.group,
                                    .source = NO_INDEX,
                                    .b = ns_round(c->begin)});
}

static void finish(struct sim *sim, struct sim_gpu *gpu, uint32_t i, double end)
{
  struct sim_compute *c = running_at(sim, gpu, i);
  g_array_remove_index(gpu->running, i); /* order kept: ties go to the older */
  gpu->inference -= !is_training(c);
  stream_remove(sim, gpu, c);
  struct gpu_stream *stream = stream_of(gpu, c->spec.stream);
  stream->free_at = end;
  if (c->port->world.records && !is_training(c))
    emit_compute(sim, c, end);
  struct completion completion = {.tag = c->spec.tag, .status = c->cancelled ? OP_CANCELLED : OP_DONE};
  if (is_training(c))
    completion.steps = (uint64_t)(c->work / c->spec.compute_ns + 1e-6);
  struct port *port = c->port;
  op_id op = OP(SIM_COMPUTE, c->generation, c->self);
  compute_give(sim, c);
  stream_go(sim, gpu, stream);
  reschedule(sim, gpu);
  sim_complete(port, op, &completion);
}

static void gpu_event(struct sim *sim, struct sim_gpu *gpu)
{
  gpu->event = EVENT_NONE;
  uint32_t first = 0;
  double end = next_end(sim, gpu, &first);
  if (ns_round(end) > sim->now) {
    reschedule(sim, gpu);
    return;
  }
  gpu_account(gpu, end);
  finish(sim, gpu, first, MAX(end, gpu->clock));
}

void sim_gpu_failed(struct sim *sim, struct sim_gpu *gpu)
{
  gpu_account(gpu, (double)sim->now);
  g_array_set_size(gpu->running, 0);
  gpu->inference = 0;
  reschedule(sim, gpu);
}

void sim_compute_fail(struct sim *sim, struct sim_compute *c)
{
  if (c->failing)
    return;
  c->failing = TRUE;
  c->waits = TRUE;
  event_queue_add(sim->queue, sim->now, EV_COMPUTE_FAILED, c->self);
}

/* Work up to the next point at which training can stop. */
static double stop_point(const struct sim_compute *c)
{
  double done = c->work - c->left, step = c->spec.compute_ns;
  double whole = floor(done / step + 1e-9), within = done - whole * step;
  if (within < 1e-6 * step)
    return whole * step;
  if (!c->spec.layer_ns)
    return (whole + 1) * step;
  double sum = 0, at = 0;
  for (uint32_t j = 0; j < c->spec.layers; j++)
    sum += c->spec.layer_ns[j];
  for (uint32_t j = 0; j < c->spec.layers && at < within; j++)
    at += sum > 0 ? c->spec.layer_ns[j] * step / sum : step / c->spec.layers;
  return MIN(whole * step + at, (whole + 1) * step);
}

void sim_compute_cancel(struct sim *sim, struct sim_compute *c)
{
  struct sim_gpu *gpu = sim_gpu_of(c->port, c->spec.gpu);
  if (c->cancelled || !is_training(c))
    return; /* kernels that were launched run to their end */
  if (!c->running) {
    sim_compute_fail(sim, c);
    return;
  }
  gpu_account(gpu, (double)sim->now);
  double stop = MIN(stop_point(c), c->work);
  c->left -= c->work - stop;
  c->work = stop;
  c->cancelled = TRUE;
  reschedule(sim, gpu);
}

static void compute_failed(struct sim *sim, struct sim_compute *c)
{
  struct sim_gpu *gpu = sim_gpu_of(c->port, c->spec.gpu);
  struct completion completion = {.tag = c->spec.tag, .status = is_training(c) ? OP_CANCELLED : OP_FAILED};
  struct port *port = c->port;
  op_id op = OP(SIM_COMPUTE, c->generation, c->self);
  stream_remove(sim, gpu, c);
  struct gpu_stream *stream = stream_of(gpu, c->spec.stream);
  compute_give(sim, c);
  stream_go(sim, gpu, stream);
  sim_complete(port, op, &completion);
}

void sim_compute_event(struct sim *sim, enum sim_event event, uint32_t index)
{
  if (event == EV_GPU) {
    gpu_event(sim, &sim->gpu[index]);
    return;
  }
  struct sim_compute *c = sim_compute_at(sim, index);
  if (event == EV_COMPUTE_FAILED) {
    compute_failed(sim, c);
  } else if (c->live && !c->running && !c->waits) {
    struct sim_gpu *gpu = sim_gpu_of(c->port, c->spec.gpu);
    struct gpu_stream *stream = stream_of(gpu, c->spec.stream);
    if (stream->first == c->self)
      stream_go(sim, gpu, stream);
  }
}
