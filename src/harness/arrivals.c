/* Open-loop arrivals; see arrivals.h. */
#include "harness/arrivals.h"

#include <gsl/gsl_randist.h>

#include "core/error.h"
#include "harness/ask_load.h"
#include "harness/model_map.h"
#include "harness/overlay.h"
#include "harness/random.h"
#include "harness/replay.h"
#include "harness/trace_format.h"

/* Copies of a trace; each holds 1.3 KB. */
#define COPIES_MAX 10000

struct arrivals {
  const struct setup *setup;
  struct model_map *map;
  gsl_rng *rng;
  double clock_ns; /* of a process */

  struct trace_reader *trace;
  uint64_t rows;           /* taken from it */
  struct overlay *overlay; /* more than one copy; NULL: the rows as they come */
  uint32_t copies;
  int64_t span_ns; /* of the trace, in its own time */
  double load;     /* that the copies bring, part of ideal's capacity */
  uint64_t tokens_ignored;
  uint64_t replayed; /* of setup->replay, so far */
};

/* --- traces
 * ---------------------------------------------------------------------------------------------------------*/

static struct trace_reader *open_trace(const struct experiment *e, GError **error)
{
  struct trace_options options = {.format = e->trace_format, .seed = e->seed};
  struct trace_reader *reader = trace_open(e->trace, &options, error);
  if (reader && trace_kind(reader) != TRACE_REQUESTS) {
    input_error(error, e->trace, 0, "expected a trace of requests, found one of %s",
                trace_kind(reader) == TRACE_JOBS ? "training jobs: name it in [training]" : "nodes");
    trace_close(reader);
    return NULL;
  }
  return reader;
}

/* The trace's next row within the limit. */
static int read_ask(struct arrivals *a, struct ask *ask, GError **error)
{
  const struct experiment *e = a->setup->experiment;
  struct trace_row row;
  int more = e->limit > 0 && a->rows >= e->limit ? 0 : trace_next(a->trace, &row, error);
  if (more <= 0)
    return more;
  a->rows++;
  return ask_of_row(a->setup, a->map, &row, ask, error) ? 1 : -1;
}

static gboolean rewind_trace(struct arrivals *a, GError **error)
{
  a->rows = 0;
  return trace_rewind(a->trace, error);
}

/* One pass over the rows: the span, names ranked, the load that one copy brings. */
static gboolean survey(struct arrivals *a, GError **error)
{
  struct ask_load *load = ask_load_new(a->setup, a->map);
  struct ask ask;
  int more;
  a->span_ns = 0;
  while ((more = read_ask(a, &ask, error)) > 0) {
    a->span_ns = max_i64(a->span_ns, ask.arrival_ns);
    model_map_count(a->map, ask.target);
    ask_load_add(load, &ask);
  }
  model_map_rank(a->map);
  a->load = ask_load_part(load, (double)a->span_ns / a->setup->experiment->speedup);
  ask_load_free(load);
  return more == 0 && rewind_trace(a, error);
}

/* As many whole copies as come nearest to the wanted part of ideal's capacity. */
static void choose_copies(struct arrivals *a)
{
  double copies = a->load > 0 ? a->setup->experiment->load / a->load : 1;
  a->copies = copies < 1 ? 1 : copies > COPIES_MAX ? COPIES_MAX : (uint32_t)(copies + 0.5);
  a->load *= a->copies;
}

static gboolean overlay_copies(struct arrivals *a, GError **error)
{
  struct ask_spool *spool = ask_spool_new(error);
  struct ask ask;
  int more;
  if (!spool)
    return FALSE;
  while ((more = read_ask(a, &ask, error)) > 0)
    if (!ask_spool_add(spool, &ask, error)) {
      more = -1;
      break;
    }
  if (more < 0 || !ask_spool_end(spool, error)) {
    ask_spool_free(spool);
    return FALSE;
  }
  a->overlay = overlay_new(spool, a->span_ns, a->copies, a->rng, error);
  return a->overlay != NULL;
}

