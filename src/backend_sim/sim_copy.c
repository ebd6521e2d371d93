/* Copies over PCIe: one at a time in each direction of a GPU, by lanes in order, lanes as they become ready.
 * Where several GPUs share a switch, the bytes are streams that share its uplink. */
#include "backend_sim/sim_internal.h"

/* Streams of copies and of fetches share one stream_net: the top bit of `user` tells them apart (sim.c). */
#define COPY_USER (1ULL << 63)

struct sim_copy *sim_copy_by_id(struct sim *sim, op_id op)
{
  uint32_t index = OP_INDEX(op);
  if (OP_KIND(op) != SIM_COPY || index >= sim->copies->len)
    return NULL;
  struct sim_copy *c = sim_copy_at(sim, index);
  return c->live && (c->generation & 0xfffffff) == OP_GENERATION(op) ? c : NULL;
}

static struct sim_copy *copy_take(struct sim *sim)
{
  if (sim->free_copy == NONE) {
    struct sim_copy *c = g_new0(struct sim_copy, 1);
    c->self = sim->copies->len;
    g_ptr_array_add(sim->copies, c);
    return c;
  }
  struct sim_copy *c = sim_copy_at(sim, sim->free_copy);
  sim->free_copy = c->next;
  return c;
}

static void copy_give(struct sim *sim, struct sim_copy *c)
{
  c->live = FALSE;
  c->generation++;
  c->next = sim->free_copy;
  sim->free_copy = c->self;
}

void sim_engine_init(struct sim *sim, struct engine *engine, link_id link, link_id uplink, gboolean shared)
{
  (void)sim;
  *engine = (struct engine){.lanes = g_array_new(FALSE, FALSE, sizeof(struct lane)),
                            .ready = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                            .busy = NONE,
                            .link = link,
                            .uplink = uplink,
                            .shared = shared};
}

void sim_engine_clear(struct engine *engine)
{
  g_array_unref(engine->lanes);
  g_array_unref(engine->ready);
}

static struct engine *engine_of(const struct sim_copy *c)
{
  struct sim_gpu *gpu = sim_gpu_of(c->port, c->spec.gpu);
  return c->spec.to_host ? &gpu->up : &gpu->down;
}

/* --- one copy at a time
 * ---------------------------------------------------------------------------------------------*/

static double pcie_rate(const struct sim *sim, const struct sim_gpu *gpu)
{
  return sim->pcie >= 0 ? sim->pcie : gpu->hardware->pcie_bytes_s;
}

/* Rate of pageable memory, 0 = not slower than PCIe. */
static double own_rate(const struct sim_gpu *gpu, const struct copy_spec *spec)
{
  if (!spec->pageable)
    return 0;
  return spec->to_host ? gpu->hardware->pageable_to_host_bytes_s : gpu->hardware->pageable_bytes_s;
}

static void start_bytes(struct sim *sim, struct engine *engine, struct sim_copy *c, double at)
{
  const struct sim_gpu *gpu = sim_gpu_of(c->port, c->spec.gpu);
  link_id links[2] = {engine->link, engine->uplink};
  c->bytes_end = c->spec.bytes;
  engine->stream =
      stream_start(sim->net, at, links, 2, own_rate(gpu, &c->spec), &c->bytes_end, 1, COPY_USER | c->self);
}

static void start(struct sim *sim, struct engine *engine, struct sim_copy *c)
{
  const struct sim_gpu *gpu = sim_gpu_of(c->port, c->spec.gpu);
  engine->busy = c->self;
  c->start = MAX(c->ready, engine->free_at);
  double begins = c->start + gpu->hardware->pcie_transfer_ns + c->spec.extra_ns;
  double own = own_rate(gpu, &c->spec);
  gboolean free_of_charge = c->spec.pageable && own <= 0; /* pageable copies set to cost nothing */
  if (engine->shared && c->spec.bytes > 0 && !free_of_charge) {
    engine->free_at = begins;
    if (ns_round(begins) > sim->now)
      sim_at(sim, begins, EV_COPY_BYTES, c->self);
    else
      start_bytes(sim, engine, c, begins);
    return;
  }
  double pcie = pcie_rate(sim, gpu);
  double rate = free_of_charge ? 0 : own > 0 && (own < pcie || pcie <= 0) ? own : pcie;
  engine->free_at = begins + transfer_ns(c->spec.bytes, rate);
  sim_at(sim, engine->free_at, EV_COPY_END, c->self);
}

