/* What `trace info` knows of a trace: counts, rates, burstiness, popularity of models, sizes of requests,
 * jobs or nodes. Filled in one pass; memory grows with the number of different models (bounded), not with the
 * rows. */
#ifndef DM_TRACE_SUMMARY_H
#define DM_TRACE_SUMMARY_H

#include "harness/histogram.h"
#include "harness/trace.h"

#define TRACE_MODELS_MAX 1000000u /* different names that are counted one by one */

struct trace_model {
  char *name;
  uint64_t rows;
  double gpus; /* nodes: GPUs of that model */
};

/* One measured quantity; scale: its histogram holds whole numbers of 1/scale. */
struct trace_quantity {
  const char *name; /* as in the JSON object */
  double scale;
  struct histogram *histogram;
  double mean, p50, p90, p99, max; /* set by the end */
};

enum trace_quantities {
  QUANTITY_INPUT,
  QUANTITY_OUTPUT,
  QUANTITY_SERVICE,
  QUANTITY_GPUS,
  QUANTITY_DURATION,
  QUANTITIES
};

struct trace_summary {
  enum trace_kind kind;
  const char *format;
  uint64_t rows;
  int64_t span_ns; /* first to last arrival */
  uint64_t distinct_times;
  double mean_rate_rps; /* rows / span; 0 without a span */
  uint64_t peak_second,
      peak_minute; /* most arrivals in one second and one minute, counted from the first arrival */
  double gap_cv; /* standard deviation of the times between arrivals over their mean; NaN under three rows */
  double burstiness; /* (cv - 1) / (cv + 1): -1 regular, 0 Poisson, towards 1 bursty (Goh and Barabasi, EPL
                        81, 2008) */
  GArray *models;    /* struct trace_model, most rows first, then by name */
  uint64_t apps; /* different names before the last slash, where every model has one (app/function); else 0 */
  uint64_t models_uncounted; /* rows of models beyond TRACE_MODELS_MAX */
  double zipf;               /* fitted exponent, NaN under two models */
  struct trace_quantity quantity[QUANTITIES];
  double gpu_hours; /* jobs: GPUs x duration */
  double gpus;      /* nodes: in all */
};

/* Reads the reader to its end. NULL + error. */
struct trace_summary *trace_summarise(struct trace_reader *reader, GError **error);
void trace_summary_free(struct trace_summary *summary);
typedef struct trace_summary TraceSummary; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TraceSummary, trace_summary_free)

/* Exponent s that makes counts of ranks 1 … n likeliest under P(r) ~ r^-s (maximum likelihood; Clauset,
 * Shalizi and Newman, SIAM Review 51, 2009, for a bounded range), from the 10,000 most frequent. NaN for n
 * < 2. */
double zipf_fit(const uint64_t *counts, unsigned n);

#endif
