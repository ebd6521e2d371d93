/* What the actors of one run are told at the start: the same read-only struct for all of them, built by the
 * harness. */
#ifndef DM_CONFIG_H
#define DM_CONFIG_H

#include "core/hardware.h"
#include "core/model.h"
#include "core/plans.h"
#include "core/system.h"
#include "core/tier.h"

#define MEMORY_SERVERS_MAX 64 /* a plan names its members as bits of a u64 */
#define GPU_SERVERS_MAX    4096
#define SERVER_GPUS_MAX    64

/* One GPU server that is there from the start or may be added. */
struct server_config {
  uint32_t hw; /* index into config.hardware */
  uint32_t gpus;
  uint32_t first_gpu; /* global number of its GPU 0 */
};

struct balancer_ops;

struct config {
  const struct catalog *catalog;
  const struct system *system;
  const struct load_plans *plans;
  struct hardware hardware[CATALOG_HW_MAX];
  uint32_t hardware_count;
  struct hardware memory_hardware;

  const struct server_config *server; /* [servers] */
  uint32_t servers, servers_at_start; /* GPU servers */
  uint32_t gpus;                      /* of all of them */
  uint32_t memory_servers, memory_servers_at_start;

  uint64_t host_cache_bytes;
  uint64_t staging_bytes;   /* per GPU */
  uint64_t gpu_model_bytes; /* 0 = the GPU's memory */
  uint32_t gpu_models_max;  /* 0 = no limit */
  const struct tier_policy *host_policy;
  const struct balancer_ops *balancer;
  const uint32_t *popular; /* [models] model ids, most popular first */
  gboolean warm;           /* tiers start filled */

  enum sharding_kind sharding;
  gboolean sequential;
  gboolean gpudirect; /* RESIDENCE_POOL only: remote loads land in GPU memory, past host memory */
  uint64_t window_bytes;
  uint32_t replicas;
  uint32_t ssd_copies;

  int64_t heartbeat_ns; /* 0 = none */
  uint32_t heartbeat_misses;
  int64_t report_ns;
  int64_t timeout_ns; /* 0 = never */
  uint32_t max_queue; /* 0 = no limit */

  uint32_t train_profile; /* NO_INDEX = no training */
  int64_t train_step_ns;
  uint64_t train_state_bytes;
  gboolean train_endless; /* one job that never ends, else jobs come as messages */
  gboolean yield_layer;
  uint64_t train_burst; /* steps told at once */
};

static inline const struct hardware *config_server_hardware(const struct config *config, uint32_t server)
{
  return &config->hardware[config->server[server].hw];
}

/* Does the server's SSD hold the model? Those that are added later hold none. */
static inline gboolean config_ssd_has(const struct config *config, uint32_t server, uint32_t model)
{
  uint32_t servers = config->servers_at_start;
  return server < servers && (server + servers - model % servers) % servers < config->ssd_copies;
}

/* Limit of models on one GPU; 0 = none. Processes have a limit of their own: one model a GPU is no part of
 * MPS. */
static inline uint32_t config_models_max(const struct config *config, uint32_t hw)
{
  if (config->system->residence == RESIDENCE_PROCESS)
    return config->hardware[hw].mps_max_processes;
  return config->gpu_models_max;
}

/* Staging of each GPU: what comes straight to the GPU needs none. */
static inline uint64_t config_staging_bytes(const struct config *config)
{
  return config->gpudirect ? 0 : config->staging_bytes;
}

static inline uint64_t config_gpu_bytes(const struct config *config, uint32_t hw)
{
  return config->gpu_model_bytes ? config->gpu_model_bytes : config->hardware[hw].gpu_memory_bytes;
}

/* What a model takes of a GPU: its parameters, and its process where models live in processes. */
static inline uint64_t config_entry_bytes(const struct config *config, uint32_t hw, uint32_t model)
{
  uint64_t process =
      config->system->residence == RESIDENCE_PROCESS ? config->hardware[hw].mps_process_bytes : 0;
  return catalog_bytes(config->catalog, model) + process;
}

/* Requests that run on one GPU at once: for SHARING_BEST the fewest that reach the largest total speed. */
static inline uint32_t config_concurrency(const struct config *config, uint32_t hw)
{
  const struct hardware *h = &config->hardware[hw];
  uint32_t best = 1, most = h->mps_max_processes ? h->mps_max_processes : HARDWARE_SPEEDUPS_MAX;
  if (config->system->sharing == SHARING_EXCLUSIVE)
    return 1;
  if (config->system->sharing == SHARING_PROCESS)
    return most;
  for (uint32_t n = 2; n <= most && n <= h->mps_speedups; n++)
    if (hardware_speedup(h, n) > hardware_speedup(h, best))
      best = n;
  return best;
}

#endif
