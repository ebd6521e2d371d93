/* Generators: mean rate, cv, popularity, diurnal shape, exact counts; specs that are wrong. */
#include "harness/generator.h"

#include <criterion/criterion.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/units.h"
#include "harness/random.h"
#include "harness/spread.h"

static struct generator *generator_of(const char *spec)
{
  g_autoptr(GError) error = NULL;
  struct generator_spec *parsed = generator_spec_parse("spec.ini", spec, strlen(spec), &error);
  cr_assert(parsed, "%s", error ? error->message : "");
  return generator_new(parsed);
}

/* Rows, and cv of the times between arrivals. */
static uint64_t measure(struct generator *generator, double *cv)
{
  struct trace_row row;
  uint64_t rows = 0;
  double mean = 0, squares = 0;
  int64_t last = 0;
  for (; generator_next(generator, &row); rows++) {
    cr_assert_geq(row.arrival_ns, last);
    double gap = (double)(row.arrival_ns - last), delta = gap - mean;
    mean += delta / (double)(rows + 1);
    squares += delta * (gap - mean);
    last = row.arrival_ns;
  }
  *cv = sqrt(squares / (double)rows) / mean;
  return rows;
}

Test(generator, poisson_rate_and_cv)
{
  double cv;
  struct generator *generator = generator_of("[trace]\nkind = poisson\nduration_s = 1000\nrate_rps = 200\n");
  uint64_t rows = measure(generator, &cv);
  /* Four standard deviations of a Poisson count, and of the cv of an exponential sample (1 / sqrt(n) to first
   * order). */
  cr_assert_float_eq((double)rows, 200000, 4 * sqrt(200000));
  cr_assert_float_eq(cv, 1, 4 / sqrt(200000));
  generator_free(generator);
}

Test(generator, gamma_rate_and_cv)
{
  static const double wanted[] = {0.25, 2, 4};
  for (int i = 0; i < 3; i++) {
    double cv;
    g_autofree char *spec =
        g_strdup_printf("[trace]\nkind = gamma\nduration_s = 2000\nrate_rps = 200\ncv = %g\n", wanted[i]);
    struct generator *generator = generator_of(spec);
    uint64_t rows = measure(generator, &cv);
    /* The count of a renewal process has variance n cv^2. */
    cr_assert_float_eq((double)rows, 400000, 4 * wanted[i] * sqrt(400000), "cv %g: %llu rows", wanted[i],
                       (unsigned long long)rows);
    cr_assert_float_eq(cv, wanted[i], 0.03 * wanted[i], "cv %g for %g", cv, wanted[i]);
    generator_free(generator);
  }
}

Test(generator, diurnal_shape)
{
  enum { BINS = 24 };
  uint64_t count[BINS] = {0};
  double chi2 = 0;
  struct trace_row row;
  struct generator *generator =
      generator_of("[trace]\nkind = diurnal\nduration_s = 48000\nrate_rps = 10\namplitude = 0.8\n"
                   "period_s = 24000\npeak_s = 14000\n");
  while (generator_next(generator, &row))
    count[row.arrival_ns / NS_PER_S % 24000 / 1000]++;
  for (int i = 0; i < BINS; i++) {
    /* Integral of the rate over the bin, in both days. */
    double from = 2 * M_PI * (i * 1000 - 14000) / 24000, to = 2 * M_PI * ((i + 1) * 1000 - 14000) / 24000;
    double expected = 2 * 10 * (1000 + 0.8 * 24000 / (2 * M_PI) * (sin(to) - sin(from)));
    chi2 += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
  }
  cr_assert(gsl_cdf_chisq_Q(chi2, BINS) > 1e-3, "chi-square %g of %d bins", chi2, BINS);
  generator_free(generator);
}

