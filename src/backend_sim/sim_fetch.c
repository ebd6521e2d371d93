/* Fetches: one stream a memory server (or from the SSD), milestones where groups end.
 *
 * Overheads delay and occupy no link: net_stream before the bytes begin, net_group once a group on its
 * arrival. With slices of a group on several streams, the group has arrived when its last byte has.
 *
 * Streams into a GPU's memory also cross its PCIe link, as a link of the max-min share: the one of the
 * switch, where GPUs share one, since the NICs stand above it; the GPU's own, which has the same rate and
 * carries nothing else, then holds back nothing more. They use no copy engine: no pcie_transfer_us. */
#include <math.h>
#include <string.h>
#include "backend_sim/sim_internal.h"

struct sim_fetch *sim_fetch_by_id(struct sim *sim, op_id op)
{
  uint32_t index = OP_INDEX(op);
  if (OP_KIND(op) != SIM_FETCH || index >= sim->fetches->len)
    return NULL;
  struct sim_fetch *f = sim_fetch_at(sim, index);
  return f->live && (f->generation & 0xfffffff) == OP_GENERATION(op) ? f : NULL;
}

static struct sim_fetch *fetch_take(struct sim *sim)
{
  if (sim->free_fetch == NONE) {
    struct sim_fetch *f = g_new0(struct sim_fetch, 1);
    f->self = sim->fetches->len;
    g_ptr_array_add(sim->fetches, f);
    return f;
  }
  struct sim_fetch *f = sim_fetch_at(sim, sim->free_fetch);
  sim->free_fetch = f->next;
  return f;
}

void sim_fetch_free(struct sim_fetch *f)
{
  g_free(f->remaining);
  g_free(f->byte_time);
  g_free(f->arrival);
  g_free(f->waiter);
  g_free(f->credited);
  g_free(f->slice_end);
  g_free(f->slice_group);
  g_free(f);
}

/* Arrays grow to the largest fetch and stay: no allocation in a steady run. */
static void make_room(struct sim_fetch *f, uint32_t groups, uint32_t slices)
{
  if (groups > f->room_groups) {
    f->remaining = g_renew(uint32_t, f->remaining, groups);
    f->byte_time = g_renew(double, f->byte_time, groups);
    f->arrival = g_renew(double, f->arrival, groups);
    f->waiter = g_renew(uint32_t, f->waiter, groups);
    f->credited = g_renew(uint8_t, f->credited, groups);
    f->room_groups = groups;
  }
  if (slices > f->room_slices) {
    f->slice_end = g_renew(uint64_t, f->slice_end, slices);
    f->slice_group = g_renew(uint32_t, f->slice_group, slices);
    f->room_slices = slices;
  }
}

/* The slices of each stream, empty ones left out. */
static void cut(struct sim_fetch *f)
{
  const struct fetch_plan *plan = f->plan;
  for (uint32_t g = 0; g < f->groups; g++) {
    f->remaining[g] = 0;
    f->byte_time[g] = 0;
    f->arrival[g] = g < f->first ? 0 : NAN;
    f->waiter[g] = NONE;
    f->credited[g] = g < f->first;
  }
  for (uint32_t s = 0; s < f->streams; s++) {
    uint64_t end = 0;
    f->milestones[s] = f->passed[s] = 0;
    f->paused[s] = f->stalled[s] = FALSE;
    for (uint32_t g = f->first; g < f->groups; g++) {
      uint64_t bytes = plan->bytes[(size_t)g * plan->streams + s];
      if (bytes == 0)
        continue;
      uint32_t at = s * f->groups + f->milestones[s]++;
      f->slice_end[at] = end += bytes;
      f->slice_group[at] = g;
      f->remaining[g]++;
    }
  }
}

/* --- arrivals
 * -------------------------------------------------------------------------------------------------------*/

static const struct hardware *hardware_of(const struct sim_fetch *f)
{
  const struct config *config = f->port->sim->config;
  return ACTOR_KIND(f->port->id) == ACTOR_GPU_SERVER
             ? config_server_hardware(config, ACTOR_INDEX(f->port->id))
             : &config->memory_hardware;
}

static double group_overhead(const struct sim_fetch *f)
{
  return f->remote ? hardware_of(f)->net_group_ns : 0;
}

