/* Copies and computes on a device. Copies of a lane go in order, lanes as they can begin; computes of a
 * stream in order, each once the copy that it names is on the device's queue: from there on the device orders
 * them. Or once the fetch that it names has brought its group to the GPU. */
#include "backend_real/real_world_internal.h"

static struct copy_op *copy_at(struct real_world *rw, uint32_t index)
{
  return g_ptr_array_index(rw->copies.all, index);
}

static struct compute_op *compute_at(struct real_world *rw, uint32_t index)
{
  return g_ptr_array_index(rw->computes.all, index);
}

/* --- queues
 * ---------------------------------------------------------------------------------------------------------*/

static struct lane *lane_find(GArray *lanes, uint32_t number)
{
  for (uint32_t i = 0; i < lanes->len; i++)
    if (g_array_index(lanes, struct lane, i).lane == number)
      return &g_array_index(lanes, struct lane, i);
  return NULL;
}

/* Appends an operation to its lane; returns the link of the one before it to set, NULL: it is the first. */
static uint32_t lane_append(GArray *lanes, uint32_t number, uint32_t index)
{
  struct lane *lane = lane_find(lanes, number);
  if (!lane) {
    struct lane fresh = {.lane = number, .first = index, .last = index};
    g_array_append_val(lanes, fresh);
    return NO_INDEX;
  }
  uint32_t before = lane->last;
  lane->last = index;
  return before;
}

/* --- what can go on the device
 * --------------------------------------------------------------------------------------*/

static gboolean copy_waits(struct real_world *rw, const struct copy_op *copy)
{
  const struct copy_op *after = (const struct copy_op *)op_find(rw, copy->spec.after, OP_COPY);
  const struct fetch_op *fetch = (const struct fetch_op *)op_find(rw, copy->spec.after_fetch, OP_FETCH);
  return (after && after->state == COPY_WAITING) || (fetch && !real_fetch_has(fetch, copy->spec.group));
}

static gboolean compute_waits(struct real_world *rw, const struct compute_op *compute)
{
  const struct copy_op *after = (const struct copy_op *)op_find(rw, compute->spec.after, OP_COPY);
  const struct fetch_op *fetch = (const struct fetch_op *)op_find(rw, compute->spec.after_fetch, OP_FETCH);
  return (after && after->state == COPY_WAITING) || (fetch && compute->spec.group >= fetch->arrived);
}

/* Asked for while the end of the copy that it names is on its way to the actor. */
static gboolean follows_lost(struct real_world *rw, op_id after)
{
  const struct copy_op *copy = (const struct copy_op *)op_find(rw, after, OP_COPY);
  return copy && copy->state == COPY_LOST;
}

/* Whatever waits for a copy that will never be is lost too, and so is the rest of its lane; each ends in its
 * turn. */
static void lose_dependents(struct real_world *rw, const struct copy_op *copy)
{
  const struct real_gpu *gpu = &rw->gpu[copy->spec.gpu];
  op_id id = op_id_of(&copy->op);
  for (uint32_t c = copy->lane_next; c != NO_INDEX; c = copy_at(rw, c)->lane_next)
    copy_at(rw, c)->failed = TRUE;
  for (uint32_t i = 0; i < gpu->lanes->len; i++)
    for (uint32_t c = g_array_index(gpu->lanes, struct lane, i).first; c != NO_INDEX;
         c = copy_at(rw, c)->lane_next)
      if (copy_at(rw, c)->spec.after == id)
        copy_at(rw, c)->failed = TRUE;
  for (uint32_t i = 0; i < gpu->streams->len; i++)
    for (uint32_t c = g_array_index(gpu->streams, struct lane, i).first; c != NO_INDEX;
         c = compute_at(rw, c)->stream_next)
      if (compute_at(rw, c)->spec.after == id)
        compute_at(rw, c)->failed = TRUE;
}

static void computes_fetch_over(struct real_world *rw, const struct real_gpu *gpu,
                                const struct fetch_op *fetch)
{
  op_id id = op_id_of(&fetch->op);
  for (uint32_t i = 0; i < gpu->streams->len; i++)
    for (uint32_t c = g_array_index(gpu->streams, struct lane, i).first; c != NO_INDEX;
         c = compute_at(rw, c)->stream_next) {
      struct compute_op *compute = compute_at(rw, c);
      if (compute->spec.after_fetch != id)
        continue;
      compute->failed |= compute->spec.group >= fetch->arrived;
      compute->spec.after_fetch = 0;
    }
}

