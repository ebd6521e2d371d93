/* Arrival processes of synthetic traces: Poisson, gamma renewal, diurnal (Poisson with a cosine rate), counts
 * per interval. */
#ifndef DM_GENERATOR_ARRIVALS_H
#define DM_GENERATOR_ARRIVALS_H

#include "harness/generator_spec.h"

struct generator_arrivals;

/* spec must outlive it. */
struct generator_arrivals *generator_arrivals_new(const struct generator_spec *spec);
void generator_arrivals_free(struct generator_arrivals *arrivals);
/* TRUE: *arrival_ns is the next arrival, never before the last; FALSE: no more. */
gboolean generator_arrivals_next(struct generator_arrivals *arrivals, int64_t *arrival_ns);

#endif
