/* Columns of figures in tables; see report_column.h. */
#include "harness/report_column.h"

#include "core/units.h"

static double value_requests(const struct figures *f)
{
  return (double)f->requests;
}

static double value_completed(const struct figures *f)
{
  return (double)f->completed;
}

static double value_rejected(const struct figures *f)
{
  return (double)f->rejected;
}

static double value_failed(const struct figures *f)
{
  return (double)f->failed;
}

static double value_throughput(const struct figures *f)
{
  return f->throughput_rps;
}

static double value_mean(const struct figures *f)
{
  return f->latency_ms.mean;
}

static double value_p50(const struct figures *f)
{
  return f->latency_ms.p50;
}

static double value_p99(const struct figures *f)
{
  return f->latency_ms.p99;
}

static double value_slo(const struct figures *f)
{
  return 100 * f->slo_attainment;
}

static double value_gpu(const struct figures *f)
{
  return 100 * f->gpu_utilization;
}

static double value_loads(const struct figures *f)
{
  return (double)f->loads_host + (double)f->loads_ssd + (double)f->loads_remote +
         (double)f->loads_process_start;
}

static double value_net(const struct figures *f)
{
  return (double)f->net_bytes / (double)BYTES_PER_GB;
}

const struct report_column report_columns[REPORT_COLUMNS] = {
    [COLUMN_REQUESTS] = {.title = "requests", .value = value_requests, .integer = TRUE},
    [COLUMN_COMPLETED] = {.title = "completed", .value = value_completed, .integer = TRUE},
    [COLUMN_REJECTED] = {.title = "rejected", .value = value_rejected, .integer = TRUE},
    [COLUMN_FAILED] = {.title = "failed", .value = value_failed, .integer = TRUE},
    [COLUMN_THROUGHPUT] = {.title = "req/s", .value = value_throughput, .best = BEST_HIGH},
    [COLUMN_MEAN] = {.title = "mean ms", .value = value_mean, .best = BEST_LOW, .needs_completed = TRUE},
    [COLUMN_P50] = {.title = "p50 ms", .value = value_p50, .best = BEST_LOW, .needs_completed = TRUE},
    [COLUMN_P99] = {.title = "p99 ms", .value = value_p99, .best = BEST_LOW, .needs_completed = TRUE},
    [COLUMN_SLO] = {.title = "SLO %", .value = value_slo, .best = BEST_HIGH},
    [COLUMN_GPU] = {.title = "GPU %", .value = value_gpu},
    [COLUMN_LOADS] = {.title = "loads", .value = value_loads, .integer = TRUE},
    [COLUMN_NET] = {.title = "net GB", .value = value_net},
};

/* Decimals that all cells of a column share, from its largest value, so that the points stand under each
 * other. */
static const char *format_for(const struct report_column *column, const struct figures *const *figures,
                              size_t count)
{
  if (column->integer)
    return "%.0f";
  double largest = 0;
  for (size_t i = 0; i < count; i++)
    largest = MAX(largest, column->value(figures[i]));
  return largest < 10 ? "%.3f" : largest < 1000 ? "%.2f" : "%.1f";
}

gboolean report_column_known(const struct report_column *column, const struct figures *figures)
{
  return !column->needs_completed || figures->completed > 0;
}

void report_column_texts(const struct report_column *column, const struct figures *const *figures,
                         size_t count, char **texts)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE + 320]; /* room for the largest double in %.3f */
  const char *format = format_for(column, figures, count);
  for (size_t i = 0; i < count; i++)
    texts[i] = g_strdup(report_column_known(column, figures[i])
                            ? g_ascii_formatd(text, sizeof text, format, column->value(figures[i]))
                            : "-");
}
