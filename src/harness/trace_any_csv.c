/* Any other CSV with a header line: the user names the columns and the unit of time. Times may be dates as
 * well. */
#include "harness/trace_csv.h"

#include <string.h>

#include "core/error.h"

enum { TIME, MODEL, INPUT, OUTPUT, SERVICE };

static int fill(struct trace_csv *source, struct trace_row *row, GError **error)
{
  gboolean dated = strchr(trace_csv_text(source, TIME), ':') != NULL;
  if (!(dated ? trace_csv_timestamp(source, TIME, &row->arrival_ns, error)
              : trace_csv_time(source, TIME, source->time_unit_ns, INT64_MIN, &row->arrival_ns, error)) ||
      (*trace_csv_text(source, INPUT) && !trace_csv_tokens(source, INPUT, &row->input_tokens, error)) ||
      (*trace_csv_text(source, OUTPUT) && !trace_csv_tokens(source, OUTPUT, &row->output_tokens, error)) ||
      (*trace_csv_text(source, SERVICE) &&
       !trace_csv_time(source, SERVICE, source->time_unit_ns, 0, &row->service_ns, error)))
    return TRACE_ERROR;
  if (*trace_csv_text(source, MODEL))
    row->model = trace_csv_text(source, MODEL);
  return TRACE_ROW;
}

static struct trace_source *any_csv_open(const struct trace_format *format, const char *path,
                                         const struct trace_options *options, GError **error)
{
  double unit = options->time_unit_ns > 0 ? options->time_unit_ns : (double)NS_PER_S;
  struct trace_csv_layout layout = {
      .column = {options->time_column, options->model_column, options->input_column, options->output_column,
                 options->service_column},
      .required = TRACE_COLUMNS_MAX,
      .fill = fill,
  };
  if (!options->time_column) {
    input_error(error, path, 0, "format csv needs --time-column");
    return NULL;
  }
  if (unit != 1 && unit != NS_PER_US && unit != NS_PER_MS && unit != NS_PER_S) {
    input_error(error, path, 0, "expected a time unit of s, ms, us or ns, found %g ns", unit);
    return NULL;
  }
  struct trace_source *base = trace_csv_new(format, path, &layout, NULL, error);
  if (base)
    ((struct trace_csv *)base)->time_unit_ns = (int64_t)unit;
  return base;
}

const struct trace_format trace_any_csv = {
    .name = "csv",
    .title = "any CSV with a header line, by --time-column and friends",
    .kind = TRACE_REQUESTS,
    .open = any_csv_open,
    TRACE_CSV_SLOTS,
};
