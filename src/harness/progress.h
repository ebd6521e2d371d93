/* The progress bar of a run, on standard error: simulated time, per cent, requests a second, time left.
 *
 * Silent where standard error is no terminal. Drawn at most ten times a second; an update costs one reading
 * of the clock, so callers pass updates every few hundred events, not every one. */
#ifndef DM_PROGRESS_H
#define DM_PROGRESS_H

#include <glib.h>
#include <stdint.h>

struct progress;

/* total_ns: length of the run in its own time, 0 = unknown (a trace whose end is not known yet). label: the
 * system. */
struct progress *progress_new(int64_t total_ns, const char *label, gboolean quiet);
/* done_ns: the run's time now; requests: answered so far. */
void progress_update(struct progress *progress, int64_t done_ns, uint64_t requests);
/* For work that has no time of its own: the bar shows what part of it is done, 0 .. 1, and the time left. */
void progress_share(struct progress *progress, double done);
/* Erases the bar; NULL is allowed. */
void progress_free(struct progress *progress);

/* One line of the bar, width columns at most, without line end; free with g_free. elapsed_s: wall time so
 * far. */
char *progress_line(const char *label, int64_t done_ns, int64_t total_ns, uint64_t requests, double elapsed_s,
                    unsigned width);
/* The same for progress_share. */
char *progress_share_line(const char *label, double done, double elapsed_s, unsigned width);

#endif
