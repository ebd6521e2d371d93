/* The load generator: the client actor of both worlds. Sends requests open loop (at their intended times,
 * however late the answers), closed loop, or by shifting demand; submits training jobs; books every answer.
 *
 * Requests are numbered 0, 1, … in order of arrival. Each ends in exactly one request_row. */
#ifndef DM_WORKLOAD_H
#define DM_WORKLOAD_H

#include "core/world.h"
#include "harness/results.h"
#include "harness/setup.h"

struct workload;

/* done: called for every request that has ended. */
typedef void (*workload_done)(void *context, const struct request_row *row);

struct workload *workload_new(const struct setup *setup, struct world *world, workload_done done,
                              void *context, GError **error);
void workload_free(struct workload *workload);
extern const struct actor_ops workload_actor;

/* Time of the last arrival, -1 while it is not known. */
int64_t workload_span_ns(const struct workload *workload);
/* No request and no job will come any more, and every request has been answered. */
gboolean workload_finished(const struct workload *workload);
/* Training jobs submitted. */
uint64_t workload_jobs(const struct workload *workload);
uint64_t workload_ended(const struct workload *workload);
/* Ends every request in flight as interrupted. */
void workload_interrupt(struct workload *workload);
/* What went wrong while it ran (a trace's malformed row), or NULL. */
const GError *workload_error(const struct workload *workload);
/* Called once when workload_finished becomes true, or on an error. */
void workload_on_finished(struct workload *workload, void (*finished)(void *context), void *context);
GPtrArray *workload_notices(const struct workload *workload);

#endif
