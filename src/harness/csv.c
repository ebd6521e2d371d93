/* Streaming CSV reader; see csv.h. A record is first found whole in the buffer, then split and unquoted in
 * place. */
#include "harness/csv.h"

#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "harness/input_file.h"

#define BUFFER_BYTES (2u * CSV_RECORD_MAX)

struct field {
  char *text;
  size_t length;
};

struct csv {
  char *path;
  int fd;
  char *buffer;              /* BUFFER_BYTES, and one byte more for the last field's NUL */
  size_t begin, end;         /* bytes not yet given out */
  gboolean eof, quotes, nul; /* of the bytes in the buffer: any '"', any NUL */
  unsigned line, next_line;
  char **header; /* names, or NULL */
  gboolean header_in_file;
  unsigned columns; /* expected number of fields, 0 = any */
  unsigned fields;
  unsigned quirks;
  struct field field[CSV_COLUMNS_MAX];
};

static gboolean fill_buffer(struct csv *csv, GError **error)
{
  size_t kept = csv->end - csv->begin;
  memmove(csv->buffer, csv->buffer + csv->begin, kept);
  csv->begin = 0;
  csv->end = kept;
  while (csv->end < BUFFER_BYTES && !csv->eof) {
    gssize got = input_file_read(csv->fd, csv->path, csv->buffer + csv->end, BUFFER_BYTES - csv->end, error);
    if (got < 0)
      return FALSE;
    csv->eof = got == 0;
    csv->end += (size_t)got;
  }
  csv->quotes = memchr(csv->buffer, '"', csv->end) != NULL;
  csv->nul = memchr(csv->buffer, 0, csv->end) != NULL;
  return TRUE;
}

static gboolean start_reading(struct csv *csv, GError **error)
{
  csv->begin = csv->end = 0;
  csv->eof = FALSE;
  csv->next_line = 1;
  if (!input_file_rewind(csv->fd, csv->path, error) || !fill_buffer(csv, error))
    return FALSE;
  csv->begin = byte_order_mark(csv->buffer, csv->end);
  csv->quirks |= csv->begin ? CSV_QUIRK_BOM : 0;
  return TRUE;
}

struct csv *csv_open(const char *path, GError **error)
{
  int fd = input_file_open(path, error);
  if (fd < 0)
    return NULL;
  struct csv *csv = g_new0(struct csv, 1);
  csv->path = g_strdup(path);
  csv->fd = fd;
  csv->buffer = g_malloc(BUFFER_BYTES + 1);
  if (!start_reading(csv, error)) {
    csv_close(csv);
    return NULL;
  }
  return csv;
}

void csv_close(struct csv *csv)
{
  if (!csv)
    return;
  close(csv->fd);
  g_strfreev(csv->header);
  g_free(csv->buffer);
  g_free(csv->path);
  g_free(csv);
}

/* End of the record that starts at text: the first newline outside quotes, or NULL. Counts the newlines
 * inside. */
static char *quoted_record_end(char *text, char *end, unsigned *inner_lines)
{
  gboolean quoted = FALSE;
  *inner_lines = 0;
  for (char *at = text; at < end; at++) {
    if (*at == '"')
      quoted = !quoted;
    else if (*at == '\n') {
      if (!quoted)
        return at;
      ++*inner_lines;
    }
  }
  return NULL;
}

/* Finds the next record and takes it from the buffer: 1 and [*text, *end), 0 at the end, -1 on error. */
static int take_record(struct csv *csv, char **text, char **end, GError **error)
{
  for (;;) {
    char *start = csv->buffer + csv->begin, *limit = csv->buffer + csv->end;
    unsigned inner_lines = 0;
    char *newline = memchr(start, '\n', (size_t)(limit - start));
    if (csv->quotes && memchr(start, '"', (size_t)((newline ? newline : limit) - start)))
      newline = quoted_record_end(start, limit, &inner_lines);
    if (!newline && !csv->eof && limit - start <= (ptrdiff_t)CSV_RECORD_MAX) {
      if (!fill_buffer(csv, error))
        return -1;
      continue;
    }
    csv->line = csv->next_line;
    if (!newline && start == limit)
      return 0;
    if (!newline && csv->eof) {
      csv->quirks |= limit[-1] != '\n' ? CSV_QUIRK_NO_FINAL_NEWLINE : 0;
      newline = limit;
    }
    if (!newline || newline - start > (ptrdiff_t)CSV_RECORD_MAX) {
      input_error(error, csv->path, csv->line, "expected a record of at most %u bytes", CSV_RECORD_MAX);
      return -1;
    }
    csv->next_line += 1 + inner_lines;
    csv->begin = (size_t)(newline - csv->buffer) + (newline < limit);
    *text = start;
    *end = newline;
    return 1;
  }
}

