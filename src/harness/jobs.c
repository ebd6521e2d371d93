/* Training jobs of a trace; see jobs.h. */
#include "harness/jobs.h"

#include "core/error.h"
#include "harness/trace.h"

struct jobs {
  struct trace_reader *trace; /* NULL: no jobs */
};

struct jobs *jobs_new(const struct setup *setup, GError **error)
{
  const struct experiment *e = setup->experiment;
  struct trace_options options = {.format = e->train_trace_format, .seed = e->seed};
  struct trace_reader *trace = e->train_trace ? trace_open(e->train_trace, &options, error) : NULL;
  if (e->train_trace && !trace)
    return NULL;
  if (trace && trace_kind(trace) != TRACE_JOBS) {
    input_error(error, e->train_trace, 0, "expected a trace of training jobs, found one of %s",
                trace_kind(trace) == TRACE_REQUESTS ? "requests: name it in [workload]" : "nodes");
    trace_close(trace);
    return NULL;
  }
  struct jobs *jobs = g_new0(struct jobs, 1);
  jobs->trace = trace;
  return jobs;
}

void jobs_free(struct jobs *jobs)
{
  if (!jobs)
    return;
  trace_close(jobs->trace);
  g_free(jobs);
}

int jobs_next(struct jobs *jobs, int64_t *at_ns, struct message_job *job, GError **error)
{
  struct trace_row row;
  int more = jobs->trace ? trace_next(jobs->trace, &row, error) : 0;
  if (more <= 0)
    return more;
  *at_ns = row.arrival_ns;
  *job = (struct message_job){.gpus_milli = (uint32_t)(MIN(row.gpus, 1e6) * 1000 + 0.5),
                              .duration_ns = max_i64(0, row.duration_ns)};
  return 1;
}

void jobs_add_notices(const struct jobs *jobs, GPtrArray *lines)
{
  g_autoptr(GPtrArray) notices = jobs->trace ? trace_notices(jobs->trace) : g_ptr_array_new();
  for (uint32_t i = 0; i < notices->len; i++)
    g_ptr_array_add(lines, g_strdup(notices->pdata[i]));
}
