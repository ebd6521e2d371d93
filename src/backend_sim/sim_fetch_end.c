/* How fetches end: all is here, they are cancelled, or a server dies. */
#include "backend_sim/sim_internal.h"

static void fetch_give(struct sim *sim, struct sim_fetch *f)
{
  f->live = FALSE;
  f->generation++;
  f->next = sim->free_fetch;
  sim->free_fetch = f->self;
}

/* Bytes that came; streams still under way are ended. */
static uint64_t stop_streams(struct sim *sim, struct sim_fetch *f)
{
  uint64_t bytes = 0;
  for (uint32_t s = 0; s < f->streams && f->started; s++) {
    if (f->milestones[s] == 0)
      continue;
    if (f->passed[s] == f->milestones[s])
      bytes += f->slice_end[s * f->groups + f->milestones[s] - 1];
    else
      bytes += stream_cancel(sim->net, f->stream[s], sim->now);
  }
  return bytes;
}

static void count_bytes(struct sim *sim, const struct sim_fetch *f, uint64_t bytes)
{
  sim->net_bytes += f->remote ? bytes : 0;
  sim->pcie_bytes += f->direct ? bytes : 0;
}

static void fail_waiter(struct sim *sim, const struct sim_fetch *f, uint32_t *list)
{
  if (f->direct) {
    struct sim_compute *compute = sim_compute_at(sim, *list);
    *list = compute->waiter_next;
    sim_compute_fail(sim, compute);
  } else {
    struct sim_copy *copy = sim_copy_at(sim, *list);
    *list = copy->waiter_next;
    sim_copy_fail(sim, copy);
  }
}

void sim_fetch_cancel(struct sim *sim, struct sim_fetch *f)
{
  if (f->status == OP_CANCELLED || f->left == 0)
    return; /* all is here already: it ends by itself */
  f->status = OP_CANCELLED;
  f->bytes = stop_streams(sim, f);
  count_bytes(sim, f, f->bytes);
  for (uint32_t g = f->first; g < f->groups; g++)
    while (f->waiter[g] != NONE)
      fail_waiter(sim, f, &f->waiter[g]);
  sim_at(sim, f->landed_at, EV_FETCH_END, f->self); /* what counts as there is */
}

void sim_fetch_end(struct sim *sim, struct sim_fetch *f)
{
  struct completion completion = {
      .tag = f->tag, .status = f->status, .bytes = f->bytes, .groups = f->direct ? f->lowest : 0};
  struct port *port = f->port;
  op_id op = OP(SIM_FETCH, f->generation, f->self);
  if (f->status == OP_DONE) {
    completion.bytes = stop_streams(sim, f);
    count_bytes(sim, f, completion.bytes);
  }
  fetch_give(sim, f);
  sim_complete(port, op, &completion);
}

/* --- failures
 * -------------------------------------------------------------------------------------------------------*/

void sim_fetch_server_failed(struct sim *sim, uint32_t memory_server)
{
  for (uint32_t i = 0; i < sim->fetches->len; i++) {
    struct sim_fetch *f = sim_fetch_at(sim, i);
    if (!f->live || !f->remote || !f->started || f->status == OP_CANCELLED)
      continue;
    for (uint32_t s = 0; s < f->streams; s++) {
      if (f->servers[s] != memory_server || f->passed[s] >= f->milestones[s] || f->stalled[s])
        continue;
      f->stalled[s] = TRUE;
      if (!f->paused[s])
        stream_pause(sim->net, f->stream[s], (double)sim->now);
    }
  }
}

void sim_fetch_port_failed(struct sim *sim, struct port *port)
{
  for (uint32_t i = 0; i < sim->fetches->len; i++) {
    struct sim_fetch *f = sim_fetch_at(sim, i);
    if (f->live && f->port == port)
      sim_fetch_cancel(sim, f);
  }
}
