/* `trace info`: the summary of a trace as a table and as JSON; see trace_info.h. */
#include "harness/trace_info.h"

#include <math.h>

#include "harness/json_writer.h"
#include "harness/shown.h"
#include "harness/trace_format.h"

#define TOP_MODELS  10u
#define LABEL_WIDTH 20

static const char *const kind_names[] = {
    [TRACE_REQUESTS] = "requests", [TRACE_JOBS] = "jobs", [TRACE_NODES] = "nodes"};

/* 1234567 as 1,234,567. Free with g_free. */
static char *with_commas(uint64_t value)
{
  g_autofree char *digits = g_strdup_printf("%" G_GUINT64_FORMAT, value);
  GString *text = g_string_new(digits);
  for (gssize at = (gssize)text->len - 3; at > 0; at -= 3)
    g_string_insert_c(text, at, ',');
  return g_string_free(text, FALSE);
}

static void G_GNUC_PRINTF(3, 4) line(GString *out, const char *label, const char *format, ...)
{
  va_list args;
  g_string_append_printf(out, "  %-*s", LABEL_WIDTH, label);
  va_start(args, format);
  g_string_append_vprintf(out, format, args);
  va_end(args);
  g_string_append_c(out, '\n');
}

static void count_line(GString *out, const char *label, uint64_t value)
{
  g_autofree char *text = with_commas(value);
  line(out, label, "%s", text);
}

/* Seconds with the larger unit that a reader would ask for beside them. */
static void span_line(GString *out, int64_t span_ns)
{
  double seconds = (double)span_ns / NS_PER_S;
  if (seconds >= 2 * 86400)
    line(out, "span", "%.3f s (%.1f days)", seconds, seconds / 86400);
  else if (seconds >= 2 * 3600)
    line(out, "span", "%.3f s (%.1f hours)", seconds, seconds / 3600);
  else if (seconds >= 120)
    line(out, "span", "%.3f s (%.1f minutes)", seconds, seconds / 60);
  else
    line(out, "span", "%.3f s", seconds);
}

static void arrival_lines(const struct trace_summary *summary, GString *out)
{
  span_line(out, summary->span_ns);
  count_line(out, "distinct times", summary->distinct_times);
  line(out, "mean rate", "%.4g a second", summary->mean_rate_rps);
  line(out, "peak rate", "%" G_GUINT64_FORMAT " in a second, %" G_GUINT64_FORMAT " in a minute",
       summary->peak_second, summary->peak_minute);
  if (!isnan(summary->gap_cv))
    line(out, "burstiness", "cv %.3f of inter-arrival times (Poisson 1), index %+.3f (Poisson 0)",
         summary->gap_cv, summary->burstiness);
}

static void model_lines(const struct trace_summary *summary, GString *out)
{
  if (summary->models->len == 0) {
    line(out, "models", "none named");
    return;
  }
  count_line(out, summary->kind == TRACE_NODES ? "GPU models" : "models", summary->models->len);
  if (summary->apps)
    count_line(out, "apps", summary->apps);
  if (summary->models_uncounted)
    count_line(out, "rows of more models", summary->models_uncounted);
  if (!isnan(summary->zipf) && summary->kind != TRACE_NODES)
    line(out, "popularity", "Zipf exponent %.2f", summary->zipf);
  for (unsigned i = 0; i < MIN(summary->models->len, TOP_MODELS); i++) {
    const struct trace_model *model = &g_array_index(summary->models, struct trace_model, i);
    g_autofree char *clean = g_strescape(model->name, NULL);
    g_autofree char *rows = with_commas(model->rows);
    if (summary->kind == TRACE_NODES)
      line(out, "", "%9s nodes  %7.0f GPUs  %s", rows, model->gpus, clean);
    else
      line(out, "", "%9s  %5.1f%%  %s", rows, 100 * (double)model->rows / (double)summary->rows, clean);
  }
}

static void quantity_lines(const struct trace_summary *summary, GString *out)
{
  gboolean header = FALSE;
  for (int i = 0; i < QUANTITIES; i++) {
    const struct trace_quantity *quantity = &summary->quantity[i];
    if (histogram_count(quantity->histogram) == 0)
      continue;
    if (!header)
      line(out, "", "%12s %12s %12s %12s %12s", "mean", "p50", "p90", "p99", "max");
    header = TRUE;
    line(out, quantity->name, "%12.6g %12.6g %12.6g %12.6g %12.9g", quantity->mean, quantity->p50,
         quantity->p90, quantity->p99, quantity->max);
  }
}

