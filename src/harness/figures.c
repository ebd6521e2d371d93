/* The table of figures; see figures.h. */
#include "harness/figures.h"
#include "core/error.h"
#include "harness/nearest.h"

#define INTEGER(name)                                                                                        \
  {                                                                                                          \
    NULL, #name, TRUE, offsetof(struct figures, name)                                                        \
  }
#define REAL(name)                                                                                           \
  {                                                                                                          \
    NULL, #name, FALSE, offsetof(struct figures, name)                                                       \
  }
#define LATENCY(name)                                                                                        \
  {                                                                                                          \
    "latency_ms", #name, FALSE, offsetof(struct figures, latency_ms.name)                                    \
  }
#define LOADS(name)                                                                                          \
  {                                                                                                          \
    "loads", #name, TRUE, offsetof(struct figures, loads_##name)                                             \
  }

const struct figure_field figure_fields[] = {
    INTEGER(requests),
    INTEGER(completed),
    INTEGER(rejected),
    INTEGER(failed),
    REAL(duration_s),
    REAL(window_s),
    REAL(throughput_rps),
    LATENCY(mean),
    LATENCY(p50),
    LATENCY(p90),
    LATENCY(p95),
    LATENCY(p99),
    LATENCY(p999),
    LATENCY(max),
    REAL(slo_attainment),
    REAL(gpu_utilization),
    REAL(gpu_inference),
    REAL(gpu_training),
    REAL(gpu_held),
#define X(kind, text)                                                                                        \
  {"found", text, TRUE, offsetof(struct figures, found) + FOUND_##kind * sizeof(uint64_t)},
    FOUND_KINDS(X)
#undef X
        LOADS(host),
    LOADS(ssd),
    LOADS(remote),
    LOADS(process_start),
    INTEGER(net_bytes),
    INTEGER(pcie_bytes),
    INTEGER(evictions),
    INTEGER(host_memory_bytes),
    INTEGER(memory_pool_bytes),
    INTEGER(training_steps),
    INTEGER(training_jobs),
    INTEGER(events),
    REAL(wall_s),
    {NULL, NULL, FALSE, 0},
};

uint64_t figure_integer(const struct figures *figures, const struct figure_field *field)
{
  return *(const uint64_t *)(const void *)((const char *)figures + field->offset);
}

double figure_real(const struct figures *figures, const struct figure_field *field)
{
  return *(const double *)(const void *)((const char *)figures + field->offset);
}

void figure_set_integer(struct figures *figures, const struct figure_field *field, uint64_t value)
{
  *(uint64_t *)(void *)((char *)figures + field->offset) = value;
}

void figure_set_real(struct figures *figures, const struct figure_field *field, double value)
{
  *(double *)(void *)((char *)figures + field->offset) = value;
}

char *figure_column(const struct figure_field *field)
{
  return field->group ? g_strconcat(field->group, "_", field->name, NULL) : g_strdup(field->name);
}

double figure_number(const struct figures *figures, const struct figure_field *field)
{
  return field->integer ? (double)figure_integer(figures, field) : figure_real(figures, field);
}

const struct figure_field *figure_find(const char *name, const char *option, GError **error)
{
  g_autofree char *column = g_strdelimit(g_strdup(name), ".", '_');
  g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
  const struct figure_field *found = NULL;
  for (const struct figure_field *field = figure_fields; field->name && !found; field++) {
    char *known = figure_column(field);
    g_ptr_array_add(names, known);
    found = g_str_equal(known, column) ? field : NULL;
  }
  g_ptr_array_add(names, NULL);
  if (!found)
    input_error(error, option, 0, "unknown figure \"%s\"; nearest is \"%s\"", name,
                nearest_word(column, (const char *const *)names->pdata));
  return found;
}
