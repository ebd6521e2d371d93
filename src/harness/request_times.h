/* When a request was sent to its GPU and when it began there, on the clock of the client, who knows but the
 * durations that the answer tells and how long it took in all. */
#ifndef DM_REQUEST_TIMES_H
#define DM_REQUEST_TIMES_H

#include "core/config.h"
#include "core/messages.h"
#include "harness/results.h"

/* Fills dispatch_ns and start_ns of a row that has arrival_ns and end_ns; -1 where it never got so far. */
void request_times(const struct config *config, const struct message_answer *answer, struct request_row *row);

#endif
