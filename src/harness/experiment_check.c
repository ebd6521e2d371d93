/* What the values of an experiment demand of each other; see experiment_parts.h. */
#include "harness/experiment_parts.h"

#include <string.h>

#include "harness/nearest.h"
#include "harness/trace.h"

/* Systems whose models live in the memory pool. */
static const char *const pool_systems[] = {"distmind", NULL};

static gboolean check_format(const char *format, const char *section, const struct layers *layers,
                             GError **error)
{
  const char *const *known = trace_formats();
  if (format && (g_str_equal(format, "auto") || g_strv_contains(known, format)))
    return TRUE;
  return layers_error(layers, section, "format", error,
                      "%s.format: expected auto or a layout, found \"%s\"; nearest is \"%s\"", section,
                      format ? format : "none", nearest_word(format ? format : "none", known));
}

static gboolean check_trace(const struct experiment *experiment, const struct layers *layers, GError **error)
{
  if (experiment->workload == WORKLOAD_TRACE && !experiment->trace)
    return layers_error(layers, "workload", "kind", error,
                        "kind = trace: expected workload.trace = FILE (or --trace FILE)");
  return check_format(experiment->trace_format, "workload", layers, error) &&
         check_format(experiment->train_trace_format, "training", layers, error);
}

/* What happens again and again may not do so without end between two other events. */
static gboolean check_period(int64_t period_ns, const char *section, const char *key,
                             const struct layers *layers, GError **error)
{
  return period_ns == 0 || period_ns >= NS_PER_US ||
         layers_error(layers, section, key, error, "%s.%s: expected 0 or at least a microsecond, found %d ns",
                      section, key, (int)period_ns);
}

static gboolean check_periods(const struct experiment *experiment, const struct layers *layers,
                              GError **error)
{
  return check_period(experiment->shift_period_ns, "workload", "shift_period_s", layers, error) &&
         check_period(experiment->heartbeat_ns, "cluster", "heartbeat_ms", layers, error) &&
         check_period(experiment->report_ns, "cluster", "report_ms", layers, error);
}

static gboolean check_workload(struct experiment *experiment, const struct layers *layers, GError **error)
{
  gboolean open = experiment->workload == WORKLOAD_POISSON || experiment->workload == WORKLOAD_GAMMA;
  if (open && !(experiment->rate_rps > 0))
    return layers_error(layers, "workload", layers_find(layers, "workload", "rate_rps") ? "rate_rps" : "kind",
                        error, "kind = %s: expected workload.rate_rps above 0",
                        experiment->workload == WORKLOAD_POISSON ? "poisson" : "gamma");
  if (experiment->duration_ns == 0 && experiment->workload != WORKLOAD_TRACE)
    return layers_error(layers, "workload", "duration_s", error,
                        "workload.duration_s: expected above 0 (0, the trace's end, needs kind = trace)");
  if (experiment->duration_ns && experiment->warmup_ns >= experiment->duration_ns)
    return layers_error(layers, "experiment", "warmup_s", error,
                        "experiment.warmup_s: expected below workload.duration_s");
  if (experiment->workload == WORKLOAD_CLOSED && experiment->outstanding == 0)
    experiment->outstanding = 1;
  return check_trace(experiment, layers, error);
}

static uint32_t server_gpus(const struct experiment *experiment, uint32_t hw)
{
  return experiment->gpus_per_server ? experiment->gpus_per_server : experiment->hardware[hw].gpus_per_server;
}

static gboolean check_active(const struct experiment *experiment, const struct layers *layers, GError **error)
{
  uint32_t gpus = 0, most = 0;
  for (uint32_t i = 0; i < experiment->pools; i++)
    gpus += experiment->pool[i].count * server_gpus(experiment, experiment->pool[i].hw);
  for (uint32_t i = 0; i < experiment->active_phases; i++)
    most = MAX(most, experiment->active[i].slots);
  if (experiment->workload == WORKLOAD_SHIFTING && most > gpus)
    return layers_error(layers, "workload", "active", error,
                        "workload.active: expected at most %u slots, one a GPU, found %u", gpus, most);
  return TRUE;
}

static gboolean check_memory(const struct experiment *experiment, const struct layers *layers, GError **error)
{
  for (uint32_t i = 0; i < experiment->hardware_count; i++) {
    const struct hardware *hardware = &experiment->hardware[i];
    if (experiment->host_cache_bytes > hardware->host_memory_bytes)
      return layers_error(layers, "cluster", "host_cache_gb", error,
                          "cluster.host_cache_gb: expected at most host_memory_gb = %g of hardware \"%s\"",
                          (double)hardware->host_memory_bytes / BYTES_PER_GB, hardware->name);
    if (experiment->gpu_model_bytes > hardware->gpu_memory_bytes)
      return layers_error(layers, "cluster", "gpu_model_gb", error,
                          "cluster.gpu_model_gb: expected at most gpu_memory_gb = %g of hardware \"%s\"",
                          (double)hardware->gpu_memory_bytes / BYTES_PER_GB, hardware->name);
  }
  return TRUE;
}

static gboolean check_pool(const struct experiment *experiment, const struct layers *layers, GError **error)
{
  if (experiment->memory_servers == 0 && g_strv_contains(pool_systems, experiment->system))
    return layers_error(layers, "cluster", "memory_servers", error,
                        "system \"%s\": expected cluster.memory_servers above 0", experiment->system);
  if (experiment->memory_servers && experiment->replicas > experiment->memory_servers)
    return layers_error(layers, "pipeline", "replicas", error,
                        "pipeline.replicas: expected at most cluster.memory_servers = %u, found %u",
                        experiment->memory_servers, experiment->replicas);
  return TRUE;
}

static gboolean check_training(const struct experiment *experiment, const struct layers *layers,
                               GError **error)
{
  const char *key = experiment->train_model ? "model" : "trace";
  if (!experiment->train_model && !experiment->train_trace)
    return TRUE;
  if (experiment->train_model && (strchr(experiment->train_model, '/') || *experiment->train_model == '.'))
    return layers_error(layers, "training", "model", error,
                        "training.model: expected the name of a profile, found \"%s\"",
                        experiment->train_model);
  if (experiment->train_step_ns == 0)
    return layers_error(layers, "training", key, error,
                        "[training] with a %s: expected training.batch_ms above 0", key);
  return TRUE;
}

static gboolean check_output(const struct experiment *experiment, const struct layers *layers, GError **error)
{
  if (experiment->timeline_to_ns && experiment->timeline_to_ns <= experiment->timeline_from_ns)
    return layers_error(layers, "output", "timeline_to_s", error,
                        "output.timeline_to_s: expected 0 or above timeline_from_s");
  if (experiment->slo_ns == 0 && experiment->slo_multiple == 0)
    return layers_error(layers, "slo", "multiple", error, "[slo]: expected multiple or absolute_ms above 0");
  return TRUE;
}

gboolean draft_check(struct draft *draft, const struct layers *layers, GError **error)
{
  struct experiment *experiment = &draft->experiment;
  if (!check_workload(experiment, layers, error) || !check_active(experiment, layers, error) ||
      !check_memory(experiment, layers, error) || !check_pool(experiment, layers, error) ||
      !check_training(experiment, layers, error) || !check_output(experiment, layers, error) ||
      !check_periods(experiment, layers, error))
    return FALSE;
  if (experiment->slo_ns)
    experiment->slo_multiple = 0;
  return TRUE;
}
