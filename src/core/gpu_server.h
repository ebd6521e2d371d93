/* A GPU server: its GPUs' queues and memories, its host cache and staging, loads and their coalescing, its
 * trainers.
 *
 * An actor of world.h. Requests of one GPU are secured (their model is there or being loaded) and run in
 * order of arrival; the loads of requests that wait run ahead while memory allows. */
#ifndef DM_GPU_SERVER_H
#define DM_GPU_SERVER_H

#include "core/config.h"
#include "core/record.h"
#include "core/world.h"

struct gpu_server;

struct gpu_server *gpu_server_new(const struct config *config, uint32_t index, struct world *world);
void gpu_server_free(struct gpu_server *server);
extern const struct actor_ops gpu_server_actor;

/* How large its host memory and the memory of each of its GPUs must be for the places that it names. */
uint64_t gpu_server_host_bytes(const struct config *config, uint32_t server);
uint64_t gpu_server_gpu_bytes(const struct config *config, uint32_t server);

/* What it did so far; times up to now on its own clock. */
struct gpu_server_usage {
  uint64_t loads[LOAD_SOURCES], process_starts, evictions;
  uint64_t evicted[REASON_COUNT]; /* evictions by reason: SPACE, LIMIT, CACHE_SPACE, SHRUNK */
  uint64_t training_steps, training_lost;
  double held_ns;      /* sum over the GPUs of the time with a request on it, computing or waiting */
  uint64_t host_bytes; /* provisioned at most: cache and staging, or all models */
};
void gpu_server_usage(const struct gpu_server *server, struct gpu_server_usage *usage);

/* What is on one of its GPUs now. */
struct gpu_state {
  uint64_t used_bytes, limit_bytes; /* of models and what is held beside them; 0, 0: every model is there */
  uint32_t models;                  /* there or on their way */
  uint32_t waiting, running;        /* requests */
  uint32_t loads[LOAD_SOURCES];     /* under way */
};
void gpu_server_gpu_state(const struct gpu_server *server, uint32_t gpu, struct gpu_state *state);

struct cache_state {
  uint64_t used_bytes, limit_bytes;
  uint32_t models;
};
/* FALSE: this system has no host cache. */
gboolean gpu_server_cache_state(const struct gpu_server *server, struct cache_state *state);

#endif
