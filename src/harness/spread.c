/* Arrivals spread over an interval in order of time; see spread.h. */
#include "harness/spread.h"

#include <gsl/gsl_math.h>
#include <gsl/gsl_randist.h>

#include "core/units.h"

int64_t spread_next(struct spread *spread, gsl_rng *rng, int64_t width_ns)
{
  spread->log_gone += gsl_ran_exponential(rng, 1.0 / (double)spread->left);
  spread->left--;
  int64_t offset = (int64_t)(-gsl_expm1(-spread->log_gone) * (double)width_ns);
  return min_i64(offset, width_ns - 1);
}
