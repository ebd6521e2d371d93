/* One request's story: when it arrived, what it waited behind, where it was sent and why, which groups came
 * from where and when, what was evicted for it, how it ended. Read from the tables request and decision of a
 * result database. */
#ifndef DM_EXPLAIN_H
#define DM_EXPLAIN_H

#include <stdio.h>
#include "harness/store.h"

/* Writes the story of a request of one system's run to out; nothing on error. system NULL: the first of the
 * file. DM_ERROR_INPUT: no such system or request, or what the story needs was not stored (the message says
 * how to). */
gboolean explain_request(FILE *out, struct store_reader *reader, const char *system, uint64_t request,
                         GError **error);

#endif
