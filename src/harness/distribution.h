/* A distribution of positive sizes or times, written as one line of a generator spec:
 *
 *   constant V | uniform LOW HIGH | exponential MEAN [MAX] | lognormal MEDIAN SIGMA [MAX]
 *
 * MAX cuts draws off at that value (they become MAX). Numbers are positive and at most 10^12; sigma is at
 * most 10. */
#ifndef DM_DISTRIBUTION_H
#define DM_DISTRIBUTION_H

#include <glib.h>
#include <gsl/gsl_rng.h>

struct distribution_kind;

struct distribution {
  const struct distribution_kind *kind; /* NULL: none given */
  double parameter[2];
  double max; /* infinity without */
};

/* FALSE + DM_ERROR_INPUT (file, line). */
gboolean distribution_parse(const char *text, const char *file, unsigned line,
                            struct distribution *distribution, GError **error);
double distribution_draw(const struct distribution *distribution, gsl_rng *rng);

#endif
