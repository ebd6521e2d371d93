/* Log-linear histogram of latencies: relative error under 0.1% at any percentile, constant time and memory.
 */
#ifndef DM_HISTOGRAM_H
#define DM_HISTOGRAM_H

#include "harness/results.h"

struct histogram;

struct histogram *histogram_new(void);
void histogram_free(struct histogram *histogram);
void histogram_add(struct histogram *histogram, int64_t ns);
uint64_t histogram_count(const struct histogram *histogram);
/* The value at quantile q in 0..1 (nearest rank), ns; 0 when empty. */
int64_t histogram_quantile(const struct histogram *histogram, double q);
/* Mean and max are exact. */
struct latency_figures histogram_figures(const struct histogram *histogram);

#endif
