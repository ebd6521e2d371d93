/* world.h in the simulator: virtual clock, mail after the control latency, timers, operations. */
#include "backend_sim/sim_internal.h"

static struct port *port_of(struct world *world)
{
  return (struct port *)world;
}

static int64_t world_now_sim(struct world *world)
{
  const struct port *port = port_of(world);
  return port->sim->now + port->offset;
}

static timer_id world_timer(struct world *world, int64_t delay_ns, uint64_t tag)
{
  struct port *port = port_of(world);
  struct sim *sim = port->sim;
  uint32_t index = sim->free_timer;
  struct sim_timer *timer;
  if (index == NONE) {
    index = sim->timers->len;
    timer = g_new0(struct sim_timer, 1);
    g_ptr_array_add(sim->timers, timer);
  } else {
    timer = g_ptr_array_index(sim->timers, index);
    sim->free_timer = timer->next;
  }
  timer->port = port;
  timer->tag = tag;
  timer->event = event_queue_add(sim->queue, sim->now + max_i64(delay_ns, 0), EV_TIMER, index);
  return (timer_id)timer->generation << 32 | (index + 1ULL);
}

static void world_timer_cancel(struct world *world, timer_id id)
{
  struct sim *sim = port_of(world)->sim;
  uint32_t index = (uint32_t)id - 1;
  if (id == 0 || index >= sim->timers->len)
    return;
  struct sim_timer *timer = g_ptr_array_index(sim->timers, index);
  if (timer->event == EVENT_NONE || timer->generation != (uint32_t)(id >> 32))
    return;
  event_queue_remove(sim->queue, timer->event);
  timer->event = EVENT_NONE;
  timer->generation++;
  timer->next = sim->free_timer;
  sim->free_timer = index;
}

static void world_send_sim(struct world *world, actor_id to, const struct message *message)
{
  sim_mail_send(port_of(world), to, message);
}

static const struct sim_watch *watch_of(const struct port *port)
{
  return port->sim->options.watch;
}

static op_id world_fetch(struct world *world, const struct fetch_spec *spec)
{
  struct port *port = port_of(world);
  op_id op = sim_fetch_begin(port, spec);
  if (watch_of(port))
    watch_of(port)->fetch(watch_of(port)->context, port->id, op, spec);
  return op;
}

static op_id world_copy(struct world *world, const struct copy_spec *spec)
{
  struct port *port = port_of(world);
  op_id op = sim_copy_begin(port, spec);
  if (watch_of(port))
    watch_of(port)->copy(watch_of(port)->context, port->id, op, spec);
  return op;
}

static op_id world_compute(struct world *world, const struct compute_spec *spec)
{
  struct port *port = port_of(world);
  op_id op = sim_compute_begin(port, spec);
  if (watch_of(port))
    watch_of(port)->compute(watch_of(port)->context, port->id, op, spec);
  return op;
}

static void world_cancel(struct world *world, op_id op)
{
  struct sim *sim = port_of(world)->sim;
  struct sim_fetch *fetch = sim_fetch_by_id(sim, op);
  struct sim_compute *compute = sim_compute_by_id(sim, op);
  if (fetch)
    sim_fetch_cancel(sim, fetch);
  else if (compute)
    sim_compute_cancel(sim, compute);
}

/* Bytes have no contents here: only a watch hears of places. */
static void world_fill(struct world *world, uint32_t model, uint64_t offset, uint64_t bytes, uint32_t gpu,
                       const struct ranges *place)
{
  struct port *port = port_of(world);
  if (watch_of(port))
    watch_of(port)->fill(watch_of(port)->context, port->id, model, offset, bytes, gpu, place);
}

static void world_serve(struct world *world, uint32_t model, uint64_t offset, uint64_t bytes,
                        const struct ranges *place)
{
  struct port *port = port_of(world);
  if (watch_of(port))
    watch_of(port)->serve(watch_of(port)->context, port->id, model, offset, bytes, place);
}

static void world_record(struct world *world, const struct record *record)
{
  struct port *port = port_of(world);
  struct record copy = *record;
  copy.time_ns = port->sim->now;
  sim_emit(port, copy);
}

const struct world_ops sim_world_ops = {
    .now = world_now_sim,
    .timer = world_timer,
    .timer_cancel = world_timer_cancel,
    .send = world_send_sim,
    .fetch = world_fetch,
    .copy = world_copy,
    .compute = world_compute,
    .cancel = world_cancel,
    .fill = world_fill,
    .serve = world_serve,
    .record = world_record,
    .capabilities = SIM_CAPABILITIES,
};
