/* One pass over a trace for `trace info`; see trace_summary.h. */
#include "harness/trace_summary.h"

#include <math.h>
#include <string.h>
#include <gsl/gsl_math.h>

#include "core/error.h"

#define ZIPF_RANKS_MAX    10000u
#define ZIPF_EXPONENT_MAX 20.0
#define NS_PER_HOUR       (3600.0 * NS_PER_S)
#define MILLI             1000.0

/* Arrivals in the window of `width` seconds at hand. */
struct window {
  int64_t width_ns, index;
  uint64_t count, peak;
};

/* State of the pass that the summary does not keep. */
struct pass {
  int64_t last_ns;
  double gap_mean, gap_m2; /* Welford's running mean and sum of squares */
  struct window second, minute;
  GHashTable *index; /* name (owned by the summary's models) -> index + 1 */
};

static void window_add(struct window *window, int64_t arrival_ns)
{
  int64_t index = arrival_ns / window->width_ns;
  window->count = index == window->index ? window->count + 1 : 1;
  window->index = index;
  window->peak = MAX(window->peak, window->count);
}

static void add_arrival(struct trace_summary *summary, struct pass *pass, int64_t arrival_ns)
{
  if (summary->rows > 0) {
    double gap = (double)(arrival_ns - pass->last_ns), delta = gap - pass->gap_mean;
    pass->gap_mean += delta / (double)summary->rows;
    pass->gap_m2 += delta * (gap - pass->gap_mean);
  }
  summary->distinct_times += summary->rows == 0 || arrival_ns != pass->last_ns;
  pass->last_ns = arrival_ns;
  window_add(&pass->second, arrival_ns);
  window_add(&pass->minute, arrival_ns);
  summary->rows++;
}

static void add_model(struct trace_summary *summary, struct pass *pass, const struct trace_row *row)
{
  guint slot = GPOINTER_TO_UINT(g_hash_table_lookup(pass->index, row->model));
  if (slot == 0) {
    if (summary->models->len == TRACE_MODELS_MAX) {
      summary->models_uncounted++;
      return;
    }
    struct trace_model model = {.name = g_strdup(row->model)};
    g_array_append_val(summary->models, model);
    slot = summary->models->len;
    g_hash_table_insert(pass->index, model.name, GUINT_TO_POINTER(slot));
  }
  struct trace_model *model = &g_array_index(summary->models, struct trace_model, slot - 1);
  model->rows++;
  model->gpus += row->gpus > 0 ? row->gpus : 0;
}

static void add_quantity(struct trace_quantity *quantity, int64_t value)
{
  if (value >= 0)
    histogram_add(quantity->histogram, value);
}

static void add_row(struct trace_summary *summary, struct pass *pass, const struct trace_row *row)
{
  struct trace_quantity *quantity = summary->quantity;
  add_arrival(summary, pass, row->arrival_ns);
  if (row->model)
    add_model(summary, pass, row);
  add_quantity(&quantity[QUANTITY_INPUT], row->input_tokens);
  add_quantity(&quantity[QUANTITY_OUTPUT], row->output_tokens);
  add_quantity(&quantity[QUANTITY_SERVICE], row->service_ns);
  add_quantity(&quantity[QUANTITY_DURATION], row->duration_ns);
  if (row->gpus < 0)
    return;
  add_quantity(&quantity[QUANTITY_GPUS], (int64_t)(row->gpus * MILLI + 0.5));
  summary->gpus += row->gpus;
  if (row->duration_ns > 0)
    summary->gpu_hours += row->gpus * ((double)row->duration_ns / NS_PER_HOUR);
}

static gint by_rows(gconstpointer a, gconstpointer b)
{
  const struct trace_model *left = a, *right = b;
  if (left->rows != right->rows)
    return left->rows < right->rows ? 1 : -1;
  return strcmp(left->name, right->name);
}

double zipf_fit(const uint64_t *counts, unsigned n)
{
  double total = 0, mean_log = 0, low = 0, high = ZIPF_EXPONENT_MAX;
  n = MIN(n, ZIPF_RANKS_MAX);
  if (n < 2)
    return GSL_NAN;
  for (unsigned i = 0; i < n; i++) {
    total += (double)counts[i];
    mean_log += (double)counts[i] * log((double)i + 1);
  }
  mean_log /= total;
  /* The likelihood is greatest where the expected log rank equals the mean one; the former falls as the
   * exponent grows. */
  for (int step = 0; step < 40; step++) {
    double middle = (low + high) / 2, weights = 0, logs = 0;
    for (unsigned i = 0; i < n; i++) {
      double log_rank = log((double)i + 1), weight = exp(-middle * log_rank);
      weights += weight;
      logs += weight * log_rank;
    }
    if (logs / weights > mean_log)
      low = middle;
    else
      high = middle;
  }
  return (low + high) / 2;
}

