/* Open-loop arrivals; see arrivals.h. */
#include "harness/arrivals.h"

#include <gsl/gsl_randist.h>
#include <string.h>

#include "core/error.h"
#include "harness/model_map.h"
#include "harness/random.h"
#include "harness/trace.h"

/* Copies of a trace, each turned by an offset of its own; more would keep too many files open. */
#define COPIES_MAX 500

/* One copy: it starts in the middle of the trace and goes round once. */
struct copy {
  struct trace_reader *reader;
  int64_t offset_ns; /* added to the trace's times, modulo the span */
  gboolean wrapped;  /* past the trace's end: its beginning comes now */
  uint64_t rows;
  struct arrival next;
  gboolean done;
};

struct arrivals {
  const struct setup *setup;
  struct model_map *map;
  gsl_rng *rng;
  double clock_ns;
  struct copy *copy;
  uint32_t copies;
  int64_t span_ns; /* of the trace, in its own time */
  double load;     /* that the copies bring, part of ideal's capacity */
  uint64_t tokens_ignored;
  gboolean primed;
};

/* --- traces
 * ---------------------------------------------------------------------------------------------------------*/

static struct trace_reader *open_trace(const struct experiment *e, GError **error)
{
  struct trace_options options = {.format = e->trace_format, .seed = e->seed};
  struct trace_reader *reader = trace_open(e->trace, &options, error);
  if (reader && trace_kind(reader) != TRACE_REQUESTS) {
    input_error(error, e->trace, 0, "expected a trace of requests, found one of %s: name it in [training]",
                trace_kind(reader) == TRACE_JOBS ? "training jobs" : "nodes");
    trace_close(reader);
    return NULL;
  }
  return reader;
}

static int64_t row_service_ns(struct arrivals *a, const struct trace_row *row, uint32_t model)
{
  const struct profile *profile = catalog_profile(a->setup->catalog, model);
  if (a->setup->experiment->service_from_trace)
    return row->service_ns > 0 ? row->service_ns : 0;
  double tokens = 0;
  if (row->input_tokens > 0)
    tokens += (double)row->input_tokens * profile->input_token_ns;
  if (row->output_tokens > 0)
    tokens += (double)row->output_tokens * profile->output_token_ns;
  if (tokens <= 0) {
    a->tokens_ignored += row->input_tokens >= 0 || row->output_tokens >= 0;
    return 0;
  }
  const struct model *m = catalog_model(a->setup->catalog, model);
  return ns_round(tokens + resident_ns(a->setup->plans, m->profile, 0));
}

/* Rows, and the sum of what they take on one GPU; ranks names where the map needs it. */
static gboolean survey(struct arrivals *a, struct trace_reader *reader, uint64_t *rows, double *service,
                       GError **error)
{
  const struct experiment *e = a->setup->experiment;
  double mean = model_map_mean_service_ns(a->map);
  struct trace_row row;
  int more = 1;
  while ((e->limit == 0 || *rows < e->limit) && (more = trace_next(reader, &row, error)) > 0) {
    ++*rows;
    a->span_ns = MAX(a->span_ns, row.arrival_ns);
    *service += e->service_from_trace && row.service_ns > 0 ? (double)row.service_ns : mean;
    if (e->map == MAP_HASH && row.model)
      model_map_count(a->map, row.model);
  }
  if (more < 0)
    return FALSE;
  if (e->map == MAP_HASH)
    model_map_rank(a->map);
  return trace_rewind(reader, error);
}

/* As many whole copies as come nearest to the wanted part of ideal's capacity. */
static void choose_copies(struct arrivals *a, double service)
{
  const struct experiment *e = a->setup->experiment;
  const struct config *config = &a->setup->config;
  uint32_t gpus = 0;
  for (uint32_t s = 0; s < config->servers_at_start; s++)
    gpus += config->server[s].gpus;
  double one = a->span_ns > 0 ? service / ((double)a->span_ns / e->speedup) / gpus : 0;
  double copies = one > 0 ? e->load / one : 1;
  a->copies = copies < 1 ? 1 : copies > COPIES_MAX ? COPIES_MAX : (uint32_t)(copies + 0.5);
  a->load = one * a->copies;
}

static gboolean trace_init(struct arrivals *a, GError **error)
{
  const struct experiment *e = a->setup->experiment;
  struct trace_reader *reader = open_trace(e, error);
  if (!reader)
    return FALSE;
  a->copies = 1;
  a->copy = g_new0(struct copy, COPIES_MAX);
  a->copy[0].reader = reader;
  a->span_ns = trace_span_ns(reader);
  if (e->load > 0 || e->map == MAP_HASH || e->limit > 0) {
    uint64_t rows = 0;
    double service = 0;
    a->span_ns = 0;
    if (!survey(a, reader, &rows, &service, error))
      return FALSE;
    if (e->load > 0)
      choose_copies(a, service);
  }
  for (uint32_t i = 1; i < a->copies; i++) {
    a->copy[i].offset_ns = (int64_t)(gsl_rng_uniform(a->rng) * (double)a->span_ns);
    a->copy[i].reader = open_trace(e, error);
    if (!a->copy[i].reader)
      return FALSE;
  }
  return TRUE;
}

