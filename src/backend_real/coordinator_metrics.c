/* What the controller's process tells of itself: metrics over all of its runs. */
#include "backend_real/coordinator_internal.h"

#include "backend_real/metrics_text.h"
#include "core/cluster_view.h"

/* Counters never fall: what a run's controller counted is kept when it goes. */
static void usage_sum(struct controller_usage *to, const struct controller_usage *from)
{
  to->admitted += from->admitted;
  for (uint32_t i = 0; i < OUTCOME_COUNT; i++)
    to->outcomes[i] += from->outcomes[i];
  for (uint32_t i = 0; i < FOUND_COUNT; i++)
    to->found[i] += from->found[i];
  for (uint32_t i = 0; i <= LATENCY_BOUNDS; i++)
    to->latency[i] += from->latency[i];
  to->latency_ns += from->latency_ns;
  to->retries += from->retries;
  to->heartbeats_missed += from->heartbeats_missed;
  to->members_lost += from->members_lost;
}

void coordinator_metrics_keep(struct coordinator *c)
{
  struct controller_usage usage;
  if (!c->controller)
    return;
  controller_usage(c->controller, &usage);
  usage_sum(&c->before.usage, &usage);
  c->before.jobs_done += controller_jobs_done(c->controller);
}

static void requests(const struct controller_usage *u, GString *text)
{
  double bound[LATENCY_BOUNDS];
  metric_family(text, "distmind_requests_total", METRIC_COUNTER,
                "Requests answered, by outcome; timed_out and lost are the failed ones.");
  for (uint32_t i = 0; i < OUTCOME_COUNT; i++)
    if (i != OUTCOME_INTERRUPTED) /* clients count those */
      metric_sample(text, "distmind_requests_total", (double)u->outcomes[i], "outcome", outcome_name(i),
                    NULL);
  metric_family(text, "distmind_requests_found_total", METRIC_COUNTER,
                "Requests completed, by how they found their model.");
  for (uint32_t i = 0; i < FOUND_COUNT; i++)
    metric_sample(text, "distmind_requests_found_total", (double)u->found[i], "source", found_name(i), NULL);
  for (uint32_t i = 0; i < LATENCY_BOUNDS; i++)
    bound[i] = (double)latency_bound_ns[i] / 1e9;
  metric_histogram(text, "distmind_request_duration_seconds",
                   "Time of completed requests from admission at the controller to the answer.", bound,
                   LATENCY_BOUNDS, u->latency, u->latency_ns / 1e9);
  metric_single(text, "distmind_request_retries_total", METRIC_COUNTER,
                "Requests sent to a GPU again after a failure.", (double)u->retries);
}

/* --- now
 * ----------------------------------------------------------------------------------------------------------*/

/* Those of an interrupted run that were never answered are in flight no longer: only the run that is on
 * counts. */
static uint64_t in_flight(const struct controller *controller)
{
  struct controller_usage u;
  controller_usage(controller, &u);
  for (uint32_t i = 0; i < OUTCOME_COUNT; i++)
    u.admitted -= u.outcomes[i];
  return u.admitted;
}

static void queue(const struct coordinator *c, GString *text)
{
  const struct controller *controller = c->controller;
  metric_single(text, "distmind_requests_in_flight", METRIC_GAUGE, "Requests admitted and not answered.",
                controller ? (double)in_flight(controller) : 0);
  metric_single(text, "distmind_requests_waiting", METRIC_GAUGE,
                "Of these, those not started, as far as the controller knows.",
                controller ? (double)controller_queue(controller) : 0);
  metric_single(text, "distmind_training_jobs_left", METRIC_GAUGE, "Training jobs that are not finished.",
                controller ? (double)controller_jobs_left(controller) : 0);
  metric_single(text, "distmind_training_jobs_done_total", METRIC_COUNTER, "Training jobs finished.",
                (double)(c->before.jobs_done + (controller ? controller_jobs_done(controller) : 0)));
}

static void pool(const struct coordinator *c, enum actor_kind kind, const char *name, GString *text)
{
  static const char *const states[MEMBER_STATES] = {
      [MEMBER_ABSENT] = "absent", [MEMBER_UP] = "up", [MEMBER_LEAVING] = "leaving", [MEMBER_LOST] = "lost"};
  uint32_t count[MEMBER_STATES] = {0};
  if (c->controller)
    controller_members(c->controller, kind, count);
  for (uint32_t i = 0; i < MEMBER_STATES; i++)
    metric_sample(text, "distmind_members", count[i], "pool", name, "state", states[i], NULL);
}

static void members(const struct coordinator *c, const struct controller_usage *u, GString *text)
{
  metric_family(text, "distmind_members", METRIC_GAUGE, "Places of the run's pools, by state.");
  pool(c, ACTOR_GPU_SERVER, "gpu", text);
  pool(c, ACTOR_MEMORY_SERVER, "memory", text);
  metric_single(text, "distmind_members_lost_total", METRIC_COUNTER,
                "Servers given up: silent, or broken off.", (double)u->members_lost);
  metric_single(text, "distmind_heartbeats_missed_total", METRIC_COUNTER,
                "Looks at a member, one a heartbeat, that found it silent for two of them.",
                (double)u->heartbeats_missed);
}

static void peers(const struct coordinator *c, GString *text)
{
  static const enum actor_kind kinds[] = {ACTOR_CLIENT, ACTOR_GPU_SERVER, ACTOR_MEMORY_SERVER};
  struct hub_counts counts;
  hub_counts(c->hub, &counts);
  metric_family(text, "distmind_peers", METRIC_GAUGE, "Processes linked to the controller, by role.");
  for (uint32_t i = 0; i < G_N_ELEMENTS(kinds); i++)
    metric_sample(text, "distmind_peers", counts.joined[kinds[i]], "role", peer_name(ACTOR(kinds[i], 0)),
                  NULL);
  metric_single(text, "distmind_peers_refused_total", METRIC_COUNTER,
                "Control connections refused: no or a wrong key, no hello, a place that is taken.",
                (double)counts.refused);
  metric_single(text, "distmind_peers_expelled_total", METRIC_COUNTER,
                "Peers expelled for what they sent, or because they read nothing.", (double)counts.expelled);
  metric_single(text, "distmind_peers_lost_total", METRIC_COUNTER,
                "Peers that left, broke off or were expelled.", (double)counts.lost);
}

void coordinator_metrics(void *context, GString *text)
{
  const struct coordinator *c = context;
  struct controller_usage usage = c->before.usage, now;
  if (c->controller) {
    controller_usage(c->controller, &now);
    usage_sum(&usage, &now);
  }
  metrics_process(text, ACTOR(ACTOR_CONTROLLER, 0), c->stage == RUN_NONE ? 0 : c->spec.run);
  requests(&usage, text);
  queue(c, text);
  members(c, &usage, text);
  peers(c, text);
}
