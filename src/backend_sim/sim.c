/* The simulator's loop: events, mail and timers in one order; birth and death of actors. See sim.h. */
#include <math.h>
#include "backend_sim/sim_internal.h"

#define COPY_USER (1ULL << 63)

/* --- construction
 * ---------------------------------------------------------------------------------------------------*/

static void on_milestone(void *context, stream_id stream, uint64_t user, uint32_t milestone, double exact_ns,
                         gboolean last)
{
  (void)stream;
  (void)last;
  if (user & COPY_USER)
    sim_copy_milestone(context, (uint32_t)user, exact_ns);
  else
    sim_fetch_milestone(context, user, milestone, exact_ns);
}

static void port_init(struct sim *sim, struct port *port, actor_id id)
{
  *port = (struct port){.world = {.ops = &sim_world_ops, .records = sim->options.record != NULL},
                        .sim = sim,
                        .id = id,
                        .offset = sim->options.clock_offset_ns *
                                  (7 * (int64_t)ACTOR_KIND(id) + 3 * ACTOR_INDEX(id) + 1)};
}

static double nic_rate(const struct sim *sim, const struct hardware *hw)
{
  return sim->nic >= 0 ? sim->nic : hw->nic_bytes_s;
}

static double memory_nic_rate(const struct sim *sim)
{
  return sim->memory_nic >= 0 ? sim->memory_nic : sim->config->memory_hardware.memory_nic_bytes_s;
}

/* The spine carries what the smaller side of the pools could send, divided by the oversubscription. */
static double spine_rate(const struct sim *sim)
{
  double down = 0, up = memory_nic_rate(sim) * sim->config->memory_servers_at_start;
  for (uint32_t s = 0; s < sim->config->servers_at_start; s++)
    down += nic_rate(sim, config_server_hardware(sim->config, s));
  return MIN(down, up) / sim->config->hardware[0].spine_oversubscription;
}

static void links_init(struct sim *sim)
{
  const struct config *config = sim->config;
  for (uint32_t s = 0; s < config->servers; s++) {
    const struct hardware *hw = config_server_hardware(config, s);
    sim->server[s].network = stream_net_add_link(sim->net, nic_rate(sim, hw));
    sim->server[s].ssd = stream_net_add_link(sim->net, hw->ssd_bytes_s);
  }
  for (uint32_t i = 0; i < config->memory_servers; i++) {
    sim->memory[i].network = stream_net_add_link(sim->net, memory_nic_rate(sim));
    sim->memory[i].ingress = stream_net_add_link(sim->net, memory_nic_rate(sim));
  }
  sim->has_spine = config->hardware[0].spine_oversubscription > 1;
  if (sim->has_spine)
    sim->spine = stream_net_add_link(sim->net, spine_rate(sim));
}

static void gpus_init(struct sim *sim, uint32_t server)
{
  const struct server_config *sc = &sim->config->server[server];
  const struct hardware *hw = config_server_hardware(sim->config, server);
  uint32_t per_switch = MAX(1, hw->gpus_per_pcie_switch);
  link_id down = 0, up = 0;
  for (uint32_t g = 0; g < sc->gpus; g++) {
    struct sim_gpu *gpu = &sim->gpu[sc->first_gpu + g];
    if (g % per_switch == 0) {
      down = stream_net_add_link(sim->net, hw->pcie_bytes_s);
      up = stream_net_add_link(sim->net, hw->pcie_bytes_s);
    }
    gboolean shared = MIN(per_switch, sc->gpus - g / per_switch * per_switch) > 1;
    gboolean written = sim->config->gpudirect; /* NICs use the links to the GPU, too */
    *gpu = (struct sim_gpu){.port = &sim->server[server],
                            .global = sc->first_gpu + g,
                            .local = g,
                            .hardware = hw,
                            .event = EVENT_NONE,
                            .streams = g_array_new(FALSE, FALSE, sizeof(struct gpu_stream)),
                            .running = g_array_new(FALSE, FALSE, sizeof(uint32_t))};
    sim_engine_init(sim, &gpu->down, stream_net_add_link(sim->net, hw->pcie_bytes_s), down,
                    shared || written);
    sim_engine_init(sim, &gpu->up, stream_net_add_link(sim->net, hw->pcie_bytes_s), up, shared);
  }
}

void sim_server_birth(struct sim *sim, uint32_t index)
{
  struct port *port = &sim->server[index];
  port->actor = gpu_server_new(sim->config, index, &port->world);
  port->ops = &gpu_server_actor;
  port->born = sim->now;
  port->up = TRUE;
}

void sim_memory_birth(struct sim *sim, uint32_t index)
{
  struct port *port = &sim->memory[index];
  port->actor = memory_server_new(sim->config, index, &port->world);
  port->ops = &memory_server_actor;
  port->up = TRUE;
}

