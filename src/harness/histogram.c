/* Log-linear histogram; see histogram.h.
 *
 * Values below 2^SUB_BITS have a bucket each; above, every power of two is cut into 2^SUB_BITS equal buckets,
 * so a bucket is at most 2^-SUB_BITS of its value wide and its middle is off by at most half of that: 0.05%
 * with 10 bits. */
#include "harness/histogram.h"
#include "core/units.h"
#include <math.h>

#define SUB_BITS   10
#define SUB_COUNT  (1u << SUB_BITS)
#define VALUE_BITS 62 /* values are clamped below 2^62 ns, 146 years */
#define BUCKETS    ((VALUE_BITS - SUB_BITS + 1) * SUB_COUNT)

struct histogram {
  uint64_t count;
  unsigned __int128 sum; /* exact: 2^64 values of 2^62 fit */
  int64_t max;
  uint64_t bucket[BUCKETS];
};

struct histogram *histogram_new(void)
{
  return g_new0(struct histogram, 1);
}

void histogram_free(struct histogram *histogram)
{
  g_free(histogram);
}

static inline uint32_t bucket_of(uint64_t value)
{
  if (value < SUB_COUNT)
    return (uint32_t)value;
  uint32_t shift = (uint32_t)(63 - __builtin_clzll(value)) - SUB_BITS;
  return (shift << SUB_BITS) + (uint32_t)(value >> shift);
}

/* Middle of the bucket's range. */
static int64_t bucket_value(uint32_t bucket)
{
  if (bucket < 2 * SUB_COUNT)
    return bucket;
  uint32_t shift = (bucket >> SUB_BITS) - 1;
  uint64_t low = (uint64_t)(SUB_COUNT + (bucket & (SUB_COUNT - 1))) << shift;
  return (int64_t)(low + ((1ULL << shift) - 1) / 2);
}

void histogram_add(struct histogram *histogram, int64_t ns)
{
  uint64_t value = ns < 0 ? 0 : (uint64_t)ns;
  if (value >> VALUE_BITS)
    value = (1ULL << VALUE_BITS) - 1;
  histogram->count++;
  histogram->sum += value;
  histogram->max = max_i64(histogram->max, (int64_t)value);
  histogram->bucket[bucket_of(value)]++;
}

uint64_t histogram_count(const struct histogram *histogram)
{
  return histogram->count;
}

int64_t histogram_quantile(const struct histogram *histogram, double q)
{
  if (histogram->count == 0)
    return 0;
  /* The factor keeps a product such as 0.07 x 100 = 7.000000000000001 from being rounded up to the next rank.
   */
  double rank = ceil(q * (double)histogram->count * (1 - 1e-15));
  uint64_t need = !(rank > 1) ? 1 : rank >= (double)histogram->count ? histogram->count : (uint64_t)rank;
  if (need == histogram->count)
    return histogram->max;
  uint64_t seen = 0;
  for (uint32_t i = 0; i < BUCKETS; i++) {
    seen += histogram->bucket[i];
    if (seen >= need)
      return min_i64(bucket_value(i), histogram->max);
  }
  return histogram->max;
}

struct latency_figures histogram_figures(const struct histogram *histogram)
{
  if (histogram->count == 0)
    return (struct latency_figures){0};
  const double ms = (double)NS_PER_MS;
  return (struct latency_figures){
      .mean = (double)histogram->sum / (double)histogram->count / ms,
      .p50 = (double)histogram_quantile(histogram, 0.50) / ms,
      .p90 = (double)histogram_quantile(histogram, 0.90) / ms,
      .p95 = (double)histogram_quantile(histogram, 0.95) / ms,
      .p99 = (double)histogram_quantile(histogram, 0.99) / ms,
      .p999 = (double)histogram_quantile(histogram, 0.999) / ms,
      .max = (double)histogram->max / ms,
  };
}