/* The next row of one copy in its own round: from span - offset to the end, then from the beginning. */
static int copy_read(struct arrivals *a, struct copy *copy, struct trace_row *row, GError **error)
{
  const struct experiment *e = a->setup->experiment;
  for (;;) {
    int more = e->limit > 0 && copy->rows >= e->limit ? 0 : trace_next(copy->reader, row, error);
    if (more < 0)
      return -1;
    copy->rows += more > 0;
    if (more > 0 && copy->wrapped && row->arrival_ns + copy->offset_ns > a->span_ns)
      more = 0; /* once round */
    else if (more > 0 &&
             (copy->wrapped || copy->offset_ns == 0 || row->arrival_ns + copy->offset_ns > a->span_ns))
      return 1;
    else if (more > 0)
      continue;
    if (copy->wrapped || copy->offset_ns == 0)
      return 0;
    copy->wrapped = TRUE;
    copy->rows = 0;
    if (!trace_rewind(copy->reader, error))
      return -1;
  }
}

static gboolean copy_advance(struct arrivals *a, struct copy *copy, GError **error)
{
  const struct experiment *e = a->setup->experiment;
  struct trace_row row;
  int more = copy_read(a, copy, &row, error);
  if (more < 0)
    return FALSE;
  copy->done = more == 0;
  if (copy->done)
    return TRUE;
  int64_t model = model_map_find(a->map, row.model);
  if (model < 0)
    return input_error(error, e->trace, 0, "map = name: no model of the experiment is called '%s'",
                       row.model);
  int64_t at = row.arrival_ns + copy->offset_ns;
  if (copy->offset_ns > 0 && !copy->wrapped)
    at -= a->span_ns;
  copy->next = (struct arrival){.at_ns = ns_round((double)at / e->speedup),
                                .model = (uint32_t)model,
                                .service_ns = row_service_ns(a, &row, (uint32_t)model)};
  return TRUE;
}

static int trace_arrival(struct arrivals *a, struct arrival *next, GError **error)
{
  for (uint32_t i = 0; i < a->copies && !a->primed; i++)
    if (!copy_advance(a, &a->copy[i], error))
      return -1;
  a->primed = TRUE;
  struct copy *first = NULL;
  for (uint32_t i = 0; i < a->copies; i++)
    if (!a->copy[i].done && (!first || a->copy[i].next.at_ns < first->next.at_ns))
      first = &a->copy[i];
  if (!first)
    return 0;
  *next = first->next;
  return copy_advance(a, first, error) ? 1 : -1;
}

/* --- processes
 * ------------------------------------------------------------------------------------------------------*/

static void process_arrival(struct arrivals *a, struct arrival *next)
{
  const struct experiment *e = a->setup->experiment;
  double mean = 1e9 / e->rate_rps;
  /* A gamma renewal process with coefficient of variation cv: shape 1/cv^2, scale mean cv^2. */
  a->clock_ns += e->workload == WORKLOAD_GAMMA
                     ? gsl_ran_gamma(a->rng, 1 / (e->cv * e->cv), mean * e->cv * e->cv)
                     : gsl_ran_exponential(a->rng, mean);
  *next = (struct arrival){.at_ns = ns_round(a->clock_ns), .model = model_map_draw(a->map)};
}

/* --- all
 * ------------------------------------------------------------------------------------------------------------*/

struct arrivals *arrivals_new(const struct setup *setup, GError **error)
{
  struct arrivals *a = g_new0(struct arrivals, 1);
  a->setup = setup;
  a->map = model_map_new(setup);
  a->rng = random_stream(setup->experiment->seed, "arrivals");
  if (setup->experiment->workload == WORKLOAD_TRACE && !trace_init(a, error)) {
    arrivals_free(a);
    return NULL;
  }
  return a;
}

void arrivals_free(struct arrivals *a)
{
  if (!a)
    return;
  for (uint32_t i = 0; i < a->copies; i++)
    if (a->copy[i].reader)
      trace_close(a->copy[i].reader);
  g_free(a->copy);
  model_map_free(a->map);
  gsl_rng_free(a->rng);
  g_free(a);
}

int arrivals_next(struct arrivals *a, struct arrival *next, GError **error)
{
  int64_t end = a->setup->experiment->duration_ns;
  if (a->setup->experiment->workload == WORKLOAD_TRACE) {
    int more = trace_arrival(a, next, error);
    return more > 0 && end > 0 && next->at_ns > end ? 0 : more;
  }
  process_arrival(a, next);
  return next->at_ns <= end;
}

int64_t arrivals_span_ns(const struct arrivals *a)
{
  const struct experiment *e = a->setup->experiment;
  if (e->workload != WORKLOAD_TRACE)
    return e->duration_ns;
  int64_t span = a->span_ns < 0 ? -1 : ns_round((double)a->span_ns / e->speedup);
  return e->duration_ns > 0 && (span < 0 || e->duration_ns < span) ? e->duration_ns : span;
}

GPtrArray *arrivals_notices(const struct arrivals *a)
{
  GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
  if (a->copies > 0) {
    g_autoptr(GPtrArray) trace = trace_notices(a->copy[0].reader);
    for (uint32_t i = 0; i < trace->len; i++)
      g_ptr_array_add(lines, g_strdup(trace->pdata[i]));
  }
  if (a->load > 0)
    g_ptr_array_add(lines,
                    g_strdup_printf("%u cop%s of the trace overlaid: load %.3g, for %.3g wanted", a->copies,
                                    a->copies == 1 ? "y" : "ies", a->load, a->setup->experiment->load));
  if (a->tokens_ignored > 0)
    g_ptr_array_add(lines, g_strdup("tokens are ignored: the profiles tell no time per token"));
  return lines;
}