/* What the length of the trace, once known, demands of the experiment. */
static gboolean check_span(const struct arrivals *a, GError **error)
{
  const struct experiment *e = a->setup->experiment;
  double span_s = (double)a->span_ns / NS_PER_S / e->speedup;
  if (span_s > (double)TRACE_SPAN_MAX_NS / NS_PER_S)
    return input_error(error, e->path, 0,
                       "workload.speedup = %g: expected arrivals within 1e9 s, found %.9g s", e->speedup,
                       span_s);
  if (e->warmup_ns > 0 && a->span_ns >= 0 && (double)e->warmup_ns / NS_PER_S >= span_s)
    return input_error(error, e->path, 0,
                       "experiment.warmup_s: expected below the trace's last arrival, at %.9g s", span_s);
  return TRUE;
}

static gboolean trace_init(struct arrivals *a, GError **error)
{
  const struct experiment *e = a->setup->experiment;
  a->trace = open_trace(e, error);
  if (!a->trace)
    return FALSE;
  a->copies = 1;
  a->span_ns = trace_span_ns(a->trace);
  if (e->load <= 0 && e->map != MAP_HASH && e->limit == 0)
    return check_span(a, error);
  if (!survey(a, error) || !check_span(a, error))
    return FALSE;
  if (e->load > 0)
    choose_copies(a);
  return a->copies == 1 || overlay_copies(a, error);
}

static int trace_arrival(struct arrivals *a, struct arrival *next, GError **error)
{
  struct ask ask;
  int more = a->overlay ? overlay_next(a->overlay, &ask, error) : read_ask(a, &ask, error);
  if (more <= 0)
    return more;
  *next = (struct arrival){.at_ns = ns_round((double)ask.arrival_ns / a->setup->experiment->speedup),
                           .model = model_map_pick(a->map, ask.target)};
  if (!ask_service_ns(a->setup, &ask, next->model, &next->service_ns, error))
    return -1;
  if (!a->setup->experiment->service_from_trace && next->service_ns == 0)
    a->tokens_ignored += ask.input_tokens >= 0 || ask.output_tokens >= 0;
  return 1;
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
  if (setup->experiment->workload == WORKLOAD_TRACE && !setup->replay && !trace_init(a, error)) {
    arrivals_free(a);
    return NULL;
  }
  return a;
}

void arrivals_free(struct arrivals *a)
{
  if (!a)
    return;
  overlay_free(a->overlay);
  trace_close(a->trace);
  model_map_free(a->map);
  gsl_rng_free(a->rng);
  g_free(a);
}

int arrivals_next(struct arrivals *a, struct arrival *next, GError **error)
{
  const struct replay *replay = a->setup->replay;
  int64_t end = a->setup->experiment->duration_ns;
  if (replay && a->replayed == replay->count)
    return 0;
  if (replay) {
    *next = replay->arrival[a->replayed++];
    return 1;
  }
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
  if (a->setup->replay)
    return a->setup->replay->span_ns;
  if (e->workload != WORKLOAD_TRACE)
    return e->duration_ns;
  int64_t span = a->span_ns < 0 ? -1 : ns_round((double)a->span_ns / e->speedup);
  return e->duration_ns > 0 && (span < 0 || e->duration_ns < span) ? e->duration_ns : span;
}

GPtrArray *arrivals_notices(const struct arrivals *a)
{
  double wanted = a->setup->experiment->load;
  GPtrArray *lines = a->trace ? trace_notices(a->trace) : g_ptr_array_new_with_free_func(g_free);
  if (a->trace && wanted > 0)
    g_ptr_array_add(lines, g_strdup_printf("%u cop%s of the trace overlaid: load %.3g, for %.3g wanted",
                                           a->copies, a->copies == 1 ? "y" : "ies", a->load, wanted));
  if (a->tokens_ignored > 0)
    g_ptr_array_add(lines, g_strdup("tokens are ignored: the profiles tell no time per token"));
  return lines;
}