void real_gpu_fetch_over(struct real_world *rw, const struct fetch_op *fetch)
{
  op_id id = op_id_of(&fetch->op);
  for (uint32_t g = 0; g < rw->gpus; g++) {
    for (uint32_t i = 0; i < rw->gpu[g].lanes->len; i++)
      for (uint32_t c = g_array_index(rw->gpu[g].lanes, struct lane, i).first; c != NO_INDEX;
           c = copy_at(rw, c)->lane_next) {
        struct copy_op *copy = copy_at(rw, c);
        if (copy->spec.after_fetch != id)
          continue;
        copy->failed |= !real_fetch_has(fetch, copy->spec.group);
        copy->spec.after_fetch = 0;
      }
    computes_fetch_over(rw, &rw->gpu[g], fetch);
    real_gpu_pump(rw, g);
  }
}

/* Takes the first of lane i; the lane goes with its last. */
static void lane_pop(GArray *lanes, uint32_t i, uint32_t next)
{
  g_array_index(lanes, struct lane, i).first = next;
  if (next == NO_INDEX)
    g_array_remove_index(lanes, i);
}

static void pump_copies(struct real_world *rw, struct real_gpu *gpu)
{
  for (uint32_t i = 0; i < gpu->lanes->len;) {
    struct copy_op *copy = copy_at(rw, g_array_index(gpu->lanes, struct lane, i).first);
    if (!copy->failed && copy_waits(rw, copy)) {
      i++;
      continue;
    }
    lane_pop(gpu->lanes, i, copy->lane_next);
    if (!copy->failed) {
      real_issue_copy(rw, copy);
      continue;
    }
    copy->state = COPY_LOST;
    lose_dependents(rw, copy);
    note_post(rw->is.loop, &copy->note);
  }
}

static void pump_computes(struct real_world *rw, struct real_gpu *gpu)
{
  for (uint32_t i = 0; i < gpu->streams->len;) {
    struct compute_op *compute = compute_at(rw, g_array_index(gpu->streams, struct lane, i).first);
    if (!compute->failed && compute_waits(rw, compute)) {
      i++;
      continue;
    }
    lane_pop(gpu->streams, i, compute->stream_next);
    if (compute->failed)
      note_post(rw->is.loop, &compute->note);
    else
      real_issue_compute(rw, compute);
  }
}

void real_gpu_pump(struct real_world *rw, uint32_t index)
{
  if (rw->closed)
    return;
  pump_copies(rw, &rw->gpu[index]);
  pump_computes(rw, &rw->gpu[index]);
}

/* A copy failed on the device: what waits behind it in its lane. */
static void lane_lose(struct real_world *rw, const struct copy_op *copy)
{
  const struct lane *lane = lane_find(rw->gpu[copy->spec.gpu].lanes, copy->spec.lane);
  for (uint32_t c = lane ? lane->first : NO_INDEX; c != NO_INDEX; c = copy_at(rw, c)->lane_next)
    copy_at(rw, c)->failed = TRUE;
}

/* --- ends
 * -----------------------------------------------------------------------------------------------------------*/

static void copied(struct note *note)
{
  struct copy_op *copy = (struct copy_op *)((char *)note - offsetof(struct copy_op, note));
  struct real_world *rw = copy->rw;
  const struct copy_spec *spec = &copy->spec;
  struct fetch_op *fetch = (struct fetch_op *)op_find(rw, copy->fetch, OP_FETCH);
  if (copy->state == COPY_ISSUED)
    rw->usage.pcie_bytes += spec->bytes;
  if (!copy->failed && world_records(&rw->world) && spec->group != NO_INDEX)
    real_record(rw, (struct record){.kind = RECORD_GROUP_PCIE,
                                    .time_ns = copy->end,
                                    .request = spec->request,
                                    .model = spec->model,
                                    .gpu = spec->gpu,
                                    .group = spec->group,
                                    .source = NO_INDEX,
                                    .a = (int64_t)spec->bytes,
                                    .b = copy->start});
  uint32_t group = spec->group, gpu = spec->gpu;
  gboolean failed = copy->failed;
  if (failed) {
    lane_lose(rw, copy);
    lose_dependents(rw, copy);
    real_gpu_pump(rw, gpu);
  }
  op_end(rw, &copy->op,
         (struct completion){.status = failed ? OP_FAILED : OP_DONE, .bytes = failed ? 0 : spec->bytes});
  if (fetch && !failed)
    real_fetch_copied(rw, fetch, group);
}

static void compute_record(struct real_world *rw, const struct compute_op *compute)
{
  const struct compute_spec *spec = &compute->spec;
  real_record(rw, (struct record){.kind = RECORD_GROUP_COMPUTE,
                                  .time_ns = compute->end,
                                  .request = spec->request,
                                  .model = spec->model,
                                  .gpu = spec->gpu,
                                  .group = spec->group,
                                  .source = NO_INDEX,
                                  .b = compute->start});
}