static uint64_t count_apps(const GArray *models)
{
  g_autoptr(GHashTable) apps = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  for (unsigned i = 0; i < models->len; i++) {
    const char *name = g_array_index(models, struct trace_model, i).name, *slash = strrchr(name, '/');
    if (!slash)
      return 0;
    g_hash_table_add(apps, g_strndup(name, (gsize)(slash - name)));
  }
  return g_hash_table_size(apps);
}

static void finish_models(struct trace_summary *summary)
{
  g_array_sort(summary->models, by_rows);
  g_autofree uint64_t *counts = g_new(uint64_t, summary->models->len);
  for (unsigned i = 0; i < summary->models->len; i++)
    counts[i] = g_array_index(summary->models, struct trace_model, i).rows;
  summary->zipf = zipf_fit(counts, summary->models->len);
  summary->apps = count_apps(summary->models);
}

/* GPUs come in round numbers: three digits take the histogram's half bucket away (8.001 is 8). */
static double three_digits(double value)
{
  double unit = 0.01;
  while (value >= 1000 * unit)
    unit *= 10;
  return floor(value / unit + 0.5) * unit;
}

static void finish_quantity(struct trace_quantity *quantity)
{
  const struct histogram *histogram = quantity->histogram;
  /* The histogram's own figures are of nanoseconds in ms. */
  struct latency_figures figures = histogram_figures(histogram);
  quantity->mean = figures.mean * NS_PER_MS / quantity->scale;
  quantity->max = figures.max * NS_PER_MS / quantity->scale;
  quantity->p50 = (double)histogram_quantile(histogram, 0.5) / quantity->scale;
  quantity->p90 = (double)histogram_quantile(histogram, 0.9) / quantity->scale;
  quantity->p99 = (double)histogram_quantile(histogram, 0.99) / quantity->scale;
}

static void finish_summary(struct trace_summary *summary, const struct pass *pass)
{
  uint64_t gaps = summary->rows - 1;
  summary->span_ns = pass->last_ns;
  if (pass->last_ns > 0)
    summary->mean_rate_rps = (double)summary->rows / ((double)pass->last_ns / NS_PER_S);
  summary->peak_second = pass->second.peak;
  summary->peak_minute = pass->minute.peak;
  summary->gap_cv =
      gaps >= 2 && pass->gap_mean > 0 ? sqrt(pass->gap_m2 / (double)(gaps - 1)) / pass->gap_mean : GSL_NAN;
  summary->burstiness = (summary->gap_cv - 1) / (summary->gap_cv + 1);
  finish_models(summary);
  for (int i = 0; i < QUANTITIES; i++)
    finish_quantity(&summary->quantity[i]);
  struct trace_quantity *gpus = &summary->quantity[QUANTITY_GPUS];
  gpus->p50 = three_digits(gpus->p50);
  gpus->p90 = three_digits(gpus->p90);
  gpus->p99 = three_digits(gpus->p99);
}

static struct trace_summary *summary_new(const struct trace_reader *reader)
{
  static const struct trace_quantity quantities[QUANTITIES] = {
      [QUANTITY_INPUT] = {.name = "input_tokens", .scale = 1},
      [QUANTITY_OUTPUT] = {.name = "output_tokens", .scale = 1},
      [QUANTITY_SERVICE] = {.name = "service_ms", .scale = NS_PER_MS},
      [QUANTITY_GPUS] = {.name = "num_gpu", .scale = MILLI},
      [QUANTITY_DURATION] = {.name = "duration_s", .scale = NS_PER_S},
  };
  struct trace_summary *summary = g_new0(struct trace_summary, 1);
  summary->kind = trace_kind(reader);
  summary->format = trace_format_name(reader);
  summary->models = g_array_new(FALSE, FALSE, sizeof(struct trace_model));
  for (int i = 0; i < QUANTITIES; i++) {
    summary->quantity[i] = quantities[i];
    summary->quantity[i].histogram = histogram_new();
  }
  return summary;
}

struct trace_summary *trace_summarise(struct trace_reader *reader, GError **error)
{
  struct trace_summary *summary = summary_new(reader);
  struct pass pass = {.second.width_ns = NS_PER_S, .minute.width_ns = 60 * NS_PER_S};
  struct trace_row row;
  int got;
  pass.index = g_hash_table_new(g_str_hash, g_str_equal);
  while ((got = trace_next(reader, &row, error)) > 0)
    add_row(summary, &pass, &row);
  g_hash_table_unref(pass.index);
  if (got < 0) {
    trace_summary_free(summary);
    return NULL;
  }
  finish_summary(summary, &pass);
  return summary;
}

void trace_summary_free(struct trace_summary *summary)
{
  if (!summary)
    return;
  for (unsigned i = 0; i < summary->models->len; i++)
    g_free(g_array_index(summary->models, struct trace_model, i).name);
  g_array_unref(summary->models);
  for (int i = 0; i < QUANTITIES; i++)
    histogram_free(summary->quantity[i].histogram);
  g_free(summary);
}