static void actors_init(struct sim *sim)
{
  const struct config *config = sim->config;
  port_init(sim, &sim->client, ACTOR(ACTOR_CLIENT, 0));
  port_init(sim, &sim->controller, ACTOR(ACTOR_CONTROLLER, 0));
  sim->control = controller_new(config, &sim->controller.world);
  sim->controller.actor = sim->control;
  sim->controller.ops = &controller_actor;
  sim->controller.up = TRUE;
  for (uint32_t s = 0; s < config->servers; s++) {
    port_init(sim, &sim->server[s], ACTOR(ACTOR_GPU_SERVER, s));
    sim->server[s].first_gpu = config->server[s].first_gpu;
  }
  for (uint32_t i = 0; i < config->memory_servers; i++)
    port_init(sim, &sim->memory[i], ACTOR(ACTOR_MEMORY_SERVER, i));
  sim_mail_init(sim);
  links_init(sim);
  for (uint32_t s = 0; s < config->servers; s++)
    gpus_init(sim, s);
  for (uint32_t s = 0; s < config->servers_at_start; s++)
    sim_server_birth(sim, s);
  for (uint32_t i = 0; i < config->memory_servers_at_start; i++)
    sim_memory_birth(sim, i);
}

struct sim *sim_new(const struct config *config, const struct sim_options *options)
{
  struct sim *sim = g_new0(struct sim, 1);
  sim->config = config;
  sim->options = options ? *options : (struct sim_options){0};
  sim->queue = event_queue_new();
  sim->net = stream_net_new(sim->queue, EV_STREAM, on_milestone, sim);
  sim->nic = sim->memory_nic = sim->pcie = -1;
  sim->server = g_new0(struct port, config->servers);
  sim->memory = g_new0(struct port, MAX(1, config->memory_servers));
  sim->dead_memory = g_new0(gboolean, MAX(1, config->memory_servers));
  sim->gpu = g_new0(struct sim_gpu, config->gpus);
  sim->timers = g_ptr_array_new_with_free_func(g_free);
  sim->copies = g_ptr_array_new_with_free_func(g_free);
  sim->computes = g_ptr_array_new_with_free_func(g_free);
  sim->fetches = g_ptr_array_new_with_free_func((GDestroyNotify)sim_fetch_free);
  sim->free_timer = sim->free_fetch = sim->free_copy = sim->free_compute = NONE;
  actors_init(sim);
  return sim;
}

void sim_free(struct sim *sim)
{
  if (!sim)
    return;
  controller_free(sim->control);
  for (uint32_t s = 0; s < sim->config->servers; s++)
    gpu_server_free(sim->server[s].actor);
  for (uint32_t i = 0; i < sim->config->memory_servers; i++)
    memory_server_free(sim->memory[i].actor);
  for (uint32_t g = 0; g < sim->config->gpus; g++) {
    g_array_unref(sim->gpu[g].streams);
    g_array_unref(sim->gpu[g].running);
    sim_engine_clear(&sim->gpu[g].down);
    sim_engine_clear(&sim->gpu[g].up);
  }
  g_ptr_array_unref(sim->timers);
  g_ptr_array_unref(sim->copies);
  g_ptr_array_unref(sim->computes);
  g_ptr_array_unref(sim->fetches);
  stream_net_free(sim->net);
  event_queue_free(sim->queue);
  sim_mail_clear(sim);
  g_free(sim->server);
  g_free(sim->memory);
  g_free(sim->dead_memory);
  g_free(sim->gpu);
  g_free(sim);
}

struct world *sim_client_world(struct sim *sim)
{
  return &sim->client.world;
}

void sim_set_client(struct sim *sim, const struct actor_ops *ops, void *actor)
{
  sim->client.ops = ops;
  sim->client.actor = actor;
  sim->client.up = TRUE;
}

void sim_start(struct sim *sim)
{
  sim->controller.ops->start(sim->controller.actor);
  for (uint32_t i = 0; i < sim->config->memory_servers_at_start; i++)
    sim->memory[i].ops->start(sim->memory[i].actor);
  for (uint32_t s = 0; s < sim->config->servers_at_start; s++)
    sim->server[s].ops->start(sim->server[s].actor);
  if (sim->client.up)
    sim->client.ops->start(sim->client.actor);
}

/* --- shared helpers
 * -------------------------------------------------------------------------------------------------*/

struct port *sim_port(struct sim *sim, actor_id id)
{
  uint32_t index = ACTOR_INDEX(id);
  switch (ACTOR_KIND(id)) {
  case ACTOR_CLIENT:
    return &sim->client;
  case ACTOR_CONTROLLER:
    return &sim->controller;
  case ACTOR_GPU_SERVER:
    return &sim->server[index];
  default:
    return &sim->memory[index];
  }
}