static void computed(struct note *note)
{
  struct compute_op *compute = (struct compute_op *)((char *)note - offsetof(struct compute_op, note));
  struct real_world *rw = compute->rw;
  const struct compute_spec *spec = &compute->spec;
  double lasted = (double)(compute->end - compute->start);
  uint64_t steps = spec->steps;
  *(steps > 0 ? &rw->usage.gpu_training_ns : &rw->usage.gpu_inference_ns) += lasted;
  if (compute->stopped)
    steps = MIN(steps, (uint64_t)(lasted / MAX(1, spec->compute_ns)));
  if (compute->wrong)
    real_world_fail(rw,
                    "request %" G_GUINT64_FORMAT
                    ": model %u, group %d on GPU %u: the parameters in GPU memory are not the model's (%s)",
                    spec->request, spec->model, (int)spec->group, spec->gpu,
                    image_name(images_get(rw->images, spec->model)));
  if (!compute->failed && steps == 0 && world_records(&rw->world))
    compute_record(rw, compute);
  op_end(rw, &compute->op,
         (struct completion){.status = compute->failed    ? OP_FAILED
                                       : compute->stopped ? OP_CANCELLED
                                                          : OP_DONE,
                             .steps = steps});
}

void real_gpu_ended(void *context, uint64_t tag, enum device_status status, int64_t start, int64_t end)
{
  struct real_world *rw = context;
  struct op *op = (struct op *)(uintptr_t)tag;
  if (op->kind == OP_COPY) {
    struct copy_op *copy = (struct copy_op *)op;
    copy->failed = status != DEVICE_DONE;
    copy->start = start;
    copy->end = end;
    note_post(rw->is.loop, &copy->note);
  } else {
    struct compute_op *compute = (struct compute_op *)op;
    compute->failed = status == DEVICE_FAILED || status == DEVICE_WRONG_BYTES;
    compute->wrong = status == DEVICE_WRONG_BYTES;
    compute->stopped = status == DEVICE_STOPPED;
    compute->start = start;
    compute->end = end;
    note_post(rw->is.loop, &compute->note);
  }
}

/* --- begin and cancel
 * -----------------------------------------------------------------------------------------------*/

op_id real_copy(struct real_world *rw, const struct copy_spec *spec)
{
  struct copy_op *copy = (struct copy_op *)op_take(&rw->copies, OP_COPY, sizeof(struct copy_op));
  struct real_gpu *gpu = &rw->gpu[spec->gpu];
  op_id id = op_id_of(&copy->op);
  copy->op.tag = spec->tag;
  copy->rw = rw;
  copy->note.read = copied;
  copy->spec = *spec;
  copy->fetch = spec->after_fetch;
  ranges_copy(&copy->host, spec->host);
  ranges_copy(&copy->device, spec->device);
  copy->state = COPY_WAITING;
  copy->lane_next = NO_INDEX;
  copy->failed = follows_lost(rw, spec->after);
  copy->start = copy->end = 0;
  uint32_t before = lane_append(gpu->lanes, spec->lane, copy->op.index);
  if (before != NO_INDEX)
    copy_at(rw, before)->lane_next = copy->op.index;
  real_gpu_pump(rw, spec->gpu);
  return id;
}

op_id real_compute(struct real_world *rw, const struct compute_spec *spec)
{
  struct compute_op *compute =
      (struct compute_op *)op_take(&rw->computes, OP_COMPUTE, sizeof(struct compute_op));
  struct real_gpu *gpu = &rw->gpu[spec->gpu];
  op_id id = op_id_of(&compute->op);
  compute->op.tag = spec->tag;
  compute->rw = rw;
  compute->note.read = computed;
  compute->spec = *spec;
  ranges_copy(&compute->device, spec->device);
  compute->asked = loop_now(rw->is.loop);
  compute->failed = follows_lost(rw, spec->after);
  compute->wrong = compute->stopped = compute->stop = FALSE;
  compute->stream_next = NO_INDEX;
  compute->start = compute->end = 0;
  uint32_t before = lane_append(gpu->streams, spec->stream, compute->op.index);
  if (before != NO_INDEX)
    compute_at(rw, before)->stream_next = compute->op.index;
  real_gpu_pump(rw, spec->gpu);
  return id;
}

static void stop_due(void *context, uint64_t id)
{
  struct compute_op *compute = (struct compute_op *)op_find(context, id, OP_COMPUTE);
  if (compute)
    compute->stop = TRUE;
}

/* Training ends at once, or, where its trainer cannot, at the end of the present step. */
void real_compute_cancel(struct real_world *rw, struct compute_op *compute)
{
  const struct compute_spec *spec = &compute->spec;
  int64_t now = loop_now(rw->is.loop);
  if (spec->steps == 0)
    return;
  if (spec->layer_ns || spec->compute_ns <= 0) {
    compute->stop = TRUE;
    return;
  }
  double steps = (double)(now - compute->asked) / spec->compute_ns;
  int64_t at = compute->asked + (int64_t)(((double)(int64_t)steps + 1) * spec->compute_ns);
  loop_timer(rw->is.loop, at, stop_due, rw, op_id_of(&compute->op));
}
