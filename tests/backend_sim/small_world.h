/* A small cluster built directly in C, and a client that sends requests at given times and notes the answers:
 * what the tests of closed forms run. Nothing is read from files; every overhead is zero and every tier cold
 * until a test says otherwise. */
#ifndef DM_SMALL_WORLD_H
#define DM_SMALL_WORLD_H

#include "backend_sim/sim.h"

#define SMALL_SERVERS_MAX  8
#define SMALL_MODELS_MAX   64
#define SMALL_REQUESTS_MAX 4096

struct small_request {
  int64_t at_ns, answered_ns; /* answered_ns < 0: not yet */
  int64_t service_ns;         /* 0 = the profile's */
  uint32_t model;
  uint32_t answers; /* must be 1 in the end */
  struct message_answer answer;
};

struct small_world {
  /* Set these between small_world_new and small_world_start. */
  struct config config; /* config.hardware[0] and config.memory_hardware among them */
  struct grouping_policy grouping;
  struct sim_options options;
  uint32_t servers, gpus_per_server, memory_servers;
  uint32_t servers_later, memory_servers_later; /* numbers that may be added in mid-run */
  uint32_t kind[SMALL_SERVERS_MAX];             /* of each server: index into config.hardware */

  struct catalog *catalog;
  struct load_plans *plans;
  struct server_config server[SMALL_SERVERS_MAX];
  uint32_t popular[SMALL_MODELS_MAX];
  struct sim *sim;
  struct world *client;
  struct small_request *request; /* [SMALL_REQUESTS_MAX] in order of at_ns */
  uint32_t requests, sent, answered;
};

/* One server with one GPU, four memory servers, all rates set (net 10, memory 4, PCIe 8, SSD 2, pageable 3
 * and 1 GB/s). */
struct small_world *small_world_new(const char *system);
void small_world_free(struct small_world *w);

/* As many kinds of GPU server, each a copy of the first as it is now; before any model is added. */
void small_world_kinds(struct small_world *w, uint32_t kinds);
/* Adds variants of a profile; returns the first model id. compute_ns: of each layer, times the kind's
 * compute_scale. */
uint32_t small_world_model(struct small_world *w, uint32_t layers, const uint64_t *bytes,
                           const double *compute_ns, uint32_t variants);
struct profile *small_world_profile(struct small_world *w, uint32_t model);
/* The groups in which a load from source moves the model. */
const struct grouping *small_world_grouping(const struct small_world *w, uint32_t model,
                                            enum load_source source);

/* Times must not go back. Returns the request's index. */
uint32_t small_world_request(struct small_world *w, int64_t at_ns, uint32_t model);
/* Builds the plans; what the configuration says of memory may still be changed. */
void small_world_plan(struct small_world *w);
/* Builds plans and simulator; the actors have started. */
void small_world_start(struct small_world *w);
/* Starts if need be and runs until every request is answered, or until_ns. */
void small_world_run(struct small_world *w, int64_t until_ns);
/* Starts if need be and runs up to the time, whatever has been answered. */
void small_world_until(struct small_world *w, int64_t until_ns);
int64_t small_world_latency(const struct small_world *w, uint32_t request);

#endif
