/* Alibaba PAI 2020, table pai_task_table: a CSV WITHOUT a header line; FILE.header beside FILE.csv holds the
 * names. A row is one task: GPUs = inst_num x plan_gpu / 100 (plan_gpu is in percent of one), arrival =
 * start_time (the table has no time of submission), duration = end_time - start_time. */
#include "harness/trace_csv.h"

#include <string.h>

#include "core/error.h"

enum { INSTANCES, PLAN_GPU, START, END };

#define PERCENT 100

static int fill(struct trace_csv *source, struct trace_row *row, GError **error)
{
  struct trace_notes *notes = &source->base.notes;
  double percent;
  int64_t instances_thousandths, end_ns;
  if (*trace_csv_text(source, PLAN_GPU) == 0)
    return trace_skip(notes, "no GPU");
  if (*trace_csv_text(source, START) == 0)
    return trace_skip(notes, "no start_time (never ran)");
  if (*trace_csv_text(source, END) == 0)
    return trace_skip(notes, "no end_time (still running)");
  if (*trace_csv_text(source, INSTANCES) == 0)
    return trace_skip(notes, "no inst_num");
  /* The tables write whole numbers as 2.0. */
  if (!trace_csv_gpus(source, PLAN_GPU, &percent, error) ||
      !trace_csv_time(source, INSTANCES, 1000, 0, &instances_thousandths, error) ||
      !trace_csv_time(source, START, NS_PER_S, 0, &row->arrival_ns, error) ||
      !trace_csv_time(source, END, NS_PER_S, 0, &end_ns, error))
    return TRACE_ERROR;
  row->gpus = percent / PERCENT * ((double)instances_thousandths / 1000);
  if (row->gpus <= 0)
    return trace_skip(notes, "no GPU");
  if (row->gpus > (double)TRACE_GPUS_MAX)
    return trace_csv_wrong(source, INSTANCES, "instances with at most 1000000 GPUs in all", error),
           TRACE_ERROR;
  if (end_ns < row->arrival_ns)
    return trace_skip(notes, "end_time before start_time");
  row->duration_ns = end_ns - row->arrival_ns;
  return TRACE_ROW;
}

static const struct trace_csv_layout layout = {
    .column = {"inst_num", "plan_gpu", "start_time", "end_time"}, .required = 4, .fill = fill};

/* NAME.header of NAME.csv, else FILE.header. Free with g_free. */
static char *header_path(const char *path)
{
  size_t stem = strlen(path) - (g_str_has_suffix(path, ".csv") ? strlen(".csv") : 0);
  return g_strdup_printf("%.*s.header", (int)stem, path);
}

static gboolean detect(const struct trace_format *format, const struct trace_probe *probe)
{
  (void)format;
  g_autofree char *path = header_path(probe->path);
  return probe->columns && g_file_test(path, G_FILE_TEST_IS_REGULAR);
}

static struct trace_source *pai_open(const struct trace_format *format, const char *path,
                                     const struct trace_options *options, GError **error)
{
  (void)options;
  g_autofree char *names_path = header_path(path);
  struct csv *names_file = csv_open(names_path, error);
  g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
  if (!names_file) {
    g_prefix_error(error, "pai-2020 needs the header file beside the table: ");
    return NULL;
  }
  int got = csv_next(names_file, error);
  for (unsigned i = 0; got > 0 && i < csv_fields(names_file); i++)
    g_ptr_array_add(names, g_strstrip(g_strdup(csv_text(names_file, i))));
  g_ptr_array_add(names, NULL);
  csv_close(names_file);
  if (got == 0)
    input_error(error, names_path, 1, "expected column names, found an empty file");
  if (got <= 0)
    return NULL;
  return trace_csv_new(format, path, &layout, (const char *const *)names->pdata, error);
}

const struct trace_format trace_pai_2020 = {
    .name = "pai-2020",
    .title = "Alibaba PAI 2020 task table (needs its .header file beside it)",
    .kind = TRACE_JOBS,
    .detect = detect,
    .open = pai_open,
    TRACE_CSV_SLOTS,
};
