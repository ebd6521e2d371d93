/* Azure Functions 2021: app, func, end_timestamp, duration (s). Rows are in order of start, so arrival = end
 * - duration. func is unique inside its app only: the model is app/func. */
#include "harness/trace_csv.h"

enum { APP, FUNC, END, DURATION };

static int fill(struct trace_csv *source, struct trace_row *row, GError **error)
{
  int64_t end_ns;
  if (!trace_csv_time(source, END, NS_PER_S, 0, &end_ns, error) ||
      !trace_csv_time(source, DURATION, NS_PER_S, 0, &row->service_ns, error))
    return TRACE_ERROR;
  row->arrival_ns = end_ns - row->service_ns;
  g_string_assign(source->name, trace_csv_text(source, APP));
  g_string_append_c(source->name, '/');
  g_string_append(source->name, trace_csv_text(source, FUNC));
  row->model = source->name->str;
  if (row->service_ns == 0)
    trace_quirk(&source->base.notes, "duration of 0");
  return TRACE_ROW;
}

static const struct trace_csv_layout layout = {
    .column = {"app", "func", "end_timestamp", "duration"}, .required = 4, .fill = fill};

const struct trace_format trace_azure_functions_2021 = {
    .name = "azure-functions-2021",
    .title = "Azure Functions invocations 2021 (arrival = end_timestamp - duration)",
    .kind = TRACE_REQUESTS,
    .csv = &layout,
    .detect = trace_csv_detect,
    .open = trace_csv_open,
    TRACE_CSV_SLOTS,
};