static void emit_arrival(const struct sim_fetch *f, uint32_t group)
{
  double begin = group > f->first && !isnan(f->arrival[group - 1]) ? f->arrival[group - 1] : f->start;
  sim_emit(f->port, (struct record){.time_ns = ns_round(f->arrival[group]),
                                    .kind = RECORD_GROUP_NET,
                                    .request = f->request,
                                    .model = f->model,
                                    .gpu = f->gpu,
                                    .group = group,
                                    .source = f->remote ? SOURCE_REMOTE : SOURCE_SSD,
                                    .a = (int64_t)f->plan->group_bytes[group],
                                    .b = ns_round(MIN(begin, f->arrival[group]))});
}

static void group_arrived(struct sim *sim, struct sim_fetch *f, uint32_t group, double byte_time)
{
  uint32_t ordinal = f->sequential ? 1 : group + 1 - f->first;
  double arrival = byte_time + ordinal * group_overhead(f);
  f->byte_time[group] = byte_time;
  f->arrival[group] = arrival;
  f->last_arrival = MAX(f->last_arrival, arrival);
  f->left--;
  if (f->port->world.records && f->gpu != NO_INDEX)
    emit_arrival(f, group);
  for (uint32_t waiter = f->direct ? NONE : f->waiter[group]; waiter != NONE;) {
    struct sim_copy *copy = sim_copy_at(sim, waiter);
    f->waiter[group] = waiter = copy->waiter_next;
    sim_copy_met(sim, copy, arrival);
  }
}

/* Direct: the group and all before it are there. */
static void group_landed(struct sim *sim, struct sim_fetch *f, uint32_t group)
{
  f->landed_at = MAX(f->landed_at, f->arrival[group]);
  while (f->waiter[group] != NONE) {
    struct sim_compute *compute = sim_compute_at(sim, f->waiter[group]);
    f->waiter[group] = compute->waiter_next;
    sim_compute_met(sim, compute, f->landed_at);
  }
}

static void group_complete(struct sim *sim, struct sim_fetch *f, uint32_t group, double byte_time)
{
  group_arrived(sim, f, group, byte_time);
  for (uint32_t g = group + 1; g < f->groups && f->plan->group_bytes[g] == 0 && isnan(f->arrival[g]); g++)
    group_arrived(sim, f, g,
                  f->sequential ? f->arrival[g - 1] : byte_time); /* nothing to fetch: here with the last */
  for (; f->lowest < f->groups && !isnan(f->arrival[f->lowest]); f->lowest++)
    if (f->direct)
      group_landed(sim, f, f->lowest);
  if (f->sequential && f->left > 0) {
    f->next_at = f->last_arrival;
    sim_at(sim, f->next_at, EV_FETCH_NEXT, f->self);
  } else if (f->paused_count > 0) {
    sim_fetch_resume(sim, f, byte_time);
  }
  if (f->left == 0) {
    f->status = OP_DONE;
    sim_at(sim, f->last_arrival, EV_FETCH_END, f->self);
  }
}

void sim_fetch_milestone(struct sim *sim, uint64_t user, uint32_t milestone, double exact_ns)
{
  struct sim_fetch *f = sim_fetch_at(sim, (uint32_t)(user >> 8));
  uint32_t s = user & 0xff, at = s * f->groups + milestone, group = f->slice_group[at];
  uint64_t before = milestone == 0 ? 0 : f->slice_end[at - 1];
  f->passed[s] = milestone + 1;
  f->arrived += f->slice_end[at] - before;
  f->byte_time[group] = MAX(f->byte_time[group], exact_ns);
  if (--f->remaining[group] == 0)
    group_complete(sim, f, group, f->byte_time[group]);
  if (f->passed[s] == f->milestones[s])
    return;
  sim_fetch_go_on(sim, f, s, exact_ns);
}

gboolean sim_fetch_wait(struct sim *sim, struct sim_fetch *f, uint32_t group, struct sim_copy *copy,
                        double *ready_ns)
{
  (void)sim;
  if (!isnan(f->arrival[group])) {
    *ready_ns = MAX(*ready_ns, f->arrival[group]);
    return FALSE;
  }
  copy->waiter_next = f->waiter[group];
  f->waiter[group] = copy->self;
  return TRUE;
}

gboolean sim_fetch_hold(struct sim *sim, struct sim_fetch *f, uint32_t group, struct sim_compute *compute,
                        double *ready_ns)
{
  if (group < f->lowest) {
    *ready_ns = MAX(*ready_ns, f->arrival[group]);
    return FALSE;
  }
  if (f->status == OP_CANCELLED) {
    sim_compute_fail(sim, compute);
    return TRUE;
  }
  compute->waiter_next = f->waiter[group];
  f->waiter[group] = compute->self;
  return TRUE;
}

