/* Least squares against constants that are known. */
#include "backend_real/fit.h"

#include <criterion/criterion.h>
#include <gsl/gsl_randist.h>
#include <math.h>

#include "harness/random.h"

enum { POINTS = 24 };

/* The design's formula of a load: stream + groups x group + bytes x ns each. */
static const double truth[FIT_TERMS] = {120e3, 7e3, 0.08};

static void points_make(struct fit_point point[POINTS], double noise, uint64_t seed)
{
  gsl_rng *rng = random_stream(seed, "fit");
  for (guint i = 0; i < POINTS; i++) {
    double groups = 1 << 2 * (i % 3), bytes = (double)(1 << 20) * (double)(1 << i / 3);
    double y = truth[0] + truth[1] * groups + truth[2] * bytes;
    point[i] = (struct fit_point){.x = {1, groups, bytes}, .y = y * (1 + gsl_ran_gaussian(rng, noise))};
  }
  gsl_rng_free(rng);
}

static void expect_near(double found, double expected, double part, const char *what)
{
  cr_assert(fabs(found - expected) <= part * expected, "%s: expected %g, found %g", what, expected, found);
}

Test(fit, exact_points_give_their_constants_back)
{
  struct fit_point point[POINTS];
  struct fit fit;
  points_make(point, 0, 1);
  cr_assert(fit_points(point, POINTS, 3, &fit, NULL));
  for (guint k = 0; k < 3; k++)
    expect_near(fit.c[k], truth[k], 1e-9, "constant");
  cr_assert_lt(fit.residual, 1e-9);
}

/* Over many draws, constants lie within three standard errors as often as a normal distribution says, or the
 * errors are no errors. */
Test(fit, noisy_points_give_constants_within_their_errors)
{
  guint within = 0, all = 0;
  for (uint64_t seed = 1; seed <= 200; seed++) {
    struct fit_point point[POINTS];
    struct fit fit;
    points_make(point, 0.02, seed);
    cr_assert(fit_points(point, POINTS, 3, &fit, NULL));
    expect_near(fit.residual, 0.02, 0.6, "residual");
    expect_near(fit.c[2], truth[2], 0.05, "rate");
    for (guint k = 0; k < 3; k++, all++)
      within += fabs(fit.c[k] - truth[k]) <= 3 * fit.error[k];
  }
  cr_assert_geq(within, 0.98 * all, "%u of %u within three standard errors", within, all);
}

Test(fit, a_constant_below_zero_is_zero_and_the_others_are_fitted_without_it)
{
  struct fit_point point[POINTS];
  struct fit fit, without;
  points_make(point, 0, 1);
  for (guint i = 0; i < POINTS; i++)
    point[i].y -= 150e3 * point[i].x[0] - 0.02 * point[i].x[2];
  cr_assert(fit_points(point, POINTS, 3, &fit, NULL));
  cr_assert_eq(fit.c[0], 0);
  cr_assert_eq(fit.error[0], 0);
  for (guint i = 0; i < POINTS; i++) {
    point[i].x[0] = point[i].x[1];
    point[i].x[1] = point[i].x[2];
  }
  cr_assert(fit_points(point, POINTS, 2, &without, NULL));
  expect_near(fit.c[1], without.c[0], 1e-9, "second");
  expect_near(fit.c[2], without.c[1], 1e-9, "third");
}

Test(fit, what_cannot_be_fitted_is_refused)
{
  struct fit_point point[POINTS];
  struct fit fit;
  g_autoptr(GError) error = NULL;
  points_make(point, 0, 1);
  cr_assert_not(fit_points(point, 2, 3, &fit, &error));
  g_clear_error(&error);
  for (guint i = 0; i < POINTS; i++)
    point[i].x[1] = 2 * point[i].x[2];
  cr_assert_not(fit_points(point, POINTS, 3, &fit, &error), "two terms that are one");
  g_clear_error(&error);
  static const double bad[] = {0, -1, NAN, INFINITY};
  for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
    points_make(point, 0, 1);
    point[3].y = bad[i];
    cr_assert_not(fit_points(point, POINTS, 3, &fit, &error));
    g_clear_error(&error);
  }
}

Test(fit, spread_is_median_and_quartiles)
{
  double values[] = {5, 1, 4, 2, 3}, one[] = {7};
  struct spread_of five = fit_spread(values, 5), single = fit_spread(one, 1);
  cr_assert(five.low == 2 && five.median == 3 && five.high == 4);
  cr_assert(single.low == 7 && single.median == 7 && single.high == 7);
}
