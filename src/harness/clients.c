/* Clients of closed loops; see clients.h. */
#include "harness/clients.h"

#include "harness/demand.h"
#include "harness/model_map.h"

struct clients {
  struct model_map *map; /* kind = closed */
  struct demand *demand; /* kind = shifting */
  uint32_t slots, count;
  uint8_t *waiting; /* [count] */
};

struct clients *clients_new(const struct setup *setup)
{
  struct clients *clients = g_new0(struct clients, 1);
  const struct experiment *e = setup->experiment;
  const struct config *config = &setup->config;
  const struct server_config *last = &config->server[config->servers_at_start - 1];
  clients->slots = last->first_gpu + last->gpus;
  clients->count = e->outstanding ? e->outstanding : clients->slots;
  clients->waiting = g_new(uint8_t, clients->count);
  for (uint32_t c = 0; c < clients->count; c++)
    clients->waiting[c] = TRUE;
  if (e->workload == WORKLOAD_SHIFTING)
    clients->demand = demand_new(setup, clients->slots);
  else
    clients->map = model_map_new(setup);
  return clients;
}

void clients_free(struct clients *clients)
{
  if (!clients)
    return;
  model_map_free(clients->map);
  demand_free(clients->demand);
  g_free(clients->waiting);
  g_free(clients);
}

uint32_t clients_count(const struct clients *clients)
{
  return clients->count;
}

gboolean clients_ask(struct clients *clients, uint32_t client, int64_t at_ns, struct client_ask *ask)
{
  int64_t until;
  uint32_t slot = client % clients->slots;
  clients->waiting[client] = clients->demand && slot >= demand_active(clients->demand, at_ns, &until);
  if (clients->waiting[client])
    return FALSE;
  if (clients->demand)
    *ask = (struct client_ask){.model = demand_model(clients->demand, slot, at_ns), .slot = slot};
  else
    *ask = (struct client_ask){.model = model_map_draw(clients->map), .slot = NO_INDEX};
  return TRUE;
}

gboolean clients_waiting(const struct clients *clients, uint32_t client)
{
  return clients->waiting[client];
}

int64_t clients_phase_end(const struct clients *clients, int64_t at_ns)
{
  int64_t until = TIME_NEVER;
  if (clients->demand)
    demand_active(clients->demand, at_ns, &until);
  return until;
}
