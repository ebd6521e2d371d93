/* Shared part of the CSV trace layouts; see trace_csv.h. */
#include "harness/trace_csv.h"

#include <math.h>
#include <string.h>

#include "core/error.h"
#include "harness/decimal.h"

#define GPU_MILLIONTHS 1000000LL

static gboolean find_columns(struct trace_csv *source, GError **error)
{
  for (unsigned i = 0; i < TRACE_COLUMNS_MAX; i++) {
    const char *name = source->layout.column[i];
    source->column[i] = name ? csv_column(source->csv, name) : -1;
    if (name && source->column[i] < 0 && i < source->layout.required) {
      g_autofree char *header = csv_header_text(source->csv);
      return input_error(error, source->base.path, 1, "expected a column '%s' (%s), found the header '%s'",
                         name, source->base.format->name, header);
    }
    if (name && csv_columns_named(source->csv, name) > 1)
      return input_error(error, source->base.path, 1, "expected one column '%s', found %u", name,
                         csv_columns_named(source->csv, name));
  }
  return TRUE;
}

struct trace_source *trace_csv_new(const struct trace_format *format, const char *path,
                                   const struct trace_csv_layout *layout, const char *const *header,
                                   GError **error)
{
  struct csv *csv = csv_open(path, error);
  if (!csv)
    return NULL;
  struct trace_csv *source = g_new0(struct trace_csv, 1);
  source->base.format = format;
  source->base.path = g_strdup(path);
  source->base.kind = format->kind;
  source->csv = csv;
  source->layout = *layout;
  source->name = g_string_new(NULL);
  source->time_unit_ns = NS_PER_S;
  if (header)
    csv_set_header(csv, header);
  if ((!header && !csv_read_header(csv, error)) || !find_columns(source, error)) {
    trace_csv_close(&source->base);
    return NULL;
  }
  return &source->base;
}

gboolean trace_csv_detect(const struct trace_format *format, const struct trace_probe *probe)
{
  if (!probe->columns)
    return FALSE;
  for (unsigned i = 0; i < format->csv->required; i++)
    if (!g_strv_contains((const char *const *)probe->columns, format->csv->column[i]))
      return FALSE;
  return TRUE;
}

struct trace_source *trace_csv_open(const struct trace_format *format, const char *path,
                                    const struct trace_options *options, GError **error)
{
  (void)options;
  return trace_csv_new(format, path, format->csv, NULL, error);
}

void trace_csv_close(struct trace_source *base)
{
  struct trace_csv *source = (struct trace_csv *)base;
  csv_close(source->csv);
  g_string_free(source->name, TRUE);
  g_free(base->notes.detail);
  g_free(base->path);
  g_free(source);
}

static void note_quirks(struct trace_csv *source)
{
  static const struct {
    enum csv_quirk quirk;
    const char *text;
  } texts[] = {
      {CSV_QUIRK_CRLF, "lines end with CR LF"},
      {CSV_QUIRK_NO_FINAL_NEWLINE, "no newline at the end of the file"},
      {CSV_QUIRK_BOM, "byte order mark"},
      {CSV_QUIRK_QUOTES, "quoted fields"},
      {CSV_QUIRK_EMPTY_LINES, "empty lines"},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
    if (csv_quirks(source->csv) & texts[i].quirk)
      trace_quirk_once(&source->base.notes, texts[i].text);
}

int trace_csv_next(struct trace_source *base, struct trace_row *row, GError **error)
{
  struct trace_csv *source = (struct trace_csv *)base;
  int got;
  while ((got = csv_next(source->csv, error)) > 0) {
    got = source->layout.fill(source, row, error);
    row->line = csv_line(source->csv);
    if (got != TRACE_SKIP)
      return got;
  }
  if (got == 0)
    note_quirks(source);
  return got;
}

gboolean trace_csv_rewind(struct trace_source *base, GError **error)
{
  return csv_rewind(((struct trace_csv *)base)->csv, error);
}

gboolean trace_csv_has(const struct trace_csv *source, unsigned column)
{
  return source->column[column] >= 0;
}

const char *trace_csv_text(const struct trace_csv *source, unsigned column)
{
  return source->column[column] >= 0 ? csv_text(source->csv, (unsigned)source->column[column]) : "";
}

static size_t field_length(const struct trace_csv *source, unsigned column)
{
  return source->column[column] >= 0 ? csv_length(source->csv, (unsigned)source->column[column]) : 0;
}

gboolean trace_csv_wrong(const struct trace_csv *source, unsigned column, const char *expected,
                         GError **error)
{
  g_autofree char *found = found_text(trace_csv_text(source, column));
  return input_error(error, source->base.path, csv_line(source->csv), "column '%s': expected %s, found %s",
                     source->layout.column[column], expected, found);
}

gboolean trace_csv_integer(const struct trace_csv *source, unsigned column, int64_t min, int64_t max,
                           int64_t *value, GError **error)
{
  const char *text = trace_csv_text(source, column);
  if (!strpbrk(text, ".eE") && decimal_scaled(text, field_length(source, column), 1, value) &&
      *value >= min && *value <= max)
    return TRUE;
  g_autofree char *expected =
      g_strdup_printf("a whole number from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, min, max);
  return trace_csv_wrong(source, column, expected, error);
}

gboolean trace_csv_tokens(const struct trace_csv *source, unsigned column, int64_t *value, GError **error)
{
  return trace_csv_integer(source, column, 0, TRACE_TOKENS_MAX, value, error);
}

gboolean trace_csv_time(const struct trace_csv *source, unsigned column, int64_t unit_ns, int64_t min_ns,
                        int64_t *ns, GError **error)
{
  if (decimal_scaled(trace_csv_text(source, column), field_length(source, column), unit_ns, ns) &&
      *ns >= min_ns)
    return TRUE;
  return trace_csv_wrong(
      source, column,
      min_ns >= 0 ? "a time that is not negative, as a decimal number" : "a time as a decimal number", error);
}

gboolean trace_csv_timestamp(const struct trace_csv *source, unsigned column, int64_t *ns, GError **error)
{
  if (timestamp_ns(trace_csv_text(source, column), field_length(source, column), ns, NULL))
    return TRUE;
  return trace_csv_wrong(source, column, "a time like 2023-11-16 18:17:03.9799600", error);
}

gboolean trace_csv_gpus(const struct trace_csv *source, unsigned column, double *value, GError **error)
{
  int64_t millionths;
  if (!decimal_scaled(trace_csv_text(source, column), field_length(source, column), GPU_MILLIONTHS,
                      &millionths) ||
      millionths < 0 || millionths > TRACE_GPUS_MAX * GPU_MILLIONTHS)
    return trace_csv_wrong(source, column, "a number of GPUs from 0 to 1000000", error);
  *value = (double)millionths / (double)GPU_MILLIONTHS;
  return TRUE;
}