/* Unquotes the field at *at in place; leaves *at on the comma or the end after it. NULL: no proper end. */
static char *unquote(char **at, const char *end)
{
  char *read = *at + 1, *write = *at;
  for (;; read++) {
    if (read >= end)
      return NULL;
    if (*read == '"') {
      if (read + 1 < end && read[1] == '"')
        read++;
      else
        break;
    }
    *write++ = *read;
  }
  *at = read + 1;
  return *at == end || **at == ',' ? write : NULL;
}

static gboolean split_record(struct csv *csv, char *text, char *end, GError **error)
{
  char *at = text;
  unsigned fields = 0;
  for (;; at++) {
    char *start = at, *stop;
    if (fields == CSV_COLUMNS_MAX)
      return input_error(error, csv->path, csv->line, "expected at most %u columns", CSV_COLUMNS_MAX);
    if (at < end && *at == '"') {
      csv->quirks |= CSV_QUIRK_QUOTES;
      stop = unquote(&at, end);
      if (!stop)
        return input_error(error, csv->path, csv->line, "column %u: expected a closing quote, then a comma",
                           fields + 1);
    } else {
      while (at < end && *at != ',')
        at++;
      stop = at;
    }
    if (stop - start > (ptrdiff_t)CSV_FIELD_MAX)
      return input_error(error, csv->path, csv->line, "column %u: expected at most %u bytes", fields + 1,
                         CSV_FIELD_MAX);
    gboolean last = at == end;
    *stop = 0;
    csv->field[fields++] = (struct field){start, (size_t)(stop - start)};
    if (last)
      break;
  }
  csv->fields = fields;
  return TRUE;
}

int csv_next(struct csv *csv, GError **error)
{
  char *text, *end;
  int got;
  for (;;) {
    got = take_record(csv, &text, &end, error);
    if (got <= 0)
      return got;
    if (end > text && end[-1] == '\r') {
      end--;
      csv->quirks |= CSV_QUIRK_CRLF;
    }
    if (end > text)
      break;
    csv->quirks |= CSV_QUIRK_EMPTY_LINES;
  }
  if (csv->nul && memchr(text, 0, (size_t)(end - text))) {
    input_error(error, csv->path, csv->line, "expected text, found a NUL byte");
    return -1;
  }
  if (!split_record(csv, text, end, error))
    return -1;
  if (csv->columns && csv->fields != csv->columns) {
    input_error(error, csv->path, csv->line, "expected %u fields as in the header, found %u", csv->columns,
                csv->fields);
    return -1;
  }
  return 1;
}

gboolean csv_read_header(struct csv *csv, GError **error)
{
  int got = csv_next(csv, error);
  if (got < 0)
    return FALSE;
  if (got == 0)
    return input_error(error, csv->path, 1, "expected a header line, found an empty file");
  csv->header = g_new0(char *, csv->fields + 1);
  for (unsigned i = 0; i < csv->fields; i++)
    csv->header[i] = g_strstrip(g_strdup(csv->field[i].text));
  csv->columns = csv->fields;
  csv->header_in_file = TRUE;
  return TRUE;
}

void csv_set_header(struct csv *csv, const char *const *names)
{
  csv->header = g_strdupv((char **)names);
  csv->columns = g_strv_length(csv->header);
}

int csv_column(const struct csv *csv, const char *name)
{
  for (unsigned i = 0; i < csv->columns; i++)
    if (strcmp(csv->header[i], name) == 0)
      return (int)i;
  return -1;
}

unsigned csv_columns_named(const struct csv *csv, const char *name)
{
  unsigned count = 0;
  for (unsigned i = 0; i < csv->columns; i++)
    count += strcmp(csv->header[i], name) == 0;
  return count;
}

char *csv_header_text(const struct csv *csv)
{
  g_autofree char *joined = g_strjoinv(",", csv->header);
  g_autofree char *clean = g_strescape(joined, NULL);
  return strlen(clean) <= 120 ? g_steal_pointer(&clean) : g_strdup_printf("%.117s...", clean);
}

gboolean csv_rewind(struct csv *csv, GError **error)
{
  if (!start_reading(csv, error))
    return FALSE;
  return !csv->header_in_file || csv_next(csv, error) >= 0;
}

unsigned csv_fields(const struct csv *csv)
{
  return csv->fields;
}

const char *csv_text(const struct csv *csv, unsigned i)
{
  return csv->field[i].text;
}

size_t csv_length(const struct csv *csv, unsigned i)
{
  return csv->field[i].length;
}

unsigned csv_line(const struct csv *csv)
{
  return csv->line;
}

unsigned csv_quirks(const struct csv *csv)
{
  return csv->quirks;
}