static void engine_go(struct sim *sim, struct engine *engine)
{
  if (engine->busy != NONE || engine->ready->len == 0)
    return;
  uint32_t index = g_array_index(engine->ready, uint32_t, 0);
  g_array_remove_index(engine->ready, 0);
  start(sim, engine, sim_copy_at(sim, index));
}

static void copy_ready(struct sim *sim, struct sim_copy *c)
{
  struct engine *engine = engine_of(c);
  if (ns_round(c->ready) > sim->now) {
    sim_at(sim, c->ready, EV_COPY_READY, c->self);
    return;
  }
  g_array_append_val(engine->ready, c->self);
  engine_go(sim, engine);
}

void sim_copy_met(struct sim *sim, struct sim_copy *c, double ready_ns)
{
  c->ready = MAX(c->ready, ready_ns);
  if (--c->waits == 0 && !c->failing)
    copy_ready(sim, c);
}

/* --- lanes
 * ----------------------------------------------------------------------------------------------------------*/

static struct lane *lane_find(struct engine *engine, uint32_t id)
{
  for (uint32_t i = 0; i < engine->lanes->len; i++)
    if (g_array_index(engine->lanes, struct lane, i).id == id)
      return &g_array_index(engine->lanes, struct lane, i);
  return NULL;
}

/* TRUE: it is the first of its lane. */
static gboolean lane_add(struct sim *sim, struct engine *engine, struct sim_copy *c)
{
  struct lane *lane = lane_find(engine, c->spec.lane);
  if (!lane) {
    struct lane new = {.id = c->spec.lane, .first = c->self, .last = c->self};
    g_array_append_val(engine->lanes, new);
    return TRUE;
  }
  sim_copy_at(sim, lane->last)->lane_next = c->self;
  lane->last = c->self;
  return FALSE;
}

/* Takes the first of a lane out; its successor may go. */
static void lane_pop(struct sim *sim, struct engine *engine, struct sim_copy *c, double at)
{
  struct lane *lane = lane_find(engine, c->spec.lane);
  uint32_t next = c->lane_next;
  if (next == NONE) {
    g_array_remove_index(engine->lanes, (guint)(lane - &g_array_index(engine->lanes, struct lane, 0)));
    return;
  }
  lane->first = next;
  sim_copy_met(sim, sim_copy_at(sim, next), at);
}

op_id sim_copy_begin(struct port *port, const struct copy_spec *spec)
{
  struct sim *sim = port->sim;
  struct sim_copy *c = copy_take(sim);
  uint32_t self = c->self, generation = c->generation;
  *c = (struct sim_copy){.port = port,
                         .spec = *spec,
                         .self = self,
                         .next = NONE,
                         .generation = generation,
                         .lane_next = NONE,
                         .waiter_next = NONE,
                         .dependents = NONE,
                         .compute_dependents = NONE,
                         .live = TRUE,
                         .waits = 1, /* until this function has found all it waits for */
                         .ready = (double)sim->now};
  double ready = c->ready;
  c->waits += !lane_add(sim, engine_of(c), c);
  struct sim_fetch *fetch = spec->after_fetch ? sim_fetch_by_id(sim, spec->after_fetch) : NULL;
  gboolean waits = fetch && sim_fetch_wait(sim, fetch, spec->group, c, &ready);
  c->waits += waits;
  struct sim_copy *after = spec->after ? sim_copy_by_id(sim, spec->after) : NULL;
  if (after) {
    c->waits++;
    c->next = after->dependents;
    after->dependents = self;
  }
  /* A fetch that was cancelled brings no more, a copy that failed is never over, though their ends are still
   * to be told. */
  if ((waits && fetch->status == OP_CANCELLED) || (after && after->failing))
    sim_copy_fail(sim, c);
  sim_copy_met(sim, c, ready);
  return OP(SIM_COPY, generation, self);
}

/* --- ends
 * -----------------------------------------------------------------------------------------------------------*/

