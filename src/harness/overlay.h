/* Copies of a trace laid over each other, in one order of arrival: how a trace of a few requests a second
 * becomes the load of a cluster.
 *
 * The first copy runs as traced; every other one is turned by an offset of its own, drawn evenly over the
 * trace's span: it begins in the middle of the trace, and the trace's beginning follows its end. So every row
 * comes once a copy, and all within the span. A row costs a few steps of a heap over the copies. */
#ifndef DM_OVERLAY_H
#define DM_OVERLAY_H

#include <gsl/gsl_rng.h>

#include "harness/ask_spool.h"

struct overlay;

/* Takes the spool, also on failure. span_ns: arrival of its last row. NULL + DM_ERROR_FAILED. */
struct overlay *overlay_new(struct ask_spool *spool, int64_t span_ns, uint32_t copies, gsl_rng *rng,
                            GError **error);
void overlay_free(struct overlay *overlay);
/* 1: *ask is filled, its arrival_ns from the start of the run; 0: no more; -1: error set. Of equal times the
 * lower copy's row comes first. */
int overlay_next(struct overlay *overlay, struct ask *ask, GError **error);

#endif
