/* Philly: one JSON array of {status, vc, jobid, attempts: [{start_time, end_time, detail: [{ip, gpus:
 * […]}]}], submitted_time, user}. Times are local, taken as they stand, and may be missing, null or "None".
 *
 * A job is its attempts that have both times and a GPU. num_gpu is the first one's; duration is the GPU time
 * of all of them over num_gpu, so that num_gpu x duration is the GPU time that the job held. */
#include "harness/trace_json.h"

#include <string.h>

#include "core/error.h"
#include "harness/decimal.h"

enum time_state { TIME_MISSING, TIME_GIVEN, TIME_WRONG };

static enum time_state read_time(const struct trace_json *source, const struct json_value *object,
                                 const char *key, int64_t *ns, GError **error)
{
  const struct json_value *value = json_member(source->rows, object, key);
  const char *text = value ? json_text(source->rows, value) : "";
  if (!value || json_type(value) == JSON_NULL ||
      (json_type(value) == JSON_STRING && (*text == 0 || strcmp(text, "None") == 0)))
    return TIME_MISSING;
  if (json_type(value) == JSON_STRING && timestamp_ns(text, strlen(text), ns, NULL))
    return TIME_GIVEN;
  trace_json_wrong(source, value, key, "a time like 2017-10-03 19:11:52, or None", error);
  return TIME_WRONG;
}

static int64_t count_gpus(const struct trace_json *source, const struct json_value *attempt)
{
  int64_t gpus = 0;
  const struct json_value *detail = json_member(source->rows, attempt, "detail");
  for (const struct json_value *host = json_first(source->rows, detail); host;
       host = json_next(source->rows, host)) {
    const struct json_value *list = json_member(source->rows, host, "gpus");
    for (const struct json_value *gpu = json_first(source->rows, list); gpu;
         gpu = json_next(source->rows, gpu))
      gpus++;
  }
  return MIN(gpus, TRACE_GPUS_MAX);
}

/* Adds the GPU time of one attempt: TRACE_ROW, TRACE_SKIP (it has none) or TRACE_ERROR. */
static int add_attempt(const struct trace_json *source, const struct json_value *attempt, int64_t *first_gpus,
                       double *gpu_ns, GError **error)
{
  int64_t start = 0, end = 0;
  enum time_state started = read_time(source, attempt, "start_time", &start, error);
  enum time_state ended =
      started == TIME_WRONG ? TIME_WRONG : read_time(source, attempt, "end_time", &end, error);
  if (started == TIME_WRONG || ended == TIME_WRONG)
    return TRACE_ERROR;
  int64_t gpus = count_gpus(source, attempt);
  if (started == TIME_MISSING || ended == TIME_MISSING || gpus == 0 || end < start)
    return TRACE_SKIP;
  if (*first_gpus == 0)
    *first_gpus = gpus;
  *gpu_ns += (double)gpus * (double)(end - start);
  return TRACE_ROW;
}

static int fill(struct trace_json *source, struct trace_row *row, GError **error)
{
  const struct json_value *job = json_root(source->rows);
  struct trace_notes *notes = &source->base.notes;
  const struct json_value *attempts = json_member(source->rows, job, "attempts");
  int64_t gpus = 0;
  double gpu_ns = 0;
  enum time_state submitted = read_time(source, job, "submitted_time", &row->arrival_ns, error);
  if (submitted == TIME_WRONG)
    return TRACE_ERROR;
  if (!attempts || json_type(attempts) != JSON_ARRAY)
    return trace_json_wrong(source, attempts, "attempts", "an array", error), TRACE_ERROR;
  for (const struct json_value *at = json_first(source->rows, attempts); at;
       at = json_next(source->rows, at)) {
    int got = add_attempt(source, at, &gpus, &gpu_ns, error);
    if (got == TRACE_ERROR)
      return TRACE_ERROR;
    if (got == TRACE_SKIP)
      trace_quirk(notes, "attempts without both times and a GPU, left out");
  }
  if (submitted == TIME_MISSING)
    return trace_skip(notes, "no submitted_time");
  if (gpus == 0)
    return trace_skip(notes, "no attempt with both times and a GPU");
  row->gpus = (double)gpus;
  row->duration_ns = ns_round(gpu_ns / (double)gpus);
  return TRACE_ROW;
}

static gboolean detect(const struct trace_format *format, const struct trace_probe *probe)
{
  (void)format;
  return *probe->text == '[' && strstr(probe->text, "\"attempts\"");
}

static struct trace_source *philly_open(const struct trace_format *format, const char *path,
                                        const struct trace_options *options, GError **error)
{
  (void)options;
  return trace_json_new(format, path, fill, error);
}

const struct trace_format trace_philly = {
    .name = "philly",
    .title = "Philly cluster jobs 2017 (one JSON array)",
    .kind = TRACE_JOBS,
    .detect = detect,
    .open = philly_open,
    TRACE_JSON_SLOTS,
};