Test(generator, counts_are_exact_in_each_interval)
{
  static const uint64_t wanted[] = {120, 0, 3, 100000, 1};
  uint64_t count[5] = {0};
  struct trace_row row;
  int64_t last = 0;
  struct generator *generator =
      generator_of("[trace]\nkind = counts\ncounts = 120; 0;3;100000;1\ninterval_s = 10.5\n");
  while (generator_next(generator, &row)) {
    cr_assert_geq(row.arrival_ns, last);
    last = row.arrival_ns;
    count[row.arrival_ns / (10500 * NS_PER_MS)]++;
  }
  cr_assert(memcmp(count, wanted, sizeof wanted) == 0);
  generator_free(generator);
}

Test(generator, spread_is_uniform)
{
  /* Kolmogorov-Smirnov against the uniform distribution: D sqrt(n) exceeds 1.95 once in a thousand. */
  enum { N = 100000 };
  gsl_rng *rng = random_stream(7, "spread");
  struct spread spread = spread_start(N);
  double worst = 0;
  for (int i = 0; i < N; i++) {
    double share = (double)spread_next(&spread, rng, NS_PER_S) / NS_PER_S;
    worst = fmax(worst, fmax(fabs(share - (double)i / N), fabs(share - (double)(i + 1) / N)));
  }
  cr_assert_eq(spread.left, 0);
  cr_assert(worst * sqrt(N) < 1.95, "D sqrt(n) = %g", worst * sqrt(N));
  gsl_rng_free(rng);
}

/* Rows of each of a, b-0, b-1, b-2 by the spec. */
static void count_models(const char *popularity, uint64_t count[4])
{
  static const char *const names[] = {"a", "b-0", "b-1", "b-2"};
  struct trace_row row;
  g_autofree char *spec = g_strconcat("[trace]\nkind = poisson\nduration_s = 1000\nrate_rps = 200\n"
                                      "[models]\na = 1\nb = 3\n",
                                      popularity, NULL);
  struct generator *generator = generator_of(spec);
  memset(count, 0, 4 * sizeof *count);
  while (generator_next(generator, &row)) {
    int i = 0;
    while (strcmp(names[i], row.model) != 0)
      i++;
    count[i]++;
  }
  generator_free(generator);
}

static void expect_shares(const uint64_t count[4], const double weight[4])
{
  double rows = 0, total = 0, chi2 = 0;
  for (int i = 0; i < 4; i++) {
    rows += (double)count[i];
    total += weight[i];
  }
  for (int i = 0; i < 4; i++) {
    double expected = rows * weight[i] / total;
    chi2 += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
  }
  cr_assert(gsl_cdf_chisq_Q(chi2, 3) > 1e-3, "chi-square %g", chi2);
}

Test(generator, popularity_by_zipf_and_by_weight)
{
  uint64_t count[4];
  count_models("", count);
  expect_shares(count, (double[]){1, 1, 1, 1});
  count_models("[popularity]\nzipf = 1.2\n", count);
  expect_shares(count, (double[]){1, pow(2, -1.2), pow(3, -1.2), pow(4, -1.2)});
  count_models("[weights]\na = 1\nb = 6\n", count);
  expect_shares(count, (double[]){1, 2, 2, 2});
}

Test(generator, demand_follows_its_distribution_and_leaves_arrivals_alone)
{
  const char *bare = "[trace]\nkind = poisson\nduration_s = 1000\nrate_rps = 100\n";
  g_autofree char *full = g_strconcat(bare,
                                      "[tokens]\ninput = lognormal 512 1 8192\noutput = exponential 100\n"
                                      "[service]\ntime_ms = uniform 10 20\n",
                                      NULL);
  struct generator *plain = generator_of(bare), *with_demand = generator_of(full);
  struct trace_row left, right;
  double rows = 0, under_median = 0, output = 0, service = 0;
  while (generator_next(plain, &left)) {
    cr_assert(generator_next(with_demand, &right));
    cr_assert_eq(left.arrival_ns, right.arrival_ns);
    cr_assert(left.input_tokens == -1 && left.service_ns == -1 && !left.model);
    cr_assert(right.input_tokens >= 1 && right.input_tokens <= 8192 && right.output_tokens >= 1);
    cr_assert(right.service_ns >= 10 * NS_PER_MS && right.service_ns <= 20 * NS_PER_MS);
    rows++;
    under_median += right.input_tokens <= 512;
    output += (double)right.output_tokens;
    service += (double)right.service_ns / NS_PER_MS;
  }
  cr_assert(!generator_next(with_demand, &right));
  cr_assert_float_eq(under_median / rows, 0.5, 4 * 0.5 / sqrt(rows));
  cr_assert_float_eq(output / rows, 100, 4 * 100 / sqrt(rows));
  cr_assert_float_eq(service / rows, 15, 4 * 2.9 / sqrt(rows));
  generator_free(plain);
  generator_free(with_demand);
}