void trace_info_table(const struct trace_summary *summary, const struct trace_reader *reader,
                      const char *path, GString *out)
{
  g_autoptr(GPtrArray) notices = trace_notices(reader);
  g_autofree char *shown = shown_text(path);
  g_string_append_printf(out, "%s: %s, format %s\n", shown, kind_names[summary->kind], summary->format);
  count_line(out, "rows", summary->rows);
  count_line(out, "skipped", trace_rows_skipped(reader));
  if (summary->kind == TRACE_NODES)
    line(out, "GPUs", "%.0f", summary->gpus);
  else
    arrival_lines(summary, out);
  model_lines(summary, out);
  quantity_lines(summary, out);
  if (summary->kind == TRACE_JOBS)
    line(out, "GPU hours", "%.1f", summary->gpu_hours);
  for (unsigned i = 0; i < notices->len; i++)
    line(out, i ? "" : "met", "%s", (const char *)notices->pdata[i]);
}

static void json_notices(struct json_writer *json, const struct trace_reader *reader)
{
  const struct trace_counter *reason = trace_skip_reasons(reader);
  g_autoptr(GPtrArray) quirks = trace_quirks(reader);
  json_object_at(json, "skipped");
  for (unsigned i = 0; i < TRACE_COUNTERS_MAX && reason[i].text; i++)
    json_integer_at(json, reason[i].text, reason[i].count);
  json_object_close(json);
  json_array_at(json, "quirks");
  for (unsigned i = 0; i < quirks->len; i++)
    json_string(json, quirks->pdata[i]);
  json_array_close(json);
}

static void json_arrivals(struct json_writer *json, const struct trace_summary *summary)
{
  json_real_at(json, "span_s", (double)summary->span_ns / NS_PER_S);
  json_integer_at(json, "distinct_times", summary->distinct_times);
  json_real_at(json, "mean_rate_rps", summary->mean_rate_rps);
  json_integer_at(json, "peak_second", summary->peak_second);
  json_integer_at(json, "peak_minute", summary->peak_minute);
  json_real_at(json, "gap_cv", summary->gap_cv);
  json_real_at(json, "burstiness", summary->burstiness);
}

static void json_models(struct json_writer *json, const struct trace_summary *summary)
{
  json_integer_at(json, "models", summary->models->len);
  if (summary->apps)
    json_integer_at(json, "apps", summary->apps);
  if (summary->kind != TRACE_NODES)
    json_real_at(json, "zipf", summary->zipf);
  json_array_at(json, "top_models");
  for (unsigned i = 0; i < MIN(summary->models->len, TOP_MODELS); i++) {
    const struct trace_model *model = &g_array_index(summary->models, struct trace_model, i);
    json_object_open(json);
    json_string_at(json, "model", model->name);
    json_integer_at(json, "rows", model->rows);
    if (summary->kind == TRACE_NODES)
      json_real_at(json, "gpus", model->gpus);
    json_object_close(json);
  }
  json_array_close(json);
}

static void json_quantities(struct json_writer *json, const struct trace_summary *summary)
{
  for (int i = 0; i < QUANTITIES; i++) {
    const struct trace_quantity *quantity = &summary->quantity[i];
    if (histogram_count(quantity->histogram) == 0)
      continue;
    json_object_at(json, quantity->name);
    json_real_at(json, "mean", quantity->mean);
    json_real_at(json, "p50", quantity->p50);
    json_real_at(json, "p90", quantity->p90);
    json_real_at(json, "p99", quantity->p99);
    json_real_at(json, "max", quantity->max);
    json_object_close(json);
  }
}

void trace_info_json(const struct trace_summary *summary, const struct trace_reader *reader, const char *path,
                     GString *out)
{
  g_autoptr(JsonWriter) json = json_writer_new();
  json_object_open(json);
  json_string_at(json, "file", path);
  json_string_at(json, "format", summary->format);
  json_string_at(json, "kind", kind_names[summary->kind]);
  json_integer_at(json, "rows", summary->rows);
  json_integer_at(json, "rows_skipped", trace_rows_skipped(reader));
  json_notices(json, reader);
  if (summary->kind != TRACE_NODES)
    json_arrivals(json, summary);
  json_models(json, summary);
  json_quantities(json, summary);
  if (summary->kind == TRACE_JOBS)
    json_real_at(json, "gpu_hours", summary->gpu_hours);
  if (summary->kind == TRACE_NODES)
    json_real_at(json, "gpus", summary->gpus);
  json_object_close(json);
  g_autofree char *text = json_writer_text(json);
  g_string_append(out, text);
  if (out->len && out->str[out->len - 1] != '\n')
    g_string_append_c(out, '\n');
}
