/* Prints a trace's summary: aligned for people, or as one JSON object. */
#ifndef DM_TRACE_INFO_H
#define DM_TRACE_INFO_H

#include "harness/trace_summary.h"

/* reader: read to its end, for what was skipped and the quirks met. Both append to out. */
void trace_info_table(const struct trace_summary *summary, const struct trace_reader *reader,
                      const char *path, GString *out);
/* {"file","format","kind","rows","skipped":{reason:count},"quirks":[…],"span_s",…}; figures that do not apply
 * are left out (tokens) or null (a cv of two rows). */
void trace_info_json(const struct trace_summary *summary, const struct trace_reader *reader, const char *path,
                     GString *out);

#endif