static void release_dependents(struct sim *sim, struct sim_copy *c, double at)
{
  for (uint32_t i = c->compute_dependents, next; i != NONE; i = next) {
    struct sim_compute *compute = sim_compute_at(sim, i);
    next = compute->waiter_next;
    sim_compute_met(sim, compute, at);
  }
  for (uint32_t i = c->dependents, next; i != NONE; i = next) {
    struct sim_copy *copy = sim_copy_at(sim, i);
    next = copy->next;
    copy->next = NONE;
    sim_copy_met(sim, copy, at);
  }
}

static void emit_copy(const struct sim_copy *c, double end)
{
  sim_emit(c->port, (struct record){.time_ns = ns_round(end),
                                    .kind = RECORD_GROUP_PCIE,
                                    .reason = c->spec.to_host ? REASON_SPACE : REASON_NONE,
                                    .request = c->spec.request,
                                    .model = c->spec.model,
                                    .gpu = c->spec.gpu,
                                    .group = c->spec.group,
                                    .source = NO_INDEX,
                                    .a = (int64_t)c->spec.bytes,
                                    .b = ns_round(c->start)});
}

static void finish(struct sim *sim, struct sim_copy *c)
{
  struct engine *engine = engine_of(c);
  double end = engine->free_at;
  struct port *port = c->port;
  op_id op = OP(SIM_COPY, c->generation, c->self);
  struct completion completion = {.tag = c->spec.tag, .status = OP_DONE, .bytes = c->spec.bytes};
  sim->pcie_bytes += c->spec.bytes;
  engine->busy = NONE;
  if (port->world.records)
    emit_copy(c, end);
  struct sim_fetch *fetch = c->spec.after_fetch ? sim_fetch_by_id(sim, c->spec.after_fetch) : NULL;
  if (fetch)
    sim_fetch_credit(sim, fetch, c->spec.group, end);
  release_dependents(sim, c, end);
  lane_pop(sim, engine, c, end);
  copy_give(sim, c);
  engine_go(sim, engine);
  sim_complete(port, op, &completion);
}

/* A copy that cannot begin fails, and with it whatever named it and the rest of its lane. */
void sim_copy_fail(struct sim *sim, struct sim_copy *c)
{
  for (; c && !c->failing; c = c->lane_next == NONE ? NULL : sim_copy_at(sim, c->lane_next)) {
    c->failing = TRUE;
    event_queue_add(sim->queue, sim->now, EV_COPY_FAILED, c->self);
    for (uint32_t i = c->compute_dependents; i != NONE; i = sim_compute_at(sim, i)->waiter_next)
      sim_compute_fail(sim, sim_compute_at(sim, i));
    for (uint32_t i = c->dependents; i != NONE; i = sim_copy_at(sim, i)->next)
      sim_copy_fail(sim, sim_copy_at(sim, i));
  }
}

static void lane_remove(struct sim *sim, struct engine *engine, struct sim_copy *c)
{
  struct lane *lane = lane_find(engine, c->spec.lane);
  uint32_t previous = NONE;
  for (uint32_t i = lane->first; i != c->self; i = sim_copy_at(sim, i)->lane_next)
    previous = i;
  if (previous == NONE) {
    lane_pop(sim, engine, c, (double)sim->now);
    return;
  }
  sim_copy_at(sim, previous)->lane_next = c->lane_next;
  if (lane->last == c->self)
    lane->last = previous;
}

static void copy_failed(struct sim *sim, struct sim_copy *c)
{
  struct port *port = c->port;
  op_id op = OP(SIM_COPY, c->generation, c->self);
  struct completion completion = {.tag = c->spec.tag, .status = OP_FAILED};
  lane_remove(sim, engine_of(c), c);
  copy_give(sim, c);
  sim_complete(port, op, &completion);
}

void sim_copy_milestone(struct sim *sim, uint32_t index, double exact_ns)
{
  struct sim_copy *c = sim_copy_at(sim, index);
  engine_of(c)->free_at = exact_ns;
  finish(sim, c);
}

void sim_copy_event(struct sim *sim, enum sim_event event, uint32_t index)
{
  struct sim_copy *c = sim_copy_at(sim, index);
  switch (event) {
  case EV_COPY_READY:
    if (!c->failing)
      copy_ready(sim, c);
    break;
  case EV_COPY_BYTES:
    start_bytes(sim, engine_of(c), c, engine_of(c)->free_at);
    break;
  case EV_COPY_END:
    finish(sim, c);
    break;
  default:
    copy_failed(sim, c);
  }
}
