/* The simulator as the harness sees it from outside: what an experiment's events change, and its meters. See
 * sim.h. */
#include "backend_sim/sim_internal.h"

/* --- changes from outside
 * -------------------------------------------------------------------------------------------*/

void sim_fail_gpu_server(struct sim *sim, uint32_t index)
{
  struct port *port = &sim->server[index];
  if (!port->up)
    return;
  gpu_server_usage(port->actor, &port->at_failure);
  port->failed = TRUE;
  port->up = FALSE;
  for (uint32_t g = 0; g < sim->config->server[index].gpus; g++)
    sim_gpu_failed(sim, sim_gpu_of(port, g));
  sim_fetch_port_failed(sim, port);
}

void sim_fail_memory_server(struct sim *sim, uint32_t index)
{
  struct port *port = &sim->memory[index];
  port->up = FALSE;
  sim->dead_memory[index] = TRUE;
  sim_fetch_server_failed(sim, index);
  sim_fetch_port_failed(sim, port);
}

void sim_add_gpu_server(struct sim *sim, uint32_t index)
{
  sim_server_birth(sim, index);
  sim->server[index].ops->start(sim->server[index].actor);
}

void sim_add_memory_server(struct sim *sim, uint32_t index)
{
  sim_memory_birth(sim, index);
  sim->memory[index].ops->start(sim->memory[index].actor);
}

static void tell(struct sim *sim, actor_id to, const struct message *m)
{
  sim_world_ops.send(&sim->client.world, to, m);
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
  struct message m = {.type = MESSAGE_CACHE_SIZE, .cache_size = {.bytes = bytes}};
  for (uint32_t s = 0; s < sim->config->servers; s++)
    tell(sim, ACTOR(ACTOR_GPU_SERVER, s), &m);
}

/* --- what is seen from outside
 * --------------------------------------------------------------------------------------*/

static void add_server_usage(struct sim *sim, uint32_t server, struct sim_usage *usage)
{
  struct gpu_server_usage one;
  if (!sim->server[server].actor)
    return;
  if (sim->server[server].failed)
    one = sim->server[server].at_failure;
  else
    gpu_server_usage(sim->server[server].actor, &one);
  for (int i = 0; i < LOAD_SOURCES; i++)
    usage->loads[i] += one.loads[i];
  usage->process_starts += one.process_starts;
  usage->evictions += one.evictions;
  usage->training_steps += one.training_steps;
  usage->gpu_held_ns += one.held_ns;
  usage->host_bytes += one.host_bytes;
}

void sim_usage(struct sim *sim, struct sim_usage *usage)
{
  *usage = (struct sim_usage){.net_bytes = sim->net_bytes,
                              .pcie_bytes = sim->pcie_bytes,
                              .queue = controller_queue(sim->control),
                              .jobs_done = controller_jobs_done(sim->control)};
  for (uint32_t g = 0; g < sim->config->gpus; g++) {
    struct sim_gpu *gpu = &sim->gpu[g];
    sim_gpu_account(gpu, (double)sim->now);
    usage->gpu_inference_ns += gpu->inference_ns;
    usage->gpu_training_ns += gpu->training_ns;
    usage->gpu_any_ns += gpu->any_ns;
  }
  for (uint32_t s = 0; s < sim->config->servers; s++)
    add_server_usage(sim, s, usage);
  for (uint32_t i = 0; i < sim->config->memory_servers; i++)
    if (sim->memory[i].actor)
      usage->pool_bytes += memory_server_peak(sim->memory[i].actor);
}
