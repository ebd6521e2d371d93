/* Helios (SenseTime clusters, 2020): job_id, user, vc, gpu_num, cpu_num, node_num, state, submit_time (local
 * date and time, or seconds), start_time, end_time, duration (s), queue. Jobs without a GPU and jobs that
 * never ran are skipped. */
#include "harness/trace_csv.h"

#include <string.h>

enum { GPUS, SUBMIT, DURATION, STATE, QUEUE };

static gboolean missing(const char *text)
{
  return *text == 0 || strcmp(text, "None") == 0;
}

static int fill(struct trace_csv *source, struct trace_row *row, GError **error)
{
  if (!trace_csv_gpus(source, GPUS, &row->gpus, error))
    return TRACE_ERROR;
  if (row->gpus <= 0)
    return trace_skip(&source->base.notes, "no GPU");
  if (missing(trace_csv_text(source, DURATION)))
    return trace_skip(&source->base.notes, "no duration (never ran)");
  gboolean dated = strchr(trace_csv_text(source, SUBMIT), ':') != NULL;
  if (!(dated ? trace_csv_timestamp(source, SUBMIT, &row->arrival_ns, error)
              : trace_csv_time(source, SUBMIT, NS_PER_S, 0, &row->arrival_ns, error)) ||
      !trace_csv_time(source, DURATION, NS_PER_S, 0, &row->duration_ns, error))
    return TRACE_ERROR;
  return TRACE_ROW;
}

static const struct trace_csv_layout layout = {
    .column = {"gpu_num", "submit_time", "duration", "state", "queue"}, .required = 5, .fill = fill};

const struct trace_format trace_helios = {
    .name = "helios",
    .title = "Helios training jobs 2020",
    .kind = TRACE_JOBS,
    .csv = &layout,
    .detect = trace_csv_detect,
    .open = trace_csv_open,
    TRACE_CSV_SLOTS,
};
