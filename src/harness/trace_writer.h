/* Writes the native CSV into PATH.partial and renames it at the end, so that no half-written trace is ever
 * seen. */
#ifndef DM_TRACE_WRITER_H
#define DM_TRACE_WRITER_H

#include "harness/trace.h"

/* Columns after arrival_s that the file gets; an absent value is an empty field. */
struct trace_columns {
  gboolean model, input_tokens, output_tokens, service, job /* num_gpu and duration_s */;
};

struct trace_writer;

/* An existing PATH is refused without force (DM_ERROR_INPUT). */
struct trace_writer *trace_writer_new(const char *path, gboolean force, const struct trace_columns *columns,
                                      GError **error);
/* Write errors are kept and returned by trace_writer_finish. */
void trace_writer_add(struct trace_writer *writer, const struct trace_row *row);
/* Renames to PATH; frees writer in any case. */
gboolean trace_writer_finish(struct trace_writer *writer, GError **error);
/* Removes the partial file; frees writer. NULL is allowed. */
void trace_writer_abandon(struct trace_writer *writer);

#endif
