/* ElasticFlow's training jobs of Microsoft clusters, 2021: job_id, submission_time (s), duration (s),
 * num_gpu. */
#include "harness/trace_csv.h"

enum { SUBMISSION, DURATION, GPUS, JOB };

static int fill(struct trace_csv *source, struct trace_row *row, GError **error)
{
  if (!trace_csv_time(source, SUBMISSION, NS_PER_S, 0, &row->arrival_ns, error) ||
      !trace_csv_time(source, DURATION, NS_PER_S, 0, &row->duration_ns, error) ||
      !trace_csv_gpus(source, GPUS, &row->gpus, error))
    return TRACE_ERROR;
  if (row->gpus <= 0)
    return trace_skip(&source->base.notes, "no GPU");
  return TRACE_ROW;
}

static const struct trace_csv_layout layout = {
    .column = {"submission_time", "duration", "num_gpu", "job_id"}, .required = 4, .fill = fill};

const struct trace_format trace_elasticflow = {
    .name = "elasticflow",
    .title = "ElasticFlow training jobs 2021",
    .kind = TRACE_JOBS,
    .csv = &layout,
    .detect = trace_csv_detect,
    .open = trace_csv_open,
    TRACE_CSV_SLOTS,
};
