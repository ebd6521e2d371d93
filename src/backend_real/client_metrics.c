/* What a client tells of itself: metrics over all of its runs. */
#include "backend_real/client_internal.h"

#include "backend_real/metrics_text.h"

void client_count(struct client_counts *counts, const struct request_row *row)
{
  counts->outcomes[row->outcome]++;
  counts->ended++;
  if (row->outcome != OUTCOME_COMPLETED)
    return;
  int64_t took = row->end_ns - row->arrival_ns;
  counts->latency[latency_class(took)]++;
  counts->latency_ns += (double)took;
  counts->found[row->found]++;
}

static void requests(const struct client_counts *counts, GString *text)
{
  double bound[LATENCY_BOUNDS];
  metric_family(text, "distmind_client_requests_total", METRIC_COUNTER,
                "Requests that ended, by outcome; all but completed and rejected are the failed ones.");
  for (uint32_t i = 0; i < OUTCOME_COUNT; i++)
    metric_sample(text, "distmind_client_requests_total", (double)counts->outcomes[i], "outcome",
                  outcome_name(i), NULL);
  metric_family(text, "distmind_client_requests_found_total", METRIC_COUNTER,
                "Requests completed, by how they found their model.");
  for (uint32_t i = 0; i < FOUND_COUNT; i++)
    metric_sample(text, "distmind_client_requests_found_total", (double)counts->found[i], "source",
                  found_name(i), NULL);
  for (uint32_t i = 0; i < LATENCY_BOUNDS; i++)
    bound[i] = (double)latency_bound_ns[i] / 1e9;
  metric_histogram(text, "distmind_client_request_duration_seconds",
                   "Time of completed requests from their (intended) arrival to the answer at the client.",
                   bound, LATENCY_BOUNDS, counts->latency, counts->latency_ns / 1e9);
}

void client_metrics(void *context, GString *text)
{
  const struct client *c = context;
  metrics_process(text, ACTOR(ACTOR_CLIENT, 0), c->run ? c->run->number : 0);
  requests(&c->counts, text);
  metric_single(text, "distmind_client_requests_in_flight", METRIC_GAUGE, "Requests sent and not ended.",
                (double)(c->counts.sent - c->counts.ended));
}
