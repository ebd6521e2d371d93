/* Least squares of measured times: y = sum of c[k] x[k], c[k] >= 0, by GSL.
 *
 * Points are weighted by 1 / y^2, so that a small time counts by its relative error as a large one does. A
 * coefficient that would come out negative (an overhead too small to be seen beside the noise) is 0, and the
 * others are fitted without it. */
#ifndef DM_FIT_H
#define DM_FIT_H

#include <glib.h>

#define FIT_TERMS 3

struct fit_point {
  double x[FIT_TERMS];
  double y; /* above 0 */
};

struct fit {
  double c[FIT_TERMS];
  double error[FIT_TERMS]; /* standard error of each, 0 for one that is 0 */
  double residual;         /* root mean square of (y - fitted) / y */
};

/* terms: how many x there are, at most FIT_TERMS. FALSE + DM_ERROR_FAILED: fewer points than terms, a y that
 * is not above 0, or points that do not tell the terms apart. */
gboolean fit_points(const struct fit_point *points, guint count, guint terms, struct fit *fit,
                    GError **error);

/* Of `count` values, at least 1; sorts them. */
struct spread_of {
  double median, low, high; /* quartiles */
};
struct spread_of fit_spread(double *values, guint count);

#endif
