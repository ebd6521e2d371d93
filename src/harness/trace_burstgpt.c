/* BurstGPT 1 to 3: Timestamp (s), Model, Request tokens, Response tokens, …; 3 inserts columns, so they are
 * read by name. A request with 0 response tokens failed: it is skipped. */
#include "harness/trace_csv.h"

enum { TIMESTAMP, MODEL, REQUEST, RESPONSE };

static int fill(struct trace_csv *source, struct trace_row *row, GError **error)
{
  if (!trace_csv_time(source, TIMESTAMP, NS_PER_S, 0, &row->arrival_ns, error) ||
      !trace_csv_tokens(source, REQUEST, &row->input_tokens, error) ||
      !trace_csv_tokens(source, RESPONSE, &row->output_tokens, error))
    return TRACE_ERROR;
  if (row->output_tokens == 0)
    return trace_skip(&source->base.notes, "failed request (0 response tokens)");
  row->model = trace_csv_text(source, MODEL);
  return TRACE_ROW;
}

static const struct trace_csv_layout layout = {
    .column = {"Timestamp", "Model", "Request tokens", "Response tokens"}, .required = 4, .fill = fill};

const struct trace_format trace_burstgpt = {
    .name = "burstgpt",
    .title = "BurstGPT 1 to 3 (failed requests are skipped)",
    .kind = TRACE_REQUESTS,
    .csv = &layout,
    .detect = trace_csv_detect,
    .open = trace_csv_open,
    TRACE_CSV_SLOTS,
};
