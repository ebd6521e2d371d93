/* Least squares of measured times; see fit.h. */
#include "backend_real/fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

#include "core/error.h"

struct system {
  const struct fit_point *points;
  guint count, terms;
  gboolean used[FIT_TERMS]; /* terms that are not held at 0 */
  guint unknowns;
};

static void matrix_fill(const struct system *s, gsl_matrix *x, gsl_vector *y, gsl_vector *weight)
{
  for (guint i = 0; i < s->count; i++) {
    const struct fit_point *point = &s->points[i];
    gsl_vector_set(y, i, point->y);
    gsl_vector_set(weight, i, 1 / (point->y * point->y));
    for (guint k = 0, column = 0; k < s->terms; k++)
      if (s->used[k])
        gsl_matrix_set(x, i, column++, point->x[k]);
  }
}

/* The covariance that GSL gives is for weights that are true variances; scaled by the residuals it is one
 * that the data tell themselves. */
static void take(const struct system *s, const gsl_vector *c, const gsl_matrix *covariance, double chi2,
                 struct fit *fit)
{
  guint freedom = s->count - s->unknowns;
  double scale = freedom > 0 ? chi2 / freedom : 0;
  *fit = (struct fit){.residual = sqrt(chi2 / s->count)};
  for (guint k = 0, column = 0; k < s->terms; k++)
    if (s->used[k]) {
      fit->c[k] = gsl_vector_get(c, column);
      fit->error[k] = sqrt(MAX(0, gsl_matrix_get(covariance, column, column)) * scale);
      column++;
    }
}

static gboolean solve(const struct system *s, struct fit *fit)
{
  gsl_matrix *x = gsl_matrix_alloc(s->count, s->unknowns),
             *covariance = gsl_matrix_alloc(s->unknowns, s->unknowns);
  gsl_vector *y = gsl_vector_alloc(s->count), *weight = gsl_vector_alloc(s->count),
             *c = gsl_vector_alloc(s->unknowns);
  gsl_multifit_linear_workspace *work = gsl_multifit_linear_alloc(s->count, s->unknowns);
  double chi2 = 0;
  size_t rank = 0;
  matrix_fill(s, x, y, weight);
  int status = gsl_multifit_wlinear_tsvd(x, weight, y, 1e-12, c, covariance, &chi2, &rank, work);
  gboolean good = status == GSL_SUCCESS && rank == s->unknowns;
  if (good)
    take(s, c, covariance, chi2, fit);
  gsl_multifit_linear_free(work);
  gsl_vector_free(c);
  gsl_vector_free(weight);
  gsl_vector_free(y);
  gsl_matrix_free(covariance);
  gsl_matrix_free(x);
  return good;
}

/* The coefficient that is most below 0, by its own error; terms: there is none. */
static guint most_negative(const struct fit *fit, guint terms)
{
  guint worst = terms;
  double least = 0;
  for (guint k = 0; k < terms; k++) {
    double by = fit->error[k] > 0 ? fit->c[k] / fit->error[k] : fit->c[k];
    if (fit->c[k] < 0 && by < least) {
      least = by;
      worst = k;
    }
  }
  return worst;
}

static gboolean points_check(const struct fit_point *points, guint count, guint terms, GError **error)
{
  if (terms < 1 || terms > FIT_TERMS || count < terms) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "cannot fit %u unknowns to %u points", terms, count);
    return FALSE;
  }
  for (guint i = 0; i < count; i++)
    if (!(points[i].y > 0) || !isfinite(points[i].y)) {
      g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "cannot fit to a time of %g", points[i].y);
      return FALSE;
    }
  return TRUE;
}

gboolean fit_points(const struct fit_point *points, guint count, guint terms, struct fit *fit, GError **error)
{
  struct system s = {.points = points, .count = count, .terms = terms, .unknowns = terms};
  if (!points_check(points, count, terms, error))
    return FALSE;
  for (guint k = 0; k < terms; k++)
    s.used[k] = TRUE;
  gsl_error_handler_t *before = gsl_set_error_handler_off();
  gboolean good = solve(&s, fit);
  for (guint worst; good && (worst = most_negative(fit, terms)) < terms;) {
    s.used[worst] = FALSE;
    *fit = (struct fit){.residual = 1};
    good = --s.unknowns == 0 || solve(&s, fit);
    if (s.unknowns == 0)
      break;
  }
  gsl_set_error_handler(before);
  if (!good)
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "the %u points do not tell %u unknowns apart", count,
                terms);
  return good;
}

struct spread_of fit_spread(double *values, guint count)
{
  gsl_sort(values, 1, count);
  return (struct spread_of){.median = gsl_stats_median_from_sorted_data(values, 1, count),
                            .low = gsl_stats_quantile_from_sorted_data(values, 1, count, 0.25),
                            .high = gsl_stats_quantile_from_sorted_data(values, 1, count, 0.75)};
}
