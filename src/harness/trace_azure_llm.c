/* Azure LLM inference traces of 2023 and 2024: TIMESTAMP, ContextTokens, GeneratedTokens. No model: the file
 * is the service. 2023 writes seven fractional digits and no zone, 2024 up to six and an offset. */
#include "harness/trace_csv.h"

enum { TIMESTAMP, CONTEXT, GENERATED };

static int fill(struct trace_csv *source, struct trace_row *row, GError **error)
{
  if (!trace_csv_timestamp(source, TIMESTAMP, &row->arrival_ns, error) ||
      !trace_csv_tokens(source, CONTEXT, &row->input_tokens, error) ||
      !trace_csv_tokens(source, GENERATED, &row->output_tokens, error))
    return TRACE_ERROR;
  return TRACE_ROW;
}

static const struct trace_csv_layout layout = {
    .column = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, .required = 3, .fill = fill};

const struct trace_format trace_azure_llm = {
    .name = "azure-llm",
    .title = "Azure LLM inference 2023 and 2024",
    .kind = TRACE_REQUESTS,
    .csv = &layout,
    .detect = trace_csv_detect,
    .open = trace_csv_open,
    TRACE_CSV_SLOTS,
};
