/* From an experiment to the core's configuration; see setup.h. */
#include "harness/setup.h"

#include <string.h>

#include "core/balancer.h"
#include "core/error.h"
#include "harness/hardware_file.h"
#include "harness/profile_file.h"
#include "harness/setup_check.h"

/* Training steps told at once: enough that months of undisturbed training are few messages, and that a time
 * series of an endless trainer still shows seconds. */
#define ENDLESS_BURST_NS NS_PER_S
#define JOB_BURST_NS     (600 * NS_PER_S)

/* --- servers
 * --------------------------------------------------------------------------------------------------------*/

static void server_add(GArray *servers, const struct experiment *e, uint32_t hw)
{
  uint32_t next = 0;
  if (servers->len > 0) {
    const struct server_config *last = &g_array_index(servers, struct server_config, servers->len - 1);
    next = last->first_gpu + last->gpus;
  }
  uint32_t gpus = e->gpus_per_server ? e->gpus_per_server : e->hardware[hw].gpus_per_server;
  struct server_config server = {.hw = hw, .gpus = gpus, .first_gpu = next};
  g_array_append_val(servers, server);
}

/* Servers of the start, then those that events add, in order. */
static void servers_init(struct setup *setup)
{
  const struct experiment *e = setup->experiment;
  struct config *config = &setup->config;
  GArray *servers = g_array_new(FALSE, FALSE, sizeof(struct server_config));
  for (uint32_t p = 0; p < e->pools; p++)
    for (uint32_t i = 0; i < e->pool[p].count; i++)
      server_add(servers, e, e->pool[p].hw);
  config->servers_at_start = servers->len;
  config->memory_servers_at_start = config->memory_servers = e->memory_servers;
  for (uint32_t i = 0; i < e->events; i++) {
    const struct experiment_event *event = &e->event[i];
    if (event->kind != EVENT_ADD)
      continue;
    if (event->member == MEMBER_MEMORY_SERVER)
      config->memory_servers += event->number;
    else
      for (uint32_t n = 0; n < event->number; n++)
        server_add(servers, e, event->hw);
  }
  const struct server_config *last = &g_array_index(servers, struct server_config, servers->len - 1);
  config->servers = servers->len;
  config->gpus = last->first_gpu + last->gpus;
  setup->servers = (struct server_config *)(void *)g_array_free(servers, FALSE);
  config->server = setup->servers;
}

/* --- models
 * ---------------------------------------------------------------------------------------------------------*/

static void popular_init(struct setup *setup)
{
  const struct catalog *catalog = setup->catalog;
  uint32_t models = catalog_models(catalog), at = 0;
  setup->popular = g_new(uint32_t, MAX(1, models));
  for (uint32_t variant = 0; at < models; variant++)
    for (uint32_t p = 0; p < catalog->profiles->len; p++)
      if (variant < catalog_variants(catalog, p))
        setup->popular[at++] = g_array_index(catalog->first_model, uint32_t, p) + variant;
  setup->config.popular = setup->popular;
}

static uint64_t largest_model(const struct catalog *catalog)
{
  uint64_t bytes = 0;
  for (uint32_t m = 0; m < catalog_models(catalog); m++)
    bytes = MAX(bytes, catalog_bytes(catalog, m));
  return bytes;
}

/* --- what stands under the table
 * ------------------------------------------------------------------------------------*/

static double field_number(const struct setting *row, const struct hardware *hw)
{
  const char *at = (const char *)hw + row->offset;
  double scale = row->scale > 0 ? row->scale : 1;
  switch (row->kind) {
  case SETTING_UINT32:
    return *(const uint32_t *)(const void *)at;
  case SETTING_UINT64:
  case SETTING_BYTES:
    return (double)*(const uint64_t *)(const void *)at / scale;
  case SETTING_TIME:
    return (double)*(const int64_t *)(const void *)at / scale;
  default:
    return *(const double *)(const void *)at / scale;
  }
}

static void append_speedup(GString *out, const struct hardware *hw)
{
  g_string_append(out, "mps_speedup=");
  for (uint32_t n = 1; n == 1 || n <= MIN(hw->mps_speedups, 8); n *= 2)
    g_string_append_printf(out, "%s%.3g", n == 1 ? "" : ";", hardware_speedup(hw, n));
}

static char *constants_text(const struct setup *setup)
{
  GString *out = g_string_new(NULL);
  const struct hardware *hw = &setup->config.hardware[0];
  for (size_t i = 0; setup->config.system->constants[i]; i++) {
    const char *key = setup->config.system->constants[i];
    const struct setting *row = setting_find(hardware_settings, NULL, key);
    g_string_append(out, i ? ", " : "");
    if (strcmp(key, "mps_speedup") == 0)
      append_speedup(out, hw);
    else if (row)
      g_string_append_printf(
          out, "%s=%.6g", key,
          field_number(row, strcmp(key, "memory_nic_gbit_s") == 0 ? &setup->config.memory_hardware : hw));
  }
  return g_string_free(out, FALSE);
}

static char *notices_text(const struct setup *setup)
{
  GString *names = g_string_new(NULL);
  for (uint32_t p = 0; p < setup->catalog->profiles->len; p++) {
    const struct profile *profile = setup->catalog->profiles->pdata[p];
    for (uint32_t hw = 0; hw < setup->catalog->hw_count; hw++)
      if (profile->timing[hw].estimated)
        g_string_append_printf(names, "%s%s on %s", names->len ? ", " : "", profile->name,
                               setup->config.hardware[hw].gpu);
  }
  if (names->len)
    g_string_prepend(names, "uses estimated profiles: ");
  if (setup->config.gpudirect && setup->config.window_bytes > 0)
    g_string_append_printf(names,
                           "%spipeline.window_mb holds nothing back: with path = gpudirect, loads from the "
                           "memory pool do not wait for PCIe",
                           names->len ? "\n" : "");
  return g_string_free(names, FALSE);
}

