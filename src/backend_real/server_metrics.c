/* A server's metrics; see server_metrics.h. */
#include "backend_real/server_metrics.h"

#include "backend_real/metrics_text.h"
#include "backend_real/server.h"
#include "core/gpu_server.h"
#include "core/memory_server.h"

static gboolean is_gpu_server(const struct server *s)
{
  return s->options->kind == ACTOR_GPU_SERVER;
}

/* With those of the run that is on. */
static struct server_totals totals(const struct server *s)
{
  struct server_totals t = s->before;
  struct usage usage = {0};
  struct gpu_server_usage gpu;
  struct real_usage world;
  struct transport_state shelf = {0};
  if (!s->actor)
    return t;
  s->kind->usage(s, &usage);
  usage_add(&t.usage, &usage);
  if (is_gpu_server(s)) {
    gpu_server_usage(s->actor, &gpu);
    for (uint32_t i = 0; i < REASON_COUNT; i++)
      t.evicted[i] += gpu.evicted[i];
    real_world_usage(s->rw, &world);
    t.ssd_bytes += world.ssd_bytes;
  } else {
    if (s->transport->shelf_state)
      s->transport->shelf_state(s->shelf, &shelf);
    t.sent_bytes += s->transport->shelf_bytes(s->shelf);
    t.refused += shelf.refused;
  }
  return t;
}

void server_metrics_keep(struct server *s)
{
  s->before = totals(s);
}

/* --- both kinds
 * ----------------------------------------------------------------------------------------------------------*/

static void network(const struct server *s, const struct server_totals *t, GString *text)
{
  struct transport_state reader = {0}, shelf = {0};
  if (s->actor)
    real_world_reader_state(s->rw, &reader);
  if (s->shelf && s->transport->shelf_state)
    s->transport->shelf_state(s->shelf, &shelf);
  metric_single(text, "distmind_network_receive_bytes_total", METRIC_COUNTER,
                "Bytes of models read from memory servers.", (double)t->usage.net_bytes);
  if (!is_gpu_server(s))
    metric_single(text, "distmind_network_transmit_bytes_total", METRIC_COUNTER,
                  "Bytes of models sent to those who read this memory server.", (double)t->sent_bytes);
  metric_family(text, "distmind_data_connections", METRIC_GAUGE,
                "Connections of the data plane: those that this server opened, those that it serves.");
  metric_sample(text, "distmind_data_connections", reader.connections, "end", "reader", NULL);
  if (is_gpu_server(s))
    return;
  metric_sample(text, "distmind_data_connections", shelf.connections, "end", "shelf", NULL);
  metric_single(text, "distmind_data_connections_refused_total", METRIC_COUNTER,
                "Data connections closed for want of a good ticket.", (double)t->refused);
}

/* --- a GPU server
 * ----------------------------------------------------------------------------------------------------------*/

static const char *const source_names[LOAD_SOURCES] = {
    [SOURCE_HOST] = "host", [SOURCE_REMOTE] = "remote", [SOURCE_SSD] = "ssd"};

static void gpu_counters(const struct server_totals *t, GString *text)
{
  static const struct {
    enum record_reason reason;
    const char *name;
  } reasons[] = {{REASON_SPACE, "gpu_space"},
                 {REASON_LIMIT, "gpu_models_limit"},
                 {REASON_CACHE_SPACE, "cache_space"},
                 {REASON_SHRUNK, "cache_shrunk"}};
  metric_family(text, "distmind_loads_total", METRIC_COUNTER, "Loads of models onto a GPU done, by source.");
  for (uint32_t i = 0; i < LOAD_SOURCES; i++)
    metric_sample(text, "distmind_loads_total", (double)t->usage.loads[i], "source", source_names[i], NULL);
  metric_family(text, "distmind_evictions_total", METRIC_COUNTER,
                "Models that left a GPU or the host cache, by reason.");
  for (uint32_t i = 0; i < G_N_ELEMENTS(reasons); i++)
    metric_sample(text, "distmind_evictions_total", (double)t->evicted[reasons[i].reason], "reason",
                  reasons[i].name, NULL);
  metric_single(text, "distmind_pcie_bytes_total", METRIC_COUNTER, "Bytes that crossed PCIe, both ways.",
                (double)t->usage.pcie_bytes);
  metric_single(text, "distmind_ssd_read_bytes_total", METRIC_COUNTER,
                "Bytes of models read from the local SSD.", (double)t->ssd_bytes);
  metric_family(text, "distmind_gpu_busy_seconds_total", METRIC_COUNTER,
                "Time that the GPUs computed, summed over them, by the device's clock.");
  metric_sample(text, "distmind_gpu_busy_seconds_total", t->usage.gpu_inference_ns / 1e9, "work", "inference",
                NULL);
  metric_sample(text, "distmind_gpu_busy_seconds_total", t->usage.gpu_training_ns / 1e9, "work", "training",
                NULL);
  metric_single(text, "distmind_gpu_held_seconds_total", METRIC_COUNTER,
                "Time that the GPUs had a request, computing or waiting, summed over them.",
                t->usage.gpu_held_ns / 1e9);
  metric_single(text, "distmind_training_steps_total", METRIC_COUNTER, "Training steps done.",
                (double)t->usage.training_steps);
}

