/* Addresses in the two memories of a GPU server: each GPU's, which its tier shares out, and the server's host
 * memory. Host memory holds, one after the other: the training state that each GPU has put aside, each GPU's
 * staging, and last, so that it can grow, the host cache or (RESIDENCE_HOST) every model. */
#include "core/gpu_server_internal.h"

static uint64_t align_up(uint64_t bytes)
{
  return arena_bytes(bytes, 0);
}

/* Of the models of the run, those without bytes apart; 0: there is none. extra: bytes that each takes more.
 */
static uint64_t smallest_model(const struct catalog *catalog, uint64_t extra)
{
  uint64_t smallest = 0;
  for (uint32_t p = 0; p < catalog->profiles->len; p++) {
    const struct profile *profile = g_ptr_array_index(catalog->profiles, p);
    uint64_t bytes = profile->param_bytes + extra;
    if (catalog_variants(catalog, p) > 0 && bytes > 0 && (smallest == 0 || bytes < smallest))
      smallest = bytes;
  }
  return smallest;
}

static uint64_t smallest_entry(const struct config *config, uint32_t hw)
{
  gboolean process = config->system->residence == RESIDENCE_PROCESS;
  return smallest_model(config->catalog, process ? config->hardware[hw].mps_process_bytes : 0);
}

static gboolean has_cache(const struct config *config)
{
  return config->system->residence == RESIDENCE_POOL || config->system->residence == RESIDENCE_SSD;
}

static uint64_t state_bytes(const struct config *config)
{
  return config->train_profile == NO_INDEX ? 0 : align_up(config->train_state_bytes);
}

/* A fetch takes a model or all of the staging; of one model there is a fetch for each GPU that loads it, at
 * the worst, and one that nobody uses any more but that has not ended. */
static uint64_t staging_bytes(const struct config *config, uint32_t server)
{
  uint64_t staging = config_staging_bytes(config), least = MIN(staging, smallest_model(config->catalog, 0));
  uint64_t entries = (uint64_t)catalog_models(config->catalog) * (config->server[server].gpus + 1);
  if (!has_cache(config))
    return 0;
  return arena_bytes(staging, least > 0 ? MIN(entries, staging / least) : 0);
}

static uint64_t cache_bytes(const struct config *config)
{
  uint32_t models = catalog_models(config->catalog);
  return has_cache(config)
             ? tier_memory_bytes(config->host_cache_bytes, 0, models, smallest_model(config->catalog, 0))
             : 0;
}

static uint64_t home_bytes(const struct config *config)
{
  uint64_t bytes = 0;
  if (config->system->residence != RESIDENCE_HOST)
    return 0;
  for (uint32_t p = 0; p < config->catalog->profiles->len; p++) {
    const struct profile *profile = g_ptr_array_index(config->catalog->profiles, p);
    bytes += catalog_variants(config->catalog, p) * align_up(profile->param_bytes);
  }
  return bytes;
}

uint64_t gpu_server_host_bytes(const struct config *config, uint32_t server)
{
  uint64_t of_gpu = state_bytes(config) + staging_bytes(config, server);
  return config->server[server].gpus * of_gpu + cache_bytes(config) + home_bytes(config);
}

uint64_t gpu_server_gpu_bytes(const struct config *config, uint32_t server)
{
  uint32_t hw = config->server[server].hw;
  if (config->system->residence == RESIDENCE_EVERYWHERE)
    return 0;
  return tier_memory_bytes(config_gpu_bytes(config, hw), config_models_max(config, hw),
                           catalog_models(config->catalog), smallest_entry(config, hw));
}

static void home_init(struct gpu_server *s, uint64_t base)
{
  const struct catalog *catalog = s->config->catalog;
  if (s->config->system->residence != RESIDENCE_HOST)
    return;
  s->home = g_new(uint64_t, catalog->profiles->len);
  for (uint32_t p = 0; p < catalog->profiles->len; p++) {
    const struct profile *profile = g_ptr_array_index(catalog->profiles, p);
    s->home[p] = base;
    base += catalog_variants(catalog, p) * align_up(profile->param_bytes);
  }
}

void places_init(struct gpu_server *s)
{
  const struct config *config = s->config;
  uint64_t base = 0, state = state_bytes(config), staging = staging_bytes(config, s->index);
  for (uint32_t g = 0; g < s->gpus; g++, base += state) {
    s->gpu[g].state = (struct range){.offset = base, .length = config->train_state_bytes};
    if (s->gpu[g].memory)
      tier_place_from(s->gpu[g].memory, 0, smallest_entry(config, s->hw));
  }
  for (uint32_t g = 0; has_cache(config) && g < s->gpus; g++, base += staging)
    s->gpu[g].staging = arena_new(base, staging);
  if (s->host)
    tier_place_from(s->host, base, smallest_model(config->catalog, 0));
  home_init(s, base);
}

const struct ranges *places_home(const struct gpu_server *s, uint32_t model, struct home *home)
{
  const struct model *m = catalog_model(s->config->catalog, model);
  uint64_t bytes = catalog_bytes(s->config->catalog, model);
  home->range = (struct range){.offset = s->home[m->profile] + m->variant * align_up(bytes), .length = bytes};
  home->ranges = (struct ranges){.range = &home->range, .count = bytes > 0, .room = 1};
  return &home->ranges;
}
