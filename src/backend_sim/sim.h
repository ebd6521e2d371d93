/* The simulator: a virtual clock, the control network, links shared max-min fairly, PCIe, SSDs and GPUs, and
 * the actors of one run living in it. Behind world.h for the actors; to the harness it is a thing that runs
 * until told to stop.
 *
 * All of it is a function of the configuration and of what the actors do. Time starts at 0. */
#ifndef DM_SIM_H
#define DM_SIM_H

#include "core/config.h"
#include "core/controller.h"
#include "core/gpu_server.h"
#include "core/memory_server.h"
#include "core/world.h"
#include "harness/usage.h"

struct sim;

/* What its worlds can: enum world_capability. */
#define SIM_CAPABILITIES                                                                                     \
  (WORLD_SSD | WORLD_PAGEABLE | WORLD_SPACE_SHARING | WORLD_UNBOUNDED_MEMORY | WORLD_GPUDIRECT)

/* Hears what actors ask of the world, and the end of every operation before its actor does: for tests of the
 * places that they name. */
struct sim_watch {
  void *context;
  void (*fetch)(void *context, actor_id actor, op_id op, const struct fetch_spec *spec);
  void (*copy)(void *context, actor_id actor, op_id op, const struct copy_spec *spec);
  void (*compute)(void *context, actor_id actor, op_id op, const struct compute_spec *spec);
  void (*ended)(void *context, actor_id actor, op_id op, const struct completion *completion);
  void (*fill)(void *context, actor_id actor, uint32_t model, uint64_t offset, uint64_t bytes, uint32_t gpu,
               const struct ranges *place);
  void (*serve)(void *context, actor_id actor, uint32_t model, uint64_t offset, uint64_t bytes,
                const struct ranges *place);
};

struct sim_options {
  /* Added to every actor's clock (times actor-dependent small primes): results must not depend on it. 0 =
   * none. */
  int64_t clock_offset_ns;
  /* Receives every record; NULL = nobody listens. record.time_ns and gpu numbers are global. */
  void (*record)(void *context, const struct record *record);
  void *record_context;
  const struct sim_watch *watch; /* NULL = nobody watches */
};

/* config must outlive it. The controller and the servers that are there at the start exist; nothing has run.
 */
struct sim *sim_new(const struct config *config, const struct sim_options *options);
void sim_free(struct sim *sim);

/* The client is an actor of the harness. Set before sim_start. */
struct world *sim_client_world(struct sim *sim);
void sim_set_client(struct sim *sim, const struct actor_ops *ops, void *actor);
/* Calls every actor's start. */
void sim_start(struct sim *sim);

/* Handles events until the first one later than until_ns (or none is left); the clock then stands at
 * until_ns, or at the last event handled if sim_stop was called. Returns FALSE when stopped. */
gboolean sim_run(struct sim *sim, int64_t until_ns);
/* Ends the present sim_run after the present event. */
void sim_stop(struct sim *sim);
int64_t sim_now(const struct sim *sim);
uint64_t sim_events(const struct sim *sim);

/* --- changes from outside, at the present time (the harness's [events]) --- */
void sim_fail_gpu_server(struct sim *sim, uint32_t index);    /* falls silent; nothing of it goes on */
void sim_fail_memory_server(struct sim *sim, uint32_t index); /* streams from it stall */
void sim_add_gpu_server(struct sim *sim, uint32_t index);     /* index < config->servers, not there yet */
void sim_add_memory_server(struct sim *sim, uint32_t index);
void sim_remove(struct sim *sim, enum actor_kind kind, uint32_t index); /* asks the controller */
void sim_set_nic(struct sim *sim, double bytes_s);                      /* every GPU server's ingress */
void sim_set_memory_nic(struct sim *sim, double bytes_s);               /* every memory server's egress */
void sim_set_pcie(struct sim *sim, double bytes_s);
void sim_set_host_cache(struct sim *sim, uint64_t bytes); /* of servers added later too */

/* --- what is seen from outside --- */
void sim_usage(const struct sim *sim, struct usage *usage);
/* GPU servers that are there: added, and neither failed nor gone. */
uint32_t sim_gpu_servers(const struct sim *sim);
const struct controller *sim_controller(const struct sim *sim);

#endif
