/* Trace layouts that are CSV files: columns by name, typed fields with one error line for each thing that can
 * be wrong. */
#ifndef DM_TRACE_CSV_H
#define DM_TRACE_CSV_H

#include "harness/csv.h"
#include "harness/trace_format.h"

#define TRACE_COLUMNS_MAX 16u

struct trace_csv;

struct trace_csv_layout {
  const char *column[TRACE_COLUMNS_MAX]; /* NULL-terminated; a layout numbers them by an enum; NULL names are
                                            absent */
  unsigned required;                     /* the first ones must be in the header */
  /* Turns the current record into *row: TRACE_ROW, TRACE_SKIP (counted) or TRACE_ERROR. */
  int (*fill)(struct trace_csv *source, struct trace_row *row, GError **error);
};

struct trace_csv {
  struct trace_source base;
  struct csv *csv;
  struct trace_csv_layout layout;
  int column[TRACE_COLUMNS_MAX]; /* index in the file, -1 if absent */
  GString *name;                 /* room for a composed model name */
  int64_t time_unit_ns;          /* format "csv" */
};

/* header: the names where the file has no header line, else NULL. */
struct trace_source *trace_csv_new(const struct trace_format *format, const char *path,
                                   const struct trace_csv_layout *layout, const char *const *header,
                                   GError **error);

/* Slots of a struct trace_format whose ->csv is set. */
gboolean trace_csv_detect(const struct trace_format *format, const struct trace_probe *probe);
struct trace_source *trace_csv_open(const struct trace_format *format, const char *path,
                                    const struct trace_options *options, GError **error);
void trace_csv_close(struct trace_source *source);
int trace_csv_next(struct trace_source *source, struct trace_row *row, GError **error);
gboolean trace_csv_rewind(struct trace_source *source, GError **error);

/* Fields of the current record by the layout's column number. An absent column reads as "". */
gboolean trace_csv_has(const struct trace_csv *source, unsigned column);
const char *trace_csv_text(const struct trace_csv *source, unsigned column);
/* A whole number in min..max. */
gboolean trace_csv_integer(const struct trace_csv *source, unsigned column, int64_t min, int64_t max,
                           int64_t *value, GError **error);
/* Tokens of a request. */
gboolean trace_csv_tokens(const struct trace_csv *source, unsigned column, int64_t *value, GError **error);
/* A decimal number of units of unit_ns; min_ns is the least allowed (0, or INT64_MIN). */
gboolean trace_csv_time(const struct trace_csv *source, unsigned column, int64_t unit_ns, int64_t min_ns,
                        int64_t *ns, GError **error);
/* A date and clock time. */
gboolean trace_csv_timestamp(const struct trace_csv *source, unsigned column, int64_t *ns, GError **error);
/* A decimal number of GPUs (or share of one), 0..TRACE_GPUS_MAX, to a millionth. */
gboolean trace_csv_gpus(const struct trace_csv *source, unsigned column, double *value, GError **error);
/* "FILE:LINE: column 'NAME': expected EXPECTED, found 'TEXT'". Returns FALSE. */
gboolean trace_csv_wrong(const struct trace_csv *source, unsigned column, const char *expected,
                         GError **error);

/* The CSV slots, for designated initialisers. */
#define TRACE_CSV_SLOTS .close = trace_csv_close, .next = trace_csv_next, .rewind = trace_csv_rewind

#endif
