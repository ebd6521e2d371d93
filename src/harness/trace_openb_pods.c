/* Alibaba openb GPU pods, 2023. arrival = creation_time, duration = deletion_time - scheduled_time (the time
 * in which the pod held its GPUs), GPUs = num_gpu x gpu_milli / 1000. Pods that were never scheduled and pods
 * without a GPU are skipped. */
#include "harness/trace_csv.h"

#include <string.h>

enum { GPUS, MILLI, PHASE, CREATION, DELETION, SCHEDULED, QOS };

static int fill(struct trace_csv *source, struct trace_row *row, GError **error)
{
  int64_t gpus, milli, deleted_ns, scheduled_ns;
  if (!trace_csv_integer(source, GPUS, 0, TRACE_GPUS_MAX, &gpus, error) ||
      !trace_csv_integer(source, MILLI, 0, 1000, &milli, error) ||
      !trace_csv_time(source, CREATION, NS_PER_S, 0, &row->arrival_ns, error))
    return TRACE_ERROR;
  gboolean no_gpu = gpus == 0 || milli == 0;
  if (no_gpu)
    trace_quirk(&source->base.notes, "pods without a GPU, of which the Pending ones are counted as Pending");
  if (*trace_csv_text(source, SCHEDULED) == 0) {
    if (strcmp(trace_csv_text(source, PHASE), "Pending") != 0)
      return trace_csv_wrong(source, SCHEDULED, "a time in s of a pod that is not Pending", error),
             TRACE_ERROR;
    return trace_skip(&source->base.notes, "Pending, no scheduled_time");
  }
  if (no_gpu)
    return trace_skip(&source->base.notes, "no GPU");
  if (!trace_csv_time(source, SCHEDULED, NS_PER_S, 0, &scheduled_ns, error) ||
      !trace_csv_time(source, DELETION, NS_PER_S, 0, &deleted_ns, error))
    return TRACE_ERROR;
  if (deleted_ns < scheduled_ns)
    return trace_csv_wrong(source, DELETION, "a time not before scheduled_time", error), TRACE_ERROR;
  row->duration_ns = deleted_ns - scheduled_ns;
  row->gpus = (double)(gpus * milli) / 1000;
  return TRACE_ROW;
}

static const struct trace_csv_layout layout = {
    .column = {"num_gpu", "gpu_milli", "pod_phase", "creation_time", "deletion_time", "scheduled_time",
               "qos"},
    .required = 7,
    .fill = fill,
};

const struct trace_format trace_openb_pods = {
    .name = "openb-pods",
    .title = "Alibaba openb GPU pods 2023 (duration = deletion - scheduled)",
    .kind = TRACE_JOBS,
    .csv = &layout,
    .detect = trace_csv_detect,
    .open = trace_csv_open,
    TRACE_CSV_SLOTS,
};