/* --- all of it
 * ------------------------------------------------------------------------------------------------------*/

static const struct balancer_ops *choose_balancer(const struct experiment *e, const struct system *system)
{
  if (e->balancer)
    return balancer_by_name(e->balancer);
  if (e->workload == WORKLOAD_SHIFTING && system->balancer_shifting)
    return balancer_by_name(system->balancer_shifting);
  return balancer_by_name(system->balancer);
}

static gboolean training_init(struct setup *setup, GError **error)
{
  const struct experiment *e = setup->experiment;
  struct config *config = &setup->config;
  int64_t profile = -1;
  config->train_profile = NO_INDEX;
  if (!e->train_model)
    return TRUE;
  catalog_find(setup->catalog, e->train_model, &profile);
  if (profile < 0)
    return input_error(error, e->path, 0, "training.model: expected a profile, found '%s'", e->train_model);
  config->train_profile = (uint32_t)profile;
  config->train_step_ns = e->train_step_ns;
  config->train_state_bytes = e->train_state_bytes;
  config->train_endless = e->train_trace == NULL;
  config->yield_layer = e->yield_set ? e->yield == YIELD_LAYER : config->system->yield_layer;
  int64_t burst = config->train_endless ? ENDLESS_BURST_NS : JOB_BURST_NS;
  config->train_burst = (uint64_t)MAX(1, burst / MAX(1, config->train_step_ns));
  return TRUE;
}

static void policies_init(struct setup *setup, gboolean keep_heartbeats)
{
  const struct experiment *e = setup->experiment;
  struct config *config = &setup->config;
  const char *host =
      e->cache_set ? (e->cache == CACHE_LRU ? "lru" : "weighted") : config->system->host_policy;
  config->host_policy = tier_policy_by_name(host ? host : "lru");
  config->balancer = choose_balancer(e, config->system);
  config->sharding = e->sharding_set ? e->sharding : config->system->sharding;
  config->sequential = e->order == ORDER_SEQUENTIAL;
  config->gpudirect = e->gpudirect && config->system->residence == RESIDENCE_POOL;
  config->window_bytes = e->window_bytes;
  config->replicas = MAX(1, e->replicas);
  config->ssd_copies = e->ssd_copies;
  config->heartbeat_ns = keep_heartbeats ? e->heartbeat_ns : 0;
  config->heartbeat_misses = e->heartbeat_misses;
  config->report_ns = e->report_ns;
  config->timeout_ns = e->timeout_ns;
  config->max_queue = e->max_queue;
  config->warm = e->warm;
  config->gpu_model_bytes = e->gpu_model_bytes;
  config->gpu_models_max = e->gpu_models_max;
  config->host_cache_bytes = e->host_cache_bytes;
  config->staging_bytes = e->staging_bytes < 0 ? largest_model(setup->catalog) : (uint64_t)e->staging_bytes;
}

static gboolean heartbeats_check(const struct experiment *e, gboolean keep_heartbeats, GError **error)
{
  return !keep_heartbeats || e->heartbeat_ns > 0 ||
         input_error(error, e->path, 0,
                     "a fail event: expected cluster.heartbeat_ms above 0, or nobody would notice");
}

gboolean setup_readable(const struct experiment *e, gboolean keep_heartbeats, GError **error)
{
  struct catalog *catalog = catalog_load(e, error);
  gboolean good = catalog && heartbeats_check(e, keep_heartbeats, error);
  catalog_free(catalog);
  return good;
}

struct setup *setup_new(const struct experiment *e, uint32_t capabilities, gboolean keep_heartbeats,
                        GError **error)
{
  g_autoptr(Setup) setup = g_new0(struct setup, 1);
  struct config *config = &setup->config;
  setup->experiment = e;
  config->system = system_by_name(e->system);
  setup->catalog = catalog_load(e, error);
  if (!setup->catalog)
    return NULL;
  config->catalog = setup->catalog;
  config->hardware_count = e->hardware_count;
  memcpy(config->hardware, e->hardware, sizeof config->hardware);
  config->memory_hardware = e->memory_hardware;
  servers_init(setup);
  popular_init(setup);
  policies_init(setup, keep_heartbeats);
  const struct grouping_policy *grouping = e->grouping_set ? &e->grouping : &config->system->grouping;
  setup->plans = load_plans_new(setup->catalog, config->hardware, &config->memory_hardware,
                                config->memory_servers_at_start, config->sharding, config->sequential,
                                config->gpudirect, grouping);
  config->plans = setup->plans;
  if (!heartbeats_check(e, keep_heartbeats, error) || !training_init(setup, error) ||
      !setup_check(setup, capabilities, error))
    return NULL;
  setup->constants = constants_text(setup);
  setup->notices = notices_text(setup);
  return g_steal_pointer(&setup);
}

void setup_free(struct setup *setup)
{
  if (!setup)
    return;
  load_plans_free(setup->plans);
  catalog_free(setup->catalog);
  g_free(setup->servers);
  g_free(setup->popular);
  g_free(setup->constants);
  g_free(setup->notices);
  g_free(setup);
}
