/* What no run can do; see setup_check.h. */
#include "harness/setup_check.h"

#include "core/error.h"
#include "core/world.h"

/* A million models of a petabyte are more than 64 bits count. */
static uint64_t add_bytes(uint64_t a, uint64_t b)
{
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t all_models(const struct catalog *catalog)
{
  uint64_t bytes = 0;
  for (uint32_t m = 0; m < catalog_models(catalog); m++)
    bytes = add_bytes(bytes, catalog_bytes(catalog, m));
  return bytes;
}

static gboolean refuse(const struct setup *setup, GError **error, const char *what, double needs, double has)
{
  return input_error(error, setup->experiment->path, 0, "system %s: %s: needs %.3f GB, there are %.3f GB",
                     setup->config.system->name, what, needs / 1e9, has / 1e9);
}

static gboolean check_gpu(const struct setup *setup, GError **error)
{
  const struct config *config = &setup->config;
  if (config->system->residence == RESIDENCE_EVERYWHERE)
    return TRUE;
  for (uint32_t hw = 0; hw < config->hardware_count; hw++)
    for (uint32_t m = 0; m < catalog_models(config->catalog); m++) {
      uint64_t needs = config_entry_bytes(config, hw, m), has = config_gpu_bytes(config, hw);
      if (needs <= has)
        continue;
      g_autofree char *name = catalog_model_name(config->catalog, m);
      g_autofree char *what = g_strdup_printf("GPU memory for %s on %s", name, config->hardware[hw].name);
      return refuse(setup, error, what, (double)needs, (double)has);
    }
  return TRUE;
}

/* A trainer's state must fit on the GPU: it gives way to a model that does not fit beside it. */
static gboolean check_training(const struct setup *setup, GError **error)
{
  const struct config *config = &setup->config;
  if (config->train_profile == NO_INDEX || config->system->residence == RESIDENCE_EVERYWHERE)
    return TRUE;
  for (uint32_t hw = 0; hw < config->hardware_count; hw++) {
    double needs = (double)config->train_state_bytes, has = (double)config_gpu_bytes(config, hw);
    g_autofree char *what =
        g_strdup_printf("training.state_gb in GPU memory of %s", config->hardware[hw].name);
    if (needs > has)
      return refuse(setup, error, what, needs, has);
  }
  return TRUE;
}

/* The largest host cache that there will be. */
static uint64_t most_cache(const struct experiment *e)
{
  double most = (double)e->host_cache_bytes;
  for (uint32_t i = 0; i < e->events; i++)
    if (e->event[i].kind == EVENT_SET && g_str_has_suffix(e->event[i].key, ".host_cache_gb"))
      most = MAX(most, e->event[i].value * BYTES_PER_GB);
  return (uint64_t)(most + 0.5);
}

static gboolean check_host(const struct setup *setup, GError **error)
{
  const struct config *config = &setup->config;
  for (uint32_t s = 0; s < config->servers; s++) {
    const struct hardware *hw = config_server_hardware(config, s);
    uint64_t needs = 0;
    if (config->system->residence == RESIDENCE_HOST)
      needs = all_models(config->catalog);
    else if (config->system->residence == RESIDENCE_POOL || config->system->residence == RESIDENCE_SSD)
      needs = most_cache(setup->experiment) + config->server[s].gpus * config_staging_bytes(config);
    if (needs > hw->host_memory_bytes)
      return refuse(setup, error, "host memory of a GPU server", (double)needs,
                    (double)hw->host_memory_bytes);
  }
  return TRUE;
}

static gboolean check_pool(const struct setup *setup, GError **error)
{
  const struct config *config = &setup->config;
  uint32_t n = config->memory_servers_at_start;
  if (config->system->residence != RESIDENCE_POOL)
    return TRUE;
  if (n == 0 || config->memory_servers > MEMORY_SERVERS_MAX)
    return input_error(error, setup->experiment->path, 0,
                       "system %s: expected 1 to %d memory servers, found %u", config->system->name,
                       MEMORY_SERVERS_MAX, n == 0 ? n : config->memory_servers);
  if (config->replicas > n)
    return input_error(error, setup->experiment->path, 0,
                       "expected replicas of at most %u (memory servers), found %u", n, config->replicas);
  struct pool_plan *plan =
      pool_plan_new(setup->plans, config->sharding, 1, n >= 64 ? UINT64_MAX : (1ULL << n) - 1);
  uint64_t most = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t bytes = 0;
    for (uint32_t m = 0; m < catalog_models(config->catalog); m++)
      bytes = add_bytes(bytes, pool_plan_bytes(plan, config->catalog, m, i, config->replicas));
    most = MAX(most, bytes);
  }
  pool_plan_free(plan);
  uint64_t has = config->memory_hardware.host_memory_bytes;
  return most <= has || refuse(setup, error, "shards of one memory server", (double)most, (double)has);
}

