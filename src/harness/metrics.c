/* Figures from requests; see metrics.h. */
#include "harness/metrics.h"

#include "harness/histogram.h"

struct metrics {
  int64_t warmup_ns, end_ns, last_answer;
  struct histogram *latency;
  uint64_t requests, slo_met, outcomes[OUTCOME_COUNT]; /* arrivals in the window */
  uint64_t in_window;                                  /* completions in the window */
  uint64_t found[FOUND_COUNT];
  uint64_t all_completed, all_rejected, all_failed;
};

struct metrics *metrics_new(int64_t warmup_ns, int64_t end_ns)
{
  struct metrics *m = g_new0(struct metrics, 1);
  m->warmup_ns = warmup_ns;
  m->end_ns = end_ns;
  m->latency = histogram_new();
  return m;
}

void metrics_free(struct metrics *m)
{
  if (!m)
    return;
  histogram_free(m->latency);
  g_free(m);
}

void metrics_end(struct metrics *m, int64_t end_ns)
{
  m->end_ns = end_ns;
}

static void count_all(struct metrics *m, const struct request_row *row)
{
  m->all_completed += row->outcome == OUTCOME_COMPLETED;
  m->all_rejected += row->outcome == OUTCOME_REJECTED;
  m->all_failed += row->outcome != OUTCOME_COMPLETED && row->outcome != OUTCOME_REJECTED;
}

void metrics_request(struct metrics *m, const struct request_row *row)
{
  count_all(m, row);
  m->last_answer = MAX(m->last_answer, row->end_ns);
  if (row->outcome == OUTCOME_COMPLETED && row->end_ns >= m->warmup_ns && row->end_ns <= m->end_ns)
    m->in_window++;
  if (row->arrival_ns < m->warmup_ns || row->arrival_ns > m->end_ns)
    return;
  m->requests++;
  m->outcomes[row->outcome]++;
  if (row->outcome != OUTCOME_COMPLETED)
    return;
  m->slo_met += row->slo_met != FALSE;
  m->found[row->found]++;
  histogram_add(m->latency, row->end_ns - row->arrival_ns);
}

void metrics_counts(const struct metrics *m, uint64_t *completed, uint64_t *rejected, uint64_t *failed)
{
  *completed = m->all_completed;
  *rejected = m->all_rejected;
  *failed = m->all_failed;
}

const uint64_t *metrics_outcomes(const struct metrics *m)
{
  return m->outcomes;
}

void metrics_figures(const struct metrics *m, struct figures *f)
{
  double window = (double)(m->end_ns - m->warmup_ns) / 1e9;
  f->requests = m->requests;
  f->completed = m->outcomes[OUTCOME_COMPLETED];
  f->rejected = m->outcomes[OUTCOME_REJECTED];
  f->failed = m->requests - f->completed - f->rejected;
  f->duration_s = (double)m->last_answer / 1e9;
  f->window_s = window > 0 ? window : 0;
  f->throughput_rps = window > 0 ? (double)m->in_window / window : 0;
  f->latency_ms = histogram_figures(m->latency);
  f->slo_attainment = m->requests ? (double)m->slo_met / (double)m->requests : 0;
  for (int i = 0; i < FOUND_COUNT; i++)
    f->found[i] = m->found[i];
}
