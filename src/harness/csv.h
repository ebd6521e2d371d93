/* Streaming CSV reader (RFC 4180 and its common deviations): quoted fields, CRLF, no final newline, a byte
 * order mark, empty lines (passed over). Fields point into one buffer and last until the next call; nothing
 * is allocated per record.
 *
 * A file must be a regular one. Longer records or fields, more columns, a NUL byte, an open quote, or a
 * record with another number of fields than the header are DM_ERROR_INPUT with file and line. */
#ifndef DM_CSV_H
#define DM_CSV_H

#include <glib.h>

#define CSV_RECORD_MAX  (256u * 1024) /* bytes */
#define CSV_FIELD_MAX   (64u * 1024)  /* bytes */
#define CSV_COLUMNS_MAX 4096u

enum csv_quirk {
  CSV_QUIRK_CRLF = 1,
  CSV_QUIRK_NO_FINAL_NEWLINE = 2,
  CSV_QUIRK_BOM = 4,
  CSV_QUIRK_QUOTES = 8,
  CSV_QUIRK_EMPTY_LINES = 16,
};

struct csv;

struct csv *csv_open(const char *path, GError **error);
void csv_close(struct csv *csv);

/* Takes the first record as the header: from then on every record must have as many fields. */
gboolean csv_read_header(struct csv *csv, GError **error);
/* For files without a header line: names, NULL-terminated. */
void csv_set_header(struct csv *csv, const char *const *names);
/* Index of a header name, -1 if absent. */
int csv_column(const struct csv *csv, const char *name);
/* How many columns of the header have the name. */
unsigned csv_columns_named(const struct csv *csv, const char *name);
/* Header names joined by commas, shortened for messages. Free with g_free. */
char *csv_header_text(const struct csv *csv);

/* 1: a record; 0: end; -1: error. */
int csv_next(struct csv *csv, GError **error);
/* Starts again after the header. */
gboolean csv_rewind(struct csv *csv, GError **error);

unsigned csv_fields(const struct csv *csv);
/* NUL-terminated text of field i of the current record; i < csv_fields. */
const char *csv_text(const struct csv *csv, unsigned i);
size_t csv_length(const struct csv *csv, unsigned i);
/* Line on which the current record begins, from 1. */
unsigned csv_line(const struct csv *csv);
/* Set of enum csv_quirk met so far. */
unsigned csv_quirks(const struct csv *csv);

#endif
