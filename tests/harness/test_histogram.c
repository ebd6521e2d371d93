/* The histogram against exact percentiles of sorted values. */
#include "harness/histogram.h"
#include "core/units.h"
#include <criterion/criterion.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>

#define VALUES 20000

static int compare(const void *a, const void *b)
{
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* 0 uniform, 1 exponential (30 ms), 2 heavy tail (Pareto 1.1), 3 all magnitudes up to 2^62, 4 small whole
 * numbers. */
static int64_t draw(gsl_rng *rng, int distribution)
{
  switch (distribution) {
  case 0:
    return (int64_t)(gsl_rng_uniform(rng) * 1e9);
  case 1:
    return (int64_t)gsl_ran_exponential(rng, 3e7);
  case 2:
    return (int64_t)MIN(gsl_ran_pareto(rng, 1.1, 1e6), 4e18);
  case 3:
    return (int64_t)exp2(gsl_rng_uniform(rng) * 61.9);
  default:
    return (int64_t)gsl_rng_uniform_int(rng, 3000);
  }
}

/* Nearest rank, by integers: the least value with at least q of all values at or below it; q in millionths.
 */
static int64_t exact_quantile(const int64_t *sorted, uint64_t count, uint64_t millionths)
{
  uint64_t rank = (count * millionths + 999999) / 1000000;
  return sorted[rank == 0 ? 0 : rank - 1];
}

static void check_distribution(int distribution, uint64_t count)
{
  gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
  gsl_rng_set(rng, 7 + (unsigned)distribution);
  struct histogram *histogram = histogram_new();
  g_autofree int64_t *values = g_new(int64_t, count);
  long double sum = 0;
  for (uint64_t i = 0; i < count; i++) {
    values[i] = draw(rng, distribution);
    sum += values[i];
    histogram_add(histogram, values[i]);
  }
  qsort(values, count, sizeof *values, compare);
  for (uint64_t millionths = 0; millionths <= 1000000; millionths += 1000) {
    int64_t exact = exact_quantile(values, count, millionths);
    int64_t found = histogram_quantile(histogram, (double)millionths / 1e6);
    double error = fabs((double)(found - exact));
    cr_assert(error < 0.001 * (double)exact || found == exact, "distribution %d, q %g: %ld is not %ld",
              distribution, (double)millionths / 1e6, found, exact);
  }
  struct latency_figures figures = histogram_figures(histogram);
  cr_assert_eq(figures.max, (double)values[count - 1] / NS_PER_MS);
  cr_assert_float_eq(figures.mean, (double)(sum / count) / NS_PER_MS, 1e-12 * figures.mean);
  cr_assert_eq(histogram_count(histogram), count);
  histogram_free(histogram);
  gsl_rng_free(rng);
}

Test(histogram, is_within_a_thousandth_of_exact_percentiles)
{
  for (int distribution = 0; distribution < 5; distribution++) {
    check_distribution(distribution, VALUES);
    check_distribution(distribution, 1);
    check_distribution(distribution, 97);
  }
}

Test(histogram, takes_every_int64)
{
  struct histogram *histogram = histogram_new();
  cr_assert_eq(histogram_quantile(histogram, 0.5), 0);
  cr_assert_eq(histogram_figures(histogram).mean, 0);
  for (int bit = 0; bit < 63; bit++)
    for (int64_t near = -1; near <= 1; near++)
      histogram_add(histogram, (int64_t)(1ULL << bit) + near);
  histogram_add(histogram, INT64_MIN);
  histogram_add(histogram, INT64_MAX);
  cr_assert_eq(histogram_count(histogram), 63 * 3 + 2);
  cr_assert_eq(histogram_quantile(histogram, 0), 0);
  cr_assert_eq(histogram_quantile(histogram, 1), (1LL << 62) - 1);
  histogram_free(histogram);
}

Test(histogram, mean_is_exact_where_doubles_are_not)
{
  struct histogram *histogram = histogram_new();
  histogram_add(histogram, 1LL << 60);
  for (int i = 0; i < 1023; i++)
    histogram_add(histogram, 1); /* each vanishes beside 2^60 in a double */
  cr_assert_eq(histogram_figures(histogram).mean, ((double)((1LL << 60) + 1023)) / 1024 / NS_PER_MS);
  histogram_free(histogram);
}
