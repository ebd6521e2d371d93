/* Open-loop arrivals: when the next request comes, and for which model. A function of experiment and seed
 * alone.
 *
 * Poisson and gamma processes, or a trace, streamed; or its rows in a temporary file, overlaid in copies to
 * reach a load. Memory does not grow with the rows. */
#ifndef DM_ARRIVALS_H
#define DM_ARRIVALS_H

#include "harness/setup.h"

struct arrival {
  int64_t at_ns; /* from the start of the run */
  uint32_t model;
  int64_t service_ns; /* 0 = the profile's */
};

struct arrivals;

struct arrivals *arrivals_new(const struct setup *setup, GError **error);
void arrivals_free(struct arrivals *arrivals);
/* 1: *next is filled; 0: no more; -1: error set. Never decreases in time. */
int arrivals_next(struct arrivals *arrivals, struct arrival *next, GError **error);
/* Time of the last arrival, -1 where it is not known beforehand. */
int64_t arrivals_span_ns(const struct arrivals *arrivals);
/* Lines for the user: quirks of the trace, tokens ignored, copies overlaid. Free with g_ptr_array_unref. */
GPtrArray *arrivals_notices(const struct arrivals *arrivals);

#endif
