/* Alibaba openb node list: sn, cpu_milli, memory_mib, gpu (count), model (of the GPU). Nodes, not work:
 * `trace info` only. */
#include "harness/trace_csv.h"

enum { SERIAL, COUNT, MODEL, MEMORY };

static int fill(struct trace_csv *source, struct trace_row *row, GError **error)
{
  int64_t gpus;
  if (!trace_csv_integer(source, COUNT, 0, TRACE_GPUS_MAX, &gpus, error))
    return TRACE_ERROR;
  row->arrival_ns = 0;
  row->gpus = (double)gpus;
  row->model = *trace_csv_text(source, MODEL) ? trace_csv_text(source, MODEL) : NULL;
  return TRACE_ROW;
}

static const struct trace_csv_layout layout = {
    .column = {"sn", "gpu", "model", "memory_mib"}, .required = 4, .fill = fill};

const struct trace_format trace_openb_nodes = {
    .name = "openb-nodes",
    .title = "Alibaba openb node list 2023 (trace info only)",
    .kind = TRACE_NODES,
    .csv = &layout,
    .detect = trace_csv_detect,
    .open = trace_csv_open,
    TRACE_CSV_SLOTS,
};
