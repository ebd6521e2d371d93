/* The simulator as the harness sees it from outside: what an experiment's events change, and its meters. See
 * sim.h. */
#include "backend_sim/sim_internal.h"

/* --- changes from outside
 * -------------------------------------------------------------------------------------------*/

void sim_server_end(struct sim *sim, struct port *port)
{
  gpu_server_usage(port->actor, &port->at_end);
  port->up = FALSE;
  port->ended = sim->now;
  for (uint32_t g = 0; g < sim->config->server[ACTOR_INDEX(port->id)].gpus; g++)
    sim_gpu_failed(sim, sim_gpu_of(port, g));
  sim_fetch_port_failed(sim, port);
}

void sim_fail_gpu_server(struct sim *sim, uint32_t index)
{
  if (sim->server[index].up)
    sim_server_end(sim, &sim->server[index]);
}

void sim_fail_memory_server(struct sim *sim, uint32_t index)
{
  struct port *port = &sim->memory[index];
  port->up = FALSE;
  sim->dead_memory[index] = TRUE;
  sim_fetch_server_failed(sim, index);
  sim_fetch_port_failed(sim, port);
}

static void tell(struct sim *sim, actor_id to, const struct message *m)
{
  sim_world_ops.send(&sim->client.world, to, m);
}

static void tell_host_cache(struct sim *sim, uint32_t server)
{
  struct message m = {.type = MESSAGE_CACHE_SIZE, .cache_size = {.bytes = sim->host_cache}};
  tell(sim, ACTOR(ACTOR_GPU_SERVER, server), &m);
}

void sim_add_gpu_server(struct sim *sim, uint32_t index)
{
  sim_server_birth(sim, index);
  sim->server[index].ops->start(sim->server[index].actor);
  if (sim->host_cache_set)
    tell_host_cache(sim, index);
}

void sim_add_memory_server(struct sim *sim, uint32_t index)
{
  sim_memory_birth(sim, index);
  sim->memory[index].ops->start(sim->memory[index].actor);
}

void sim_remove(struct sim *sim, enum actor_kind kind, uint32_t index)
{
  struct message m = {.type = MESSAGE_REMOVE, .remove = {.kind = kind, .index = index}};
  tell(sim, ACTOR(ACTOR_CONTROLLER, 0), &m);
}

void sim_set_nic(struct sim *sim, double bytes_s)
{
  sim->nic = bytes_s;
  for (uint32_t s = 0; s < sim->config->servers; s++)
    stream_net_set_capacity(sim->net, sim->server[s].network, bytes_s, sim->now);
}

void sim_set_memory_nic(struct sim *sim, double bytes_s)
{
  sim->memory_nic = bytes_s;
  for (uint32_t i = 0; i < sim->config->memory_servers; i++) {
    stream_net_set_capacity(sim->net, sim->memory[i].network, bytes_s, sim->now);
    stream_net_set_capacity(sim->net, sim->memory[i].ingress, bytes_s, sim->now);
  }
}

void sim_set_pcie(struct sim *sim, double bytes_s)
{
  sim->pcie = bytes_s;
  for (uint32_t g = 0; g < sim->config->gpus; g++) {
    struct engine *engines[2] = {&sim->gpu[g].down, &sim->gpu[g].up};
    for (int i = 0; i < 2; i++) {
      stream_net_set_capacity(sim->net, engines[i]->link, bytes_s, sim->now);
      stream_net_set_capacity(sim->net, engines[i]->uplink, bytes_s, sim->now);
    }
  }
}

void sim_set_host_cache(struct sim *sim, uint64_t bytes)
{
  sim->host_cache = bytes;
  sim->host_cache_set = TRUE;
  for (uint32_t s = 0; s < sim->config->servers; s++)
    if (sim->server[s].up)
      tell_host_cache(sim, s);
}

/* --- what is seen from outside
 * --------------------------------------------------------------------------------------*/

static void add_server_usage(const struct sim *sim, uint32_t server, struct usage *usage)
{
  const struct port *port = &sim->server[server];
  struct gpu_server_usage one = port->at_end;
  if (!port->actor)
    return;
  if (port->up)
    gpu_server_usage(port->actor, &one);
  int64_t there = (port->up ? sim->now : port->ended) - port->born;
  usage->gpu_there_ns += (double)there * sim->config->server[server].gpus;
  for (int i = 0; i < LOAD_SOURCES; i++)
    usage->loads[i] += one.loads[i];
  usage->process_starts += one.process_starts;
  usage->evictions += one.evictions;
  usage->training_steps += one.training_steps;
  usage->gpu_held_ns += one.held_ns;
  usage->host_bytes += one.host_bytes;
}

uint32_t sim_gpu_servers(const struct sim *sim)
{
  uint32_t up = 0;
  for (uint32_t s = 0; s < sim->config->servers; s++)
    up += sim->server[s].up;
  return up;
}

/* Brings no account up to date: a run is the same to the last bit, however often somebody looks. */
void sim_usage(const struct sim *sim, struct usage *usage)
{
  *usage = (struct usage){.net_bytes = sim->net_bytes,
                          .pcie_bytes = sim->pcie_bytes,
                          .queue = controller_queue(sim->control),
                          .jobs_done = controller_jobs_done(sim->control),
                          .events = sim_events(sim)};
  for (uint32_t g = 0; g < sim->config->gpus; g++) {
    const struct sim_gpu *gpu = &sim->gpu[g];
    uint32_t running = gpu->running->len;
    double more = running > 0 ? MAX(0, (double)sim->now - gpu->clock) : 0;
    usage->gpu_inference_ns += gpu->inference_ns + (gpu->inference > 0 ? more : 0);
    usage->gpu_training_ns += gpu->training_ns + (running > gpu->inference ? more : 0);
    usage->gpu_any_ns += gpu->any_ns + more;
  }
  for (uint32_t s = 0; s < sim->config->servers; s++)
    add_server_usage(sim, s, usage);
  for (uint32_t i = 0; i < sim->config->memory_servers; i++)
    if (sim->memory[i].actor)
      usage->pool_bytes += memory_server_peak(sim->memory[i].actor);
}
