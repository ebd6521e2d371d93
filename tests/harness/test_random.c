/* Random streams: the generator's published outputs, independence of purposes, Zipf frequencies. */
#include "harness/random.h"

#include <criterion/criterion.h>
#include <gsl/gsl_cdf.h>
#include <math.h>

Test(random, xoshiro_reference_outputs)
{
  /* First outputs of the authors' xoshiro256** from the state 1, 2, 3, 4. */
  static const uint64_t expected[] = {11520, 0, 1509978240, 1215971899390074240};
  gsl_rng *rng = random_stream(0, "any");
  uint64_t *state = gsl_rng_state(rng);
  for (uint64_t i = 0; i < 4; i++)
    state[i] = i + 1;
  for (int i = 0; i < 4; i++)
    cr_assert_eq(gsl_rng_get(rng), expected[i]);
  gsl_rng_free(rng);
}

Test(random, streams_depend_on_seed_and_purpose_alone)
{
  gsl_rng *a = random_stream(1, "arrivals"), *again = random_stream(1, "arrivals");
  gsl_rng *other = random_stream(1, "popularity"), *seed = random_stream(2, "arrivals");
  gsl_rng *high = random_stream(1 + (1ULL << 32), "arrivals");
  for (int i = 0; i < 100; i++) {
    uint64_t value = gsl_rng_get(a);
    cr_assert_eq(value, gsl_rng_get(again));
    cr_assert_neq(value, gsl_rng_get(other));
    cr_assert_neq(value, gsl_rng_get(seed));
    cr_assert_neq(value, gsl_rng_get(high), "all 64 bits of the seed count");
  }
  gsl_rng_free(a);
  gsl_rng_free(again);
  gsl_rng_free(other);
  gsl_rng_free(seed);
  gsl_rng_free(high);
}

Test(random, zipf_frequencies)
{
  enum { N = 200, DRAWS = 2000000 };
  static const double exponents[] = {0, 0.9, 1, 2.5};
  for (int e = 0; e < 4; e++) {
    static uint64_t count[N];
    double norm = 0, chi2 = 0, pooled = 0, pooled_expected = 0;
    int cells = 0;
    struct zipf *zipf = zipf_new(N, exponents[e]);
    gsl_rng *rng = random_stream(3, "zipf");
    for (int i = 0; i < N; i++) {
      count[i] = 0;
      norm += pow(i + 1, -exponents[e]);
    }
    for (int i = 0; i < DRAWS; i++)
      count[zipf_draw(zipf, rng)]++;
    for (int i = 0; i < N; i++) {
      double p = pow(i + 1, -exponents[e]) / norm;
      cr_assert_float_eq(zipf_probability(zipf, (uint32_t)i), p, 1e-12);
      pooled += (double)count[i];
      pooled_expected += DRAWS * p;
      if (pooled_expected < 20 && i < N - 1)
        continue;
      chi2 += (pooled - pooled_expected) * (pooled - pooled_expected) / pooled_expected;
      cells++;
      pooled = pooled_expected = 0;
    }
    double p_value = gsl_cdf_chisq_Q(chi2, cells - 1);
    cr_assert(p_value > 1e-3, "exponent %g: chi-square %g of %d cells, p %g", exponents[e], chi2, cells,
              p_value);
    gsl_rng_free(rng);
    zipf_free(zipf);
  }
}
