/* Traces: one interface over every layout. A reader streams rows in order of arrival, in memory that does not
 * grow.
 *
 * A trace is of requests or of training jobs. A format is one file (trace_NAME.c) with a struct trace_format
 * and one line in the registry of trace.c. */
#ifndef DM_TRACE_H
#define DM_TRACE_H

#include <glib.h>
#include "core/units.h"

enum trace_kind { TRACE_REQUESTS, TRACE_JOBS, TRACE_NODES /* `trace info` only */ };

/* One request or job. Strings belong to the reader and last until the next call. Absent numbers are -1. */
struct trace_row {
  int64_t arrival_ns; /* from the first row's arrival; never decreases */
  const char *model;  /* model or function name, NULL if the layout has none */
  int64_t input_tokens, output_tokens;
  int64_t service_ns;  /* requests: as traced */
  double gpus;         /* jobs: num_gpu (fractions where the layout has them) */
  int64_t duration_ns; /* jobs: run time at that number of GPUs */
  unsigned line;       /* of the file; 0: the row was not read from one line */
};

struct trace_options {
  const char *format; /* a format's name, "auto" or NULL */
  uint64_t seed;      /* layouts with counts per minute draw the arrivals inside it */
  /* Columns of any other CSV, by header name (format "csv"); NULL = absent. time_unit: ns per unit, 0 =
   * seconds. */
  const char *time_column, *model_column, *input_column, *output_column, *service_column;
  double time_unit_ns; /* 1e9, 1e6, 1e3 or 1 */
};

struct trace_reader;

/* NULL + DM_ERROR_INPUT (file, line). Detects the layout where format is auto. Reads the file once to check
 * its order (a file that is not in order of arrival is sorted through a temporary file), so malformed times
 * are found here; a trace without a row is an error. */
struct trace_reader *trace_open(const char *path, const struct trace_options *options, GError **error);
void trace_close(struct trace_reader *reader);
/* 1: *row is filled; 0: end; -1: error set. Arrivals lie within 1e9 s of the first, a job takes at most 1e9
 * s, a request at most 1e6 s. */
int trace_next(struct trace_reader *reader, struct trace_row *row, GError **error);
/* Starts again at the first row. */
gboolean trace_rewind(struct trace_reader *reader, GError **error);
enum trace_kind trace_kind(const struct trace_reader *reader);
const char *trace_format_name(const struct trace_reader *reader);
/* Rows skipped so far by reason, and quirks met so far: lines for the user, "897 rows skipped: no
 * scheduled_time". */
GPtrArray *trace_notices(const struct trace_reader *reader);
uint64_t trace_rows_skipped(const struct trace_reader *reader);
/* The parts of trace_notices: counters by reason (16 at most, the first without text ends them), and lines on
 * quirks. */
struct trace_counter;
const struct trace_counter *trace_skip_reasons(const struct trace_reader *reader);
GPtrArray *trace_quirks(const struct trace_reader *reader);
/* Arrival of the last row that trace_next will give; -1: not known beforehand. */
int64_t trace_span_ns(const struct trace_reader *reader);
/* Names of all formats, for --help and messages. */
const char *const *trace_formats(void);

#endif