static gboolean check_ssd(const struct setup *setup, GError **error)
{
  const struct config *config = &setup->config;
  if (config->system->residence != RESIDENCE_SSD)
    return TRUE;
  for (uint32_t s = 0; s < config->servers_at_start; s++) {
    uint64_t bytes = 0;
    for (uint32_t m = 0; m < catalog_models(config->catalog); m++)
      if (config_ssd_has(config, s, m))
        bytes = add_bytes(bytes, catalog_bytes(config->catalog, m));
    uint64_t has = config_server_hardware(config, s)->ssd_bytes;
    if (bytes > has)
      return refuse(setup, error, "SSD of a GPU server", (double)bytes, (double)has);
  }
  return TRUE;
}

static gboolean check_staging(const struct setup *setup, GError **error)
{
  const struct config *config = &setup->config;
  if (!config->system->pipelined || config->system->residence == RESIDENCE_HOST || config->gpudirect)
    return TRUE;
  enum load_source source = config->system->residence == RESIDENCE_SSD ? SOURCE_SSD : SOURCE_REMOTE;
  for (uint32_t p = 0; p < setup->plans->profiles; p++)
    for (uint32_t hw = 0; hw < config->hardware_count; hw++) {
      const struct grouping *grouping = load_plan(setup->plans, p, hw, source)->grouping;
      const struct profile *profile = config->catalog->profiles->pdata[p];
      uint64_t largest = 0;
      for (uint32_t j = 0; j < grouping->groups; j++)
        largest = MAX(largest, grouping->bytes[j]);
      g_autofree char *what =
          g_strdup_printf("staging for the largest group of %s (smaller groups need less)", profile->name);
      if (catalog_variants(config->catalog, p) > 0 && largest > config->staging_bytes)
        return refuse(setup, error, what, (double)largest, (double)config->staging_bytes);
    }
  return TRUE;
}

static gboolean check_needs(const struct setup *setup, uint32_t capabilities, GError **error)
{
  static const struct {
    uint32_t bit;
    const char *text;
  } names[] = {{WORLD_SSD, "an SSD tier"},
               {WORLD_PAGEABLE, "pageable copies"},
               {WORLD_SPACE_SHARING, "GPUs shared in space"},
               {WORLD_UNBOUNDED_MEMORY, "unbounded memory"}};
  if (setup->config.gpudirect && !(capabilities & WORLD_GPUDIRECT))
    return input_error(
        error, setup->experiment->path, 0,
        "pipeline.path: expected host, found gpudirect: no network writes into GPU memory in this "
        "world");
  for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
    if (setup->config.system->needs & names[i].bit & ~capabilities)
      return input_error(error, setup->experiment->path, 0, "system %s needs %s, which this world lacks",
                         setup->config.system->name, names[i].text);
  return TRUE;
}

gboolean setup_check(const struct setup *setup, uint32_t capabilities, GError **error)
{
  if (setup->config.servers > GPU_SERVERS_MAX)
    return input_error(error, setup->experiment->path, 0, "expected at most %d GPU servers, found %u",
                       GPU_SERVERS_MAX, setup->config.servers);
  if (catalog_models(setup->catalog) == 0)
    return input_error(error, setup->experiment->path, 0, "expected a model in [models], found none");
  return check_needs(setup, capabilities, error) && check_gpu(setup, error) && check_host(setup, error) &&
         check_pool(setup, error) && check_ssd(setup, error) && check_staging(setup, error) &&
         check_training(setup, error);
}
