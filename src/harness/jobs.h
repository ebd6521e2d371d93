/* Training jobs of a trace ([training] trace = FILE), one after another in order of submission. */
#ifndef DM_JOBS_H
#define DM_JOBS_H

#include "core/messages.h"
#include "harness/setup.h"

struct jobs;

/* Without a job trace a source of no jobs. NULL + DM_ERROR_INPUT, also where the trace is of requests. */
struct jobs *jobs_new(const struct setup *setup, GError **error);
void jobs_free(struct jobs *jobs);
/* 1: *at_ns (from the start of the run) and *job are filled; 0: no more; -1: error set. */
int jobs_next(struct jobs *jobs, int64_t *at_ns, struct message_job *job, GError **error);
/* Adds lines for the user: rows skipped, quirks. */
void jobs_add_notices(const struct jobs *jobs, GPtrArray *lines);

#endif
