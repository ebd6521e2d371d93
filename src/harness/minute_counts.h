/* Calls per function and minute, turned from one row a function into one list a minute, in a temporary SQLite
 * file. Memory holds the functions of one minute, never the calls. Errors are DM_ERROR_FAILED (disk full). */
#ifndef DM_MINUTE_COUNTS_H
#define DM_MINUTE_COUNTS_H

#include <glib.h>
#include <stdint.h>

struct minute_counts;

/* What one function does in one minute. */
struct minute_entry {
  const char *name;
  int64_t service_ns; /* -1 without a row of durations */
  uint64_t calls;
};

struct minute_counts *minute_counts_new(GError **error);
void minute_counts_free(struct minute_counts *counts);

/* Filling: durations first, then each function followed by its minutes. A second duration of one key is
 * ignored. */
gboolean minute_counts_duration(struct minute_counts *counts, const char *key, int64_t service_ns,
                                GError **error);
/* *has_duration: a duration of that key is known. */
gboolean minute_counts_function(struct minute_counts *counts, const char *key, gboolean *has_duration,
                                GError **error);
gboolean minute_counts_calls(struct minute_counts *counts, unsigned minute, uint64_t calls, GError **error);

/* Reading: begin, then minutes with calls, in order. 1: *minute and the entries are those; 0: end; -1: error.
 */
gboolean minute_counts_begin(struct minute_counts *counts, GError **error);
int minute_counts_next(struct minute_counts *counts, unsigned *minute, GError **error);
unsigned minute_counts_entries(const struct minute_counts *counts);
struct minute_entry minute_counts_entry(const struct minute_counts *counts, unsigned i);

#endif
