/* A known number of arrivals spread uniformly over an interval, given out one by one in order of time.
 *
 * Order statistics of n uniform variates without sorting: with k of n left, the share of the interval that
 * remains shrinks by U^(1/k) (Devroye, "Non-Uniform Random Variate Generation", 1986, V.3.2), so memory does
 * not grow with n. */
#ifndef DM_SPREAD_H
#define DM_SPREAD_H

#include <stdint.h>
#include <gsl/gsl_rng.h>

struct spread {
  uint64_t left;   /* arrivals still to come */
  double log_gone; /* -log of the share of the interval that remains */
};

static inline struct spread spread_start(uint64_t count)
{
  return (struct spread){.left = count};
}

/* Offset of the next arrival, 0 … width_ns - 1, never less than the one before. spread->left must be
 * positive. */
int64_t spread_next(struct spread *spread, gsl_rng *rng, int64_t width_ns);

#endif
