/* The figures of one system's run, gathered from its requests and from the world's meters. */
#ifndef DM_METRICS_H
#define DM_METRICS_H

#include "harness/results.h"

struct metrics;

/* Figures cover arrivals in [warmup_ns, end_ns]; end_ns TIME_NEVER until metrics_end tells it. */
struct metrics *metrics_new(int64_t warmup_ns, int64_t end_ns);
void metrics_free(struct metrics *metrics);
void metrics_request(struct metrics *metrics, const struct request_row *row);
void metrics_end(struct metrics *metrics, int64_t end_ns);
/* Answers so far, by outcome, of all arrivals: for the usage series. */
void metrics_counts(const struct metrics *metrics, uint64_t *completed, uint64_t *rejected, uint64_t *failed);
/* OUTCOME_COUNT counts of the arrivals that figures cover; all but completed and rejected are the failed. */
const uint64_t *metrics_outcomes(const struct metrics *metrics);
/* Fills what follows from requests: counts, latency, SLO, found, durations, throughput. */
void metrics_figures(const struct metrics *metrics, struct figures *figures);

#endif