Test(generator, wrong_specs_are_named_with_their_line)
{
  static const struct {
    const char *spec, *expected;
  } cases[] = {
      {"[models]\na = 1\n", "spec.ini: expected a section [trace]"},
      {"[trace]\nkind = poison\n",
       "spec.ini:2: kind: expected poisson, gamma, diurnal or counts, found 'poison'"},
      {"[trace]\nkind = poisson\nduration_s = 1\n", "spec.ini:1: expected a key 'rate_rps' in [trace]"},
      {"[trace]\nkind = poisson\nduration_s = 1\nrate_rps = 1\ncv = 2\n",
       "spec.ini:5: key 'cv' is of no use to kind = poisson"},
      {"[trace]\nkind = poisson\nduration = 1\n",
       "spec.ini:3: unknown key 'duration' in [trace], nearest is 'duration_s'"},
      {"[trace]\nkind = poisson\nduration_s = 1\nrate_rps = nan\n",
       "spec.ini:4: rate_rps: expected a number"},
      {"[trace]\nkind = poisson\nduration_s = 0\nrate_rps = 1\n",
       "spec.ini:3: duration_s: expected seconds above 0"},
      {"[trace]\nkind = poisson\nduration_s = 1e9\nrate_rps = 1e8\n", "expected at most 10^10 rows"},
      {"[trace]\nkind = counts\ncounts = 1;-2\n", "spec.ini:3: counts: expected whole numbers"},
      {"[trace]\nkind = counts\ncounts = 1\n[model]\na = 1\n",
       "spec.ini:4: unknown section [model], nearest is [models]"},
      {"[trace]\nkind = counts\ncounts = 1\n[models]\na = 0\n",
       "spec.ini:5: a: expected a number of variants"},
      {"[trace]\nkind = counts\ncounts = 1\n[popularity]\nzipf = 1\n",
       "spec.ini:4: [popularity] needs [models]"},
      {"[trace]\nkind = counts\ncounts = 1\n[models]\na = 1\nb = 1\n[weights]\na = 1\n",
       "spec.ini:7: expected a weight of 'b'"},
      {"[trace]\nkind = counts\ncounts = 1\n[models]\na = 1\n[weights]\na = 1\nc = 1\n",
       "spec.ini:8: 'c' is not in [models]"},
      {"[trace]\nkind = counts\ncounts = 1\n[tokens]\ninput = lognormal 1\n",
       "spec.ini:5: expected lognormal MEDIAN SIGMA [MAX]"},
      {"[trace]\nkind = counts\ncounts = 1\n[tokens]\ninput = normal 1 2\n",
       "spec.ini:5: expected constant, uniform"},
      {"[trace]\nkind = counts\ncounts = 1\n[service]\ntime_ms = uniform 2 1\n", "with LOW <= HIGH"},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autoptr(GError) error = NULL;
    g_autoptr(GeneratorSpec) spec =
        generator_spec_parse("spec.ini", cases[i].spec, strlen(cases[i].spec), &error);
    cr_assert(!spec, "expected an error: %s", cases[i].expected);
    cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
    cr_assert(strstr(error->message, cases[i].expected), "expected '%s', found '%s'", cases[i].expected,
              error->message);
  }
}