void sim_fetch_credit(struct sim *sim, struct sim_fetch *f, uint32_t group, double exact_ns)
{
  if (f->credited[group])
    return;
  f->credited[group] = TRUE;
  f->uploaded += f->plan->group_bytes[group];
  while (f->pending < f->groups && f->credited[f->pending])
    f->pending++;
  if (f->paused_count == 0)
    return;
  if (!f->sequential)
    sim_fetch_resume(sim, f, exact_ns);
  else if (f->next_at <= (double)sim->now)
    sim_fetch_allow_next(sim, f, MAX(f->next_at, exact_ns));
}

/* --- begin
 * --------------------------------------------------------------------------------------------------*/

static uint32_t stream_links(struct sim *sim, const struct sim_fetch *f, uint32_t s,
                             link_id links[FLOW_LINKS_MAX])
{
  uint32_t count = 0;
  if (!f->remote) {
    links[count++] = f->port->ssd;
    return count;
  }
  links[count++] = sim->memory[f->servers[s]].network;
  if (sim->has_spine)
    links[count++] = sim->spine;
  links[count++] = ACTOR_KIND(f->port->id) == ACTOR_GPU_SERVER ? f->port->network : f->port->ingress;
  if (f->direct)
    links[count++] = sim_gpu_of(f->port, f->gpu)->down.uplink;
  return count;
}

static void streams_start(struct sim *sim, struct sim_fetch *f)
{
  f->started = TRUE;
  for (uint32_t s = 0; s < f->streams; s++) {
    if (f->milestones[s] == 0)
      continue;
    link_id links[FLOW_LINKS_MAX];
    uint32_t count = stream_links(sim, f, s, links);
    f->stream[s] = stream_start(sim->net, f->start, links, count, 0, f->slice_end + (size_t)s * f->groups,
                                f->milestones[s], (uint64_t)f->self << 8 | s);
    f->stalled[s] = f->remote && sim->dead_memory[f->servers[s]];
    sim_fetch_go_on(sim, f, s, f->start);
    if (f->stalled[s] && !f->paused[s])
      stream_pause(sim->net, f->stream[s], f->start);
  }
  /* Leading groups without bytes are here at once. */
  if (f->plan->group_bytes[f->first] == 0)
    group_complete(sim, f, f->first, f->start);
}

op_id sim_fetch_begin(struct port *port, const struct fetch_spec *spec)
{
  struct sim *sim = port->sim;
  struct sim_fetch *f = fetch_take(sim);
  uint32_t groups = spec->plan->groups, streams = spec->plan->streams;
  make_room(f, groups, groups * streams);
  f->port = port;
  f->tag = spec->tag;
  f->request = spec->request;
  f->window = spec->window_bytes;
  f->ring = !spec->device && spec->ring_bytes < spec->plan->total_bytes ? spec->ring_bytes : 0;
  f->ring_end = 0;
  f->live = TRUE;
  f->sequential = spec->sequential;
  f->remote = spec->source == SOURCE_REMOTE;
  f->direct = spec->device != NULL;
  f->status = OP_DONE;
  f->plan = spec->plan;
  f->model = spec->model;
  f->gpu = spec->gpu;
  f->groups = groups;
  f->streams = streams;
  f->first = f->lowest = f->pending = f->allowed = spec->first_group;
  f->left = groups - spec->first_group;
  f->arrived = f->uploaded = f->bytes = 0;
  f->last_arrival = f->next_at = f->landed_at = 0;
  f->paused_count = 0;
  f->started = FALSE;
  if (spec->server)
    memcpy(f->servers, spec->server, streams * sizeof *f->servers);
  cut(f);
  f->start = (double)sim->now + (f->remote ? hardware_of(f)->net_stream_ns : 0);
  if (ns_round(f->start) > sim->now)
    sim_at(sim, f->start, EV_FETCH_START, f->self);
  else
    streams_start(sim, f);
  return OP(SIM_FETCH, f->generation, f->self);
}

void sim_fetch_event(struct sim *sim, enum sim_event event, uint32_t index)
{
  struct sim_fetch *f = sim_fetch_at(sim, index);
  if (event == EV_FETCH_END)
    sim_fetch_end(sim, f);
  else if (!f->live || f->status == OP_CANCELLED)
    return; /* an event of a fetch that was cancelled meanwhile */
  else if (event == EV_FETCH_START && !f->started)
    streams_start(sim, f);
  else if (event == EV_FETCH_NEXT)
    sim_fetch_allow_next(sim, f, f->next_at);
}
