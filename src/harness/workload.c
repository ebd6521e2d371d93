/* The load generator; see workload.h. */
#include "harness/workload.h"

#include "harness/arrivals.h"
#include "harness/clients.h"
#include "harness/flights.h"
#include "harness/jobs.h"
#include "harness/request_times.h"

#define TIMER_ARRIVAL 1
#define TIMER_PHASE   2
#define TIMER_JOB     3
#define TIMER_END     4
#define TIMER_AGAIN   5 /* client in the upper bits */

/* A client of a closed loop that was refused asks again after this: at once it would only be refused again,
 * in no time. */
#define REFUSED_NS (10 * NS_PER_MS)

struct workload {
  const struct setup *setup;
  struct world *world;
  workload_done done;
  void *done_context;
  int64_t start; /* of the run, on the client's clock */

  struct arrivals *arrivals; /* open loop */
  struct arrival next;
  struct clients *clients; /* closed loops */
  gboolean requests_over;
  int64_t last_arrival;

  struct jobs *jobs;
  struct message_job job; /* the next one */
  gboolean jobs_over;
  uint64_t jobs_sent;

  struct flights *flights;
  double *slo_ns; /* [models] of a request with the profile's service time */
  GError *error;
  void (*finished)(void *context);
  void *finished_context;
};

/* --- shared helpers
 * -------------------------------------------------------------------------------------------------*/

static int64_t now(const struct workload *w)
{
  return world_now(w->world) - w->start;
}

static void timer(struct workload *w, int64_t at_ns, uint64_t tag)
{
  w->world->ops->timer(w->world, max_i64(0, at_ns - now(w)), tag);
}

static void send(struct workload *w, int64_t arrival_ns, uint32_t model, uint32_t slot, uint32_t client,
                 int64_t service_ns)
{
  struct flight flight = {.arrival_ns = arrival_ns, .model = model, .client = client};
  struct message m = {
      .type = MESSAGE_REQUEST,
      .request = {
          .id = flights_begin(w->flights, flight), .model = model, .slot = slot, .service_ns = service_ns}};
  w->last_arrival = arrival_ns;
  world_send(w->world, ACTOR(ACTOR_CONTROLLER, 0), &m);
}

static void check_finished(struct workload *w)
{
  if (w->finished && (w->error || workload_finished(w))) {
    void (*finished)(void *context) = w->finished;
    w->finished = NULL;
    finished(w->finished_context);
  }
}

static void fail(struct workload *w)
{
  w->requests_over = w->jobs_over = TRUE;
  check_finished(w);
}

/* --- open loop
 * ------------------------------------------------------------------------------------------------------*/

/* Sends what is due and sets the clock for the next. */
static void open_loop(struct workload *w)
{
  int64_t due = now(w);
  while (!w->requests_over && w->next.at_ns <= due) {
    send(w, w->next.at_ns, w->next.model, NO_INDEX, NO_INDEX, w->next.service_ns);
    int more = arrivals_next(w->arrivals, &w->next, &w->error);
    w->requests_over = more <= 0;
    if (more < 0)
      fail(w);
  }
  if (!w->requests_over)
    timer(w, w->next.at_ns, TIMER_ARRIVAL);
}

static void open_loop_start(struct workload *w)
{
  int more = arrivals_next(w->arrivals, &w->next, &w->error);
  w->requests_over = more <= 0;
  if (more < 0)
    fail(w);
  if (more > 0)
    open_loop(w);
}

/* --- closed loop and shifting demand
 * --------------------------------------------------------------------------------*/

static gboolean past_end(const struct workload *w)
{
  return w->requests_over || now(w) >= w->setup->experiment->duration_ns;
}

static void client_go(struct workload *w, uint32_t client)
{
  struct client_ask ask;
  int64_t at = now(w);
  if (!past_end(w) && clients_ask(w->clients, client, at, &ask))
    send(w, at, ask.model, ask.slot, client, 0);
}

