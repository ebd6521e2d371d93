/* Experiments from text, for tests; see experiment_text.h. */
#include "experiment_text.h"

#include <criterion/criterion.h>
#include <string.h>

const char experiment_base[] = "[models]\nresnet152 = 4\n[workload]\nkind = poisson\nrate_rps = 10\n";

struct experiment *experiment_of_text(const char *text, const char *system, const char *const *sets,
                                      GError **error)
{
  g_autoptr(Keyfile) keyfile = keyfile_parse("case.ini", text, strlen(text), error);
  return keyfile ? experiment_parse(keyfile, system, (char **)sets, error) : NULL;
}

struct experiment *experiment_good(const char *more, const char *system, const char *const *sets)
{
  g_autofree char *text = g_strconcat(experiment_base, more, NULL);
  g_autoptr(GError) error = NULL;
  struct experiment *experiment = experiment_of_text(text, system, sets, &error);
  cr_assert_not_null(experiment, "%s: %s", more, error ? error->message : "");
  return experiment;
}

static void describe_kind(GString *out, const struct hardware *hardware)
{
  g_autofree char *sum =
      g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)hardware, sizeof *hardware);
  g_string_append_printf(out, "%s %s\n", hardware->name, sum);
}

static void describe_lists(GString *out, const struct experiment *e)
{
  for (uint32_t i = 0; i < e->hardware_count; i++) {
    g_autofree char *folder = g_canonicalize_filename(e->profile_dir[i], NULL);
    describe_kind(out, &e->hardware[i]);
    g_string_append_printf(out, "profiles %s\n", folder);
  }
  describe_kind(out, &e->memory_hardware);
  for (uint32_t i = 0; i < e->pools; i++)
    g_string_append_printf(out, "pool %u %u\n", e->pool[i].count, e->pool[i].hw);
  for (uint32_t i = 0; i < e->models; i++)
    g_string_append_printf(out, "model %s %u\n", e->model[i].profile, e->model[i].variants);
  for (uint32_t i = 0; i < e->active_phases; i++)
    g_string_append_printf(out, "active %" G_GINT64_FORMAT " %u\n", e->active[i].duration_ns,
                           e->active[i].slots);
  for (uint32_t i = 0; i < e->events; i++) {
    const struct experiment_event *event = &e->event[i];
    g_string_append_printf(out, "event %s %" G_GINT64_FORMAT " %d %d %u %u %s %.17g\n", event->name,
                           event->at_ns, event->kind, event->member, event->number, event->hw,
                           event->key ? event->key : "-", event->value);
  }
}

char *experiment_describe(const struct experiment *e)
{
  g_autoptr(GString) out = g_string_new(NULL);
#define TEXT(field)  g_string_append_printf(out, #field " %s\n", e->field ? e->field : "-");
#define WHOLE(field) g_string_append_printf(out, #field " %" G_GUINT64_FORMAT "\n", (guint64)e->field);
#define REAL(field)  g_string_append_printf(out, #field " %.17g\n", e->field);
  /* clang-format off */
  TEXT(name)
  TEXT(system)
  TEXT(trace_format)
  TEXT(balancer) TEXT(train_model) TEXT(train_trace_format) TEXT(requests) TEXT(timeline) WHOLE(seed)
      WHOLE(warmup_ns) WHOLE(warm) WHOLE(gpus_per_server) WHOLE(memory_servers) WHOLE(host_cache_bytes)
          WHOLE(staging_bytes) WHOLE(gpu_model_bytes) WHOLE(gpu_models_max) WHOLE(heartbeat_ns)
              WHOLE(heartbeat_misses) WHOLE(report_ns) WHOLE(ssd_copies) WHOLE(workload) WHOLE(map)
                  WHOLE(limit) WHOLE(service_from_trace) WHOLE(select) WHOLE(shift_period_ns)
                      WHOLE(outstanding) WHOLE(duration_ns) WHOLE(timeout_ns) WHOLE(max_queue)
                          WHOLE(cache_set) WHOLE(cache) WHOLE(grouping_set) WHOLE(grouping.kind)
                              WHOLE(grouping.argument) WHOLE(sharding_set) WHOLE(sharding) WHOLE(order)
                                  WHOLE(window_bytes) WHOLE(replicas) WHOLE(gpudirect)
                                      WHOLE(train_step_ns) WHOLE(train_state_bytes) WHOLE(yield_set)
                                          WHOLE(yield) WHOLE(slo_ns) WHOLE(requests_sample) WHOLE(decisions)
                                              WHOLE(usage) WHOLE(timeline_from_ns) WHOLE(timeline_to_ns)
                                                  REAL(speedup) REAL(load) REAL(zipf) REAL(rate_rps) REAL(cv)
                                                      REAL(slo_multiple)
  /* clang-format on */
#undef TEXT
#undef WHOLE
#undef REAL
                                              g_autofree char *systems = g_strjoinv(";", e->systems);
  g_autofree char *trace = e->trace ? g_canonicalize_filename(e->trace, NULL) : NULL;
  g_autofree char *jobs = e->train_trace ? g_canonicalize_filename(e->train_trace, NULL) : NULL;
  g_string_append_printf(out, "systems %s\ntrace %s\njobs %s\n", systems, trace ? trace : "-",
                         jobs ? jobs : "-");
  describe_lists(out, e);
  return g_string_free(g_steal_pointer(&out), FALSE);
}
