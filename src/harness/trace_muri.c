/* Muri's training jobs derived from the Philly cluster: num_gpu, submit_time and duration in MILLISECONDS,
 * model_name (assigned by Muri's authors, not the job's own). */
#include "harness/trace_csv.h"

enum { GPUS, SUBMIT, DURATION, MODEL, ITERATIONS };

static int fill(struct trace_csv *source, struct trace_row *row, GError **error)
{
  if (!trace_csv_gpus(source, GPUS, &row->gpus, error) ||
      !trace_csv_time(source, SUBMIT, NS_PER_MS, 0, &row->arrival_ns, error) ||
      !trace_csv_time(source, DURATION, NS_PER_MS, 0, &row->duration_ns, error))
    return TRACE_ERROR;
  if (row->gpus <= 0)
    return trace_skip(&source->base.notes, "no GPU");
  row->model = trace_csv_text(source, MODEL);
  return TRACE_ROW;
}

static const struct trace_csv_layout layout = {
    .column = {"num_gpu", "submit_time", "duration", "model_name", "iterations"},
    .required = 5,
    .fill = fill};

const struct trace_format trace_muri = {
    .name = "muri",
    .title = "Muri's Philly-derived training jobs (milliseconds)",
    .kind = TRACE_JOBS,
    .csv = &layout,
    .detect = trace_csv_detect,
    .open = trace_csv_open,
    TRACE_CSV_SLOTS,
};