static void cache_gauges(const struct server *s, GString *text)
{
  struct cache_state cache = {0};
  if (s->actor)
    gpu_server_cache_state(s->actor, &cache);
  metric_single(text, "distmind_host_cache_used_bytes", METRIC_GAUGE, "Bytes of models in the host cache.",
                (double)cache.used_bytes);
  metric_single(text, "distmind_host_cache_limit_bytes", METRIC_GAUGE, "Bytes that the host cache may have.",
                (double)cache.limit_bytes);
  metric_single(text, "distmind_host_cache_models", METRIC_GAUGE, "Models in the host cache.", cache.models);
}

enum { GPU_USED, GPU_LIMIT, GPU_MODELS, GPU_WAITING, GPU_RUNNING, GPU_GAUGES };

static double gpu_gauge(const struct gpu_state *state, uint32_t gauge)
{
  const double value[GPU_GAUGES] = {[GPU_USED] = (double)state->used_bytes,
                                    [GPU_LIMIT] = (double)state->limit_bytes,
                                    [GPU_MODELS] = state->models,
                                    [GPU_WAITING] = state->waiting,
                                    [GPU_RUNNING] = state->running};
  return value[gauge];
}

/* No sample while no run is on: there are no GPUs then. */
static void gpu_gauges(const struct server *s, GString *text)
{
  static const struct {
    const char *name, *help;
  } gauges[GPU_GAUGES] = {
      [GPU_USED] = {"distmind_gpu_memory_used_bytes", "Bytes of models in a GPU's memory, or on their way."},
      [GPU_LIMIT] = {"distmind_gpu_memory_limit_bytes", "Bytes of models that a GPU's memory may have."},
      [GPU_MODELS] = {"distmind_gpu_models", "Models in a GPU's memory, or on their way."},
      [GPU_WAITING] = {"distmind_gpu_requests_waiting", "Requests in a GPU's queue."},
      [GPU_RUNNING] = {"distmind_gpu_requests_running", "Requests that a GPU computes."}};
  uint32_t gpus = s->actor ? s->setup->config.server[s->options->index].gpus : 0;
  struct gpu_state state;
  char gpu[16];
  for (uint32_t i = 0; i < GPU_GAUGES; i++) {
    metric_family(text, gauges[i].name, METRIC_GAUGE, gauges[i].help);
    for (uint32_t g = 0; g < gpus; g++) {
      gpu_server_gpu_state(s->actor, g, &state);
      g_snprintf(gpu, sizeof gpu, "%u", g);
      metric_sample(text, gauges[i].name, gpu_gauge(&state, i), "gpu", gpu, NULL);
    }
  }
  metric_family(text, "distmind_loads_in_flight", METRIC_GAUGE, "Loads under way, by source.");
  for (uint32_t source = 0; source < LOAD_SOURCES; source++) {
    uint32_t loads = 0;
    for (uint32_t g = 0; g < gpus; g++) {
      gpu_server_gpu_state(s->actor, g, &state);
      loads += state.loads[source];
    }
    metric_sample(text, "distmind_loads_in_flight", loads, "source", source_names[source], NULL);
  }
}

void server_metrics(void *context, GString *text)
{
  const struct server *s = context;
  struct server_totals t = totals(s);
  metrics_process(text, ACTOR(s->options->kind, s->options->index), s->actor ? s->spec.run : 0);
  network(s, &t, text);
  metric_single(text, "distmind_host_arena_bytes", METRIC_GAUGE, "Host memory taken for the run.",
                (double)s->memory.bytes);
  if (is_gpu_server(s)) {
    gpu_counters(&t, text);
    gpu_gauges(s, text);
    cache_gauges(s, text);
  } else {
    metric_single(text, "distmind_pool_held_bytes", METRIC_GAUGE, "Bytes of shards that are held here.",
                  s->actor ? (double)memory_server_held(s->actor) : 0);
  }
}
