/* The project's own CSV: arrival_s and, each optional, model, input_tokens, output_tokens, service_s. A file
 * that has num_gpu and duration_s as well is a trace of jobs. Empty fields are absent values. */
#include "harness/trace_csv.h"

enum { ARRIVAL, MODEL, INPUT, OUTPUT, SERVICE, GPUS, DURATION };

static gboolean given(const struct trace_csv *source, unsigned column)
{
  return *trace_csv_text(source, column) != 0;
}

static int fill(struct trace_csv *source, struct trace_row *row, GError **error)
{
  if (!trace_csv_time(source, ARRIVAL, NS_PER_S, 0, &row->arrival_ns, error) ||
      (given(source, INPUT) && !trace_csv_tokens(source, INPUT, &row->input_tokens, error)) ||
      (given(source, OUTPUT) && !trace_csv_tokens(source, OUTPUT, &row->output_tokens, error)) ||
      (given(source, SERVICE) && !trace_csv_time(source, SERVICE, NS_PER_S, 0, &row->service_ns, error)))
    return TRACE_ERROR;
  if (given(source, MODEL))
    row->model = trace_csv_text(source, MODEL);
  if (source->base.kind == TRACE_JOBS &&
      (!trace_csv_gpus(source, GPUS, &row->gpus, error) ||
       !trace_csv_time(source, DURATION, NS_PER_S, 0, &row->duration_ns, error)))
    return TRACE_ERROR;
  return TRACE_ROW;
}

static const struct trace_csv_layout layout = {
    .column = {"arrival_s", "model", "input_tokens", "output_tokens", "service_s", "num_gpu", "duration_s"},
    .required = 1,
    .fill = fill,
};

static struct trace_source *native_open(const struct trace_format *format, const char *path,
                                        const struct trace_options *options, GError **error)
{
  struct trace_source *base = trace_csv_open(format, path, options, error);
  const struct trace_csv *source = (const struct trace_csv *)base;
  if (base && trace_csv_has(source, GPUS) && trace_csv_has(source, DURATION))
    base->kind = TRACE_JOBS;
  return base;
}

static int next_time(struct trace_source *base, struct trace_row *row, GError **error)
{
  struct trace_csv *source = (struct trace_csv *)base;
  int got = csv_next(source->csv, error);
  if (got <= 0)
    return got;
  return trace_csv_time(source, ARRIVAL, NS_PER_S, 0, &row->arrival_ns, error) ? TRACE_ROW : TRACE_ERROR;
}

const struct trace_format trace_native = {
    .name = "native",
    .title = "arrival_s[,model,input_tokens,output_tokens,service_s]; jobs: num_gpu,duration_s",
    .kind = TRACE_REQUESTS,
    .csv = &layout,
    .detect = trace_csv_detect,
    .open = native_open,
    .next_time = next_time,
    TRACE_CSV_SLOTS,
};