/* Other slots are active now: the clients that waited for them go on. */
static void phase(struct workload *w)
{
  int64_t until = clients_phase_end(w->clients, now(w));
  for (uint32_t c = 0; c < clients_count(w->clients); c++)
    if (clients_waiting(w->clients, c))
      client_go(w, c);
  if (until < w->setup->experiment->duration_ns)
    timer(w, until, TIMER_PHASE);
}

static void closed_loop_start(struct workload *w)
{
  timer(w, w->setup->experiment->duration_ns, TIMER_END);
  phase(w);
}

/* --- training jobs
 * --------------------------------------------------------------------------------------------------*/

static void next_job(struct workload *w)
{
  int64_t at_ns;
  int more = jobs_next(w->jobs, &at_ns, &w->job, &w->error);
  w->jobs_over = more <= 0;
  if (more > 0)
    timer(w, at_ns, TIMER_JOB);
  else if (more < 0)
    fail(w);
  else
    check_finished(w);
}

static void submit_job(struct workload *w)
{
  struct message m = {.type = MESSAGE_JOB, .job = w->job};
  world_send(w->world, ACTOR(ACTOR_CONTROLLER, 0), &m);
  w->jobs_sent++;
  next_job(w);
}

/* --- answers
 * --------------------------------------------------------------------------------------------------------*/

static void answered(struct workload *w, const struct message_answer *m)
{
  const struct flight *flight = flights_find(w->flights, m->id);
  if (!flight || m->outcome >= OUTCOME_COUNT || m->found >= FOUND_COUNT)
    return; /* a second answer counts for nothing, nor does one that makes no sense */
  uint32_t client = flight->client;
  struct request_row row = {.id = m->id,
                            .model = flight->model,
                            .gpu = m->gpu,
                            .arrival_ns = flight->arrival_ns,
                            .end_ns = now(w),
                            .outcome = (enum outcome)m->outcome,
                            .found = (enum found)m->found};
  request_times(&w->setup->config, m, &row);
  row.slo_met =
      row.outcome == OUTCOME_COMPLETED && (double)(row.end_ns - row.arrival_ns) <= w->slo_ns[row.model];
  flights_end(w->flights, m->id);
  w->done(w->done_context, &row);
  if (client != NO_INDEX && (row.outcome == OUTCOME_REJECTED || row.outcome == OUTCOME_LOST))
    timer(w, now(w) + REFUSED_NS, (uint64_t)client << 8 | TIMER_AGAIN);
  else if (client != NO_INDEX)
    client_go(w, client);
  check_finished(w);
}

void workload_interrupt(struct workload *w)
{
  w->requests_over = w->jobs_over = TRUE;
  for (uint64_t id = flights_oldest(w->flights); id < flights_begun(w->flights); id++) {
    const struct flight *flight = flights_find(w->flights, id);
    if (!flight)
      continue;
    struct request_row row = {.id = id,
                              .model = flight->model,
                              .gpu = NO_INDEX,
                              .arrival_ns = flight->arrival_ns,
                              .dispatch_ns = -1,
                              .start_ns = -1,
                              .end_ns = now(w),
                              .outcome = OUTCOME_INTERRUPTED};
    flights_end(w->flights, id);
    w->done(w->done_context, &row);
  }
}

/* --- the actor
 * ------------------------------------------------------------------------------------------------------*/

static void workload_start(void *actor)
{
  struct workload *w = actor;
  w->start = world_now(w->world);
  next_job(w);
  if (w->arrivals)
    open_loop_start(w);
  else
    closed_loop_start(w);
  check_finished(w);
}

static void workload_message(void *actor, actor_id from, const struct message *m)
{
  (void)from;
  if (m->type == MESSAGE_ANSWER)
    answered(actor, &m->answer);
}