struct sim_gpu *sim_gpu_of(struct port *port, uint32_t local)
{
  return &port->sim->gpu[port->first_gpu + local];
}

event_id sim_at(struct sim *sim, double exact_ns, enum sim_event event, uint64_t payload)
{
  return event_queue_add(sim->queue, max_i64(ns_round(exact_ns), sim->now), event, payload);
}

void sim_complete(struct port *port, op_id op, const struct completion *completion)
{
  const struct sim_watch *watch = port->sim->options.watch;
  if (watch)
    watch->ended(watch->context, port->id, op, completion);
  if (port->up)
    port->ops->completion(port->actor, completion);
}

void sim_emit(struct port *port, struct record record)
{
  if (ACTOR_KIND(port->id) == ACTOR_GPU_SERVER) {
    record.server = ACTOR_INDEX(port->id);
    if (record.gpu != NO_INDEX)
      record.gpu += port->first_gpu;
  }
  port->sim->options.record(port->sim->options.record_context, &record);
}

/* --- the loop
 * -------------------------------------------------------------------------------------------------------*/

static void deliver(struct sim *sim)
{
  struct mail mail = sim_mail_take(sim);
  struct port *port = sim_port(sim, mail.to);
  if (!port->up)
    return;
  port->ops->message(port->actor, mail.from, &mail.message);
  if (mail.message.type == MESSAGE_LEAVE && ACTOR_KIND(mail.to) == ACTOR_GPU_SERVER)
    sim_server_end(sim, port);
}

static void fire_timer(struct sim *sim, uint32_t index)
{
  struct sim_timer *timer = g_ptr_array_index(sim->timers, index);
  struct port *port = timer->port;
  uint64_t tag = timer->tag;
  timer->generation++;
  timer->event = EVENT_NONE;
  timer->next = sim->free_timer;
  sim->free_timer = index;
  if (port->up)
    port->ops->timer(port->actor, tag);
}

static void handle_event(struct sim *sim)
{
  int64_t time;
  uint32_t kind;
  uint64_t payload;
  event_queue_pop(sim->queue, &time, &kind, &payload);
  switch ((enum sim_event)kind) {
  case EV_STREAM:
    stream_net_event(sim->net, sim->now, payload);
    break;
  case EV_TIMER:
    fire_timer(sim, (uint32_t)payload);
    break;
  case EV_FETCH_START:
  case EV_FETCH_NEXT:
  case EV_FETCH_END:
    sim_fetch_event(sim, (enum sim_event)kind, (uint32_t)payload);
    break;
  case EV_COPY_READY:
  case EV_COPY_BYTES:
  case EV_COPY_END:
  case EV_COPY_FAILED:
    sim_copy_event(sim, (enum sim_event)kind, (uint32_t)payload);
    break;
  case EV_COMPUTE_READY:
  case EV_COMPUTE_FAILED:
  case EV_GPU:
    sim_compute_event(sim, (enum sim_event)kind, (uint32_t)payload);
    break;
  }
}

/* TRUE: the next thing to happen is mail. Equal times go by insertion, across queue and mail. */
static gboolean mail_is_next(struct sim *sim, int64_t *time)
{
  int64_t event = event_queue_next(sim->queue);
  const struct mail *mail = sim_mail_first(sim);
  *time = event;
  if (!mail || mail->time > event ||
      (mail->time == event && mail->sequence > event_queue_next_sequence(sim->queue)))
    return FALSE;
  *time = mail->time;
  return TRUE;
}

gboolean sim_run(struct sim *sim, int64_t until_ns)
{
  while (!sim->stopped) {
    int64_t time;
    gboolean mail = mail_is_next(sim, &time);
    if (time > sim->now && stream_net_settle(sim->net, sim->now))
      continue; /* new rates may bring events of this very instant */
    if (time > until_ns || time == TIME_NEVER)
      break;
    sim->now = time;
    sim->handled++;
    if (mail)
      deliver(sim);
    else
      handle_event(sim);
  }
  gboolean stopped = sim->stopped;
  sim->stopped = FALSE;
  if (!stopped && until_ns != TIME_NEVER)
    sim->now = until_ns;
  return !stopped;
}

void sim_stop(struct sim *sim)
{
  sim->stopped = TRUE;
}

int64_t sim_now(const struct sim *sim)
{
  return sim->now;
}

uint64_t sim_events(const struct sim *sim)
{
  return sim->handled;
}

const struct controller *sim_controller(const struct sim *sim)
{
  return sim->control;
}