static void workload_timer(void *actor, uint64_t tag)
{
  struct workload *w = actor;
  switch (tag & 0xff) {
  case TIMER_ARRIVAL:
    open_loop(w);
    break;
  case TIMER_PHASE:
    phase(w);
    break;
  case TIMER_JOB:
    submit_job(w);
    break;
  case TIMER_AGAIN:
    client_go(w, (uint32_t)(tag >> 8));
    break;
  case TIMER_END:
    w->requests_over = TRUE;
    break;
  }
  check_finished(w);
}

static void workload_completion(void *actor, const struct completion *completion)
{
  (void)actor; /* the client begins no operation */
  (void)completion;
}

static void workload_peer_lost(void *actor, actor_id peer)
{
  (void)peer; /* without a controller no answer will come */
  workload_interrupt(actor);
  check_finished(actor);
}

const struct actor_ops workload_actor = {
    .start = workload_start,
    .message = workload_message,
    .timer = workload_timer,
    .completion = workload_completion,
    .peer_lost = workload_peer_lost,
};

/* --- birth and sight
 * ------------------------------------------------------------------------------------------------*/

static void slo_init(struct workload *w)
{
  const struct experiment *e = w->setup->experiment;
  const struct catalog *catalog = w->setup->catalog;
  w->slo_ns = g_new(double, catalog_models(catalog));
  for (uint32_t m = 0; m < catalog_models(catalog); m++) {
    const struct model *model = catalog_model(catalog, m);
    double warm = resident_ns(w->setup->plans, model->profile, 0);
    w->slo_ns[m] = e->slo_ns > 0 ? (double)e->slo_ns : e->slo_multiple * warm;
  }
}

static gboolean source_init(struct workload *w, GError **error)
{
  enum workload_kind kind = w->setup->experiment->workload;
  w->jobs = jobs_new(w->setup, error);
  if (!w->jobs)
    return FALSE;
  if (kind == WORKLOAD_CLOSED || kind == WORKLOAD_SHIFTING)
    w->clients = clients_new(w->setup);
  else
    w->arrivals = arrivals_new(w->setup, error);
  return w->clients || w->arrivals;
}

struct workload *workload_new(const struct setup *setup, struct world *world, workload_done done,
                              void *context, GError **error)
{
  struct workload *w = g_new0(struct workload, 1);
  w->setup = setup;
  w->world = world;
  w->done = done;
  w->done_context = context;
  w->flights = flights_new();
  slo_init(w);
  if (!source_init(w, error)) {
    workload_free(w);
    return NULL;
  }
  return w;
}

void workload_free(struct workload *w)
{
  if (!w)
    return;
  arrivals_free(w->arrivals);
  clients_free(w->clients);
  jobs_free(w->jobs);
  flights_free(w->flights);
  g_clear_error(&w->error);
  g_free(w->slo_ns);
  g_free(w);
}

int64_t workload_span_ns(const struct workload *w)
{
  int64_t span = w->arrivals ? arrivals_span_ns(w->arrivals) : w->setup->experiment->duration_ns;
  return span < 0 && w->requests_over ? w->last_arrival : span;
}

gboolean workload_finished(const struct workload *w)
{
  return w->requests_over && w->jobs_over && flights_ended(w->flights) == flights_begun(w->flights);
}

uint64_t workload_jobs(const struct workload *w)
{
  return w->jobs_sent;
}

uint64_t workload_ended(const struct workload *w)
{
  return flights_ended(w->flights);
}

const GError *workload_error(const struct workload *w)
{
  return w->error;
}

void workload_on_finished(struct workload *w, void (*finished)(void *context), void *context)
{
  w->finished = finished;
  w->finished_context = context;
}

GPtrArray *workload_notices(const struct workload *w)
{
  GPtrArray *lines = w->arrivals ? arrivals_notices(w->arrivals) : g_ptr_array_new_with_free_func(g_free);
  jobs_add_notices(w->jobs, lines);
  return lines;
}
