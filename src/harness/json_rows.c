/* Streaming JSON objects over yajl; see json_rows.h. yajl pushes, a reader pulls: so yajl is fed no further
 * than the next
 * '}' in the text, after which at most one more top-level object can be complete. */
#include "harness/json_rows.h"

#include <string.h>
#include <unistd.h>
#include <yajl/yajl_parse.h>

#include "core/error.h"
#include "harness/input_file.h"

#define BUFFER_BYTES (64u * 1024)
#define NONE         UINT32_MAX

struct json_value {
  enum json_type type;
  uint32_t key, text;   /* offsets into text, NONE without */
  uint32_t child, next; /* indices into values, NONE without */
  uint32_t last_child;
};

struct json_rows {
  char *path;
  int fd;
  yajl_handle parser;
  unsigned char buffer[BUFFER_BYTES];
  size_t begin, end;
  gboolean eof;
  unsigned read_line;   /* of the next byte */
  unsigned record_line; /* where the record in the tree begins */
  size_t record_bytes;  /* fed since the last record was complete */
  gboolean in_array;    /* the file is one array of objects */
  gboolean array_ended;
  gboolean complete;   /* the tree holds a whole object */
  const char *refused; /* what a callback found wrong */
  GArray *values;      /* struct json_value; the root is 0 */
  GString *text;
  uint32_t key; /* of the member to come */
  uint32_t open[JSON_DEPTH_MAX];
  unsigned depth; /* open containers of the record */
};

static struct json_value *value_at(const struct json_rows *rows, uint32_t index)
{
  return &g_array_index(rows->values, struct json_value, index);
}

static int refuse(struct json_rows *rows, const char *reason)
{
  rows->refused = reason;
  return 0;
}

static uint32_t keep_text(struct json_rows *rows, const void *text, size_t length)
{
  uint32_t offset = (uint32_t)rows->text->len;
  g_string_append_len(rows->text, text, (gssize)length);
  g_string_append_c(rows->text, 0);
  return offset;
}

/* Adds a value under the container that is open; returns its index. */
static uint32_t add_value(struct json_rows *rows, enum json_type type, uint32_t text)
{
  struct json_value value = {type, rows->key, text, NONE, NONE, NONE};
  uint32_t index = rows->values->len;
  rows->key = NONE;
  g_array_append_val(rows->values, value);
  if (rows->depth > 0) {
    struct json_value *parent = value_at(rows, rows->open[rows->depth - 1]);
    if (parent->last_child == NONE)
      parent->child = index;
    else
      value_at(rows, parent->last_child)->next = index;
    parent->last_child = index;
  }
  return index;
}

static int add_scalar(struct json_rows *rows, enum json_type type, const void *text, size_t length)
{
  if (rows->depth == 0)
    return refuse(rows, "expected an object");
  add_value(rows, type, text ? keep_text(rows, text, length) : NONE);
  return 1;
}

static int on_null(void *context)
{
  return add_scalar(context, JSON_NULL, NULL, 0);
}

static int on_boolean(void *context, int value)
{
  (void)value;
  return add_scalar(context, JSON_BOOLEAN, NULL, 0);
}

static int on_number(void *context, const char *text, size_t length)
{
  return add_scalar(context, JSON_NUMBER, text, length);
}

static int on_string(void *context, const unsigned char *text, size_t length)
{
  return add_scalar(context, JSON_STRING, text, length);
}

static int on_key(void *context, const unsigned char *text, size_t length)
{
  struct json_rows *rows = context;
  rows->key = keep_text(rows, text, length);
  return 1;
}

static int open_container(struct json_rows *rows, enum json_type type)
{
  if (rows->depth == JSON_DEPTH_MAX)
    return refuse(rows, "expected at most 32 levels of nesting");
  uint32_t index = add_value(rows, type, NONE);
  rows->open[rows->depth++] = index;
  return 1;
}

static int on_object(void *context)
{
  struct json_rows *rows = context;
  if (rows->array_ended)
    return refuse(rows, "expected the end of the file after the array");
  return open_container(rows, JSON_OBJECT);
}

static int on_object_end(void *context)
{
  struct json_rows *rows = context;
  rows->complete = --rows->depth == 0;
  return 1;
}

static int on_array(void *context)
{
  struct json_rows *rows = context;
  if (rows->depth > 0)
    return open_container(rows, JSON_ARRAY);
  if (rows->in_array || rows->record_line)
    return refuse(rows, "expected an object, found an array");
  rows->in_array = TRUE;
  return 1;
}

static int on_array_end(void *context)
{
  struct json_rows *rows = context;
  if (rows->depth > 0)
    rows->depth--;
  else
    rows->array_ended = TRUE;
  return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_object,
    .yajl_map_key = on_key,
    .yajl_end_map = on_object_end,
    .yajl_start_array = on_array,
    .yajl_end_array = on_array_end,
};

static void clear_record(struct json_rows *rows)
{
  g_array_set_size(rows->values, 0);
  g_string_truncate(rows->text, 0);
  rows->key = NONE;
  rows->depth = 0;
  rows->complete = FALSE;
}

static gboolean fill_buffer(struct json_rows *rows, GError **error)
{
  gssize got = input_file_read(rows->fd, rows->path, rows->buffer, BUFFER_BYTES, error);
  if (got < 0)
    return FALSE;
  rows->begin = 0;
  rows->end = (size_t)got;
  rows->eof = got == 0;
  return TRUE;
}

static gboolean start_reading(struct json_rows *rows, GError **error)
{
  clear_record(rows);
  if (rows->parser)
    yajl_free(rows->parser);
  rows->parser = yajl_alloc(&callbacks, NULL, rows);
  yajl_config(rows->parser, yajl_allow_multiple_values, 1);
  rows->begin = rows->end = rows->record_bytes = 0;
  rows->eof = rows->in_array = rows->array_ended = FALSE;
  rows->read_line = 1;
  rows->record_line = 0;
  if (!input_file_rewind(rows->fd, rows->path, error) || !fill_buffer(rows, error))
    return FALSE;
  rows->begin = byte_order_mark(rows->buffer, rows->end);
  return TRUE;
}

struct json_rows *json_rows_open(const char *path, GError **error)
{
  int fd = input_file_open(path, error);
  if (fd < 0)
    return NULL;
  struct json_rows *rows = g_new0(struct json_rows, 1);
  rows->path = g_strdup(path);
  rows->fd = fd;
  rows->values = g_array_new(FALSE, FALSE, sizeof(struct json_value));
  rows->text = g_string_new(NULL);
  if (!start_reading(rows, error)) {
    json_rows_close(rows);
    return NULL;
  }
  return rows;
}

void json_rows_close(struct json_rows *rows)
{
  if (!rows)
    return;
  close(rows->fd);
  if (rows->parser)
    yajl_free(rows->parser);
  g_array_unref(rows->values);
  g_string_free(rows->text, TRUE);
  g_free(rows->path);
  g_free(rows);
}

gboolean json_rows_rewind(struct json_rows *rows, GError **error)
{
  return start_reading(rows, error);
}

static unsigned count_lines(const unsigned char *text, size_t length)
{
  unsigned lines = 0;
  for (const unsigned char *at = text, *end = text + length; (at = memchr(at, '\n', (size_t)(end - at)));
       at++)
    lines++;
  return lines;
}

/* yajl's message holds lines of context; the first line says what is wrong. */
static gboolean parse_failed(struct json_rows *rows, yajl_status status, size_t consumed, GError **error)
{
  unsigned line = rows->read_line + count_lines(rows->buffer + rows->begin, consumed);
  if (status == yajl_status_client_canceled)
    return input_error(error, rows->path, line, "%s", rows->refused);
  unsigned char *message = yajl_get_error(rows->parser, 0, NULL, 0);
  g_strdelimit((char *)message, "\n\r", ' ');
  input_error(error, rows->path, line, "expected JSON objects: %s", g_strchomp((char *)message));
  yajl_free_error(rows->parser, message);
  return FALSE;
}

/* Skips blanks and separators between records, so that record_line is right. */
static void skip_blanks(struct json_rows *rows)
{
  for (; rows->begin < rows->end && strchr(" \t\r\n", rows->buffer[rows->begin]) && rows->buffer[rows->begin];
       rows->begin++)
    rows->read_line += rows->buffer[rows->begin] == '\n';
}

/* Feeds yajl up to and with the next '}', or what the buffer holds. */
static gboolean feed(struct json_rows *rows, GError **error)
{
  unsigned char *start = rows->buffer + rows->begin;
  size_t length = rows->end - rows->begin;
  unsigned char *brace = memchr(start, '}', length);
  if (brace)
    length = (size_t)(brace - start) + 1;
  unsigned char *opening = rows->values->len == 0 ? memchr(start, '{', length) : NULL;
  unsigned opening_line = opening ? rows->read_line + count_lines(start, (size_t)(opening - start)) : 0;
  rows->record_bytes += length;
  if (rows->record_bytes > JSON_RECORD_MAX)
    return input_error(error, rows->path, rows->read_line, "expected an object of at most %u bytes",
                       JSON_RECORD_MAX);
  yajl_status status = yajl_parse(rows->parser, start, length);
  if (status != yajl_status_ok)
    return parse_failed(rows, status, yajl_get_bytes_consumed(rows->parser), error);
  if (opening_line && rows->values->len > 0)
    rows->record_line = opening_line;
  rows->read_line += count_lines(start, length);
  rows->begin += length;
  return TRUE;
}

/* At the end of the file: nothing may be left open. */
static int finish(struct json_rows *rows, GError **error)
{
  yajl_status status = yajl_complete_parse(rows->parser);
  if (status != yajl_status_ok) {
    parse_failed(rows, status, 0, error);
    return -1;
  }
  if (rows->depth > 0 || (rows->in_array && !rows->array_ended)) {
    input_error(error, rows->path, rows->read_line, "expected the end of %s, found the end of the file",
                rows->depth > 0 ? "an object" : "the array");
    return -1;
  }
  return 0;
}

int json_rows_next(struct json_rows *rows, GError **error)
{
  clear_record(rows);
  rows->record_bytes = 0;
  for (;;) {
    if (rows->begin == rows->end && !rows->eof && !fill_buffer(rows, error))
      return -1;
    if (rows->eof)
      return finish(rows, error);
    if (rows->depth == 0)
      skip_blanks(rows);
    if (rows->begin == rows->end)
      continue;
    if (!feed(rows, error))
      return -1;
    if (rows->complete)
      return 1;
  }
}

unsigned json_rows_line(const struct json_rows *rows)
{
  return rows->record_line;
}

const struct json_value *json_root(const struct json_rows *rows)
{
  return value_at(rows, 0);
}

const struct json_value *json_first(const struct json_rows *rows, const struct json_value *parent)
{
  return parent && parent->child != NONE ? value_at(rows, parent->child) : NULL;
}

const struct json_value *json_next(const struct json_rows *rows, const struct json_value *value)
{
  return value->next != NONE ? value_at(rows, value->next) : NULL;
}

const struct json_value *json_member(const struct json_rows *rows, const struct json_value *object,
                                     const char *key)
{
  if (!object || object->type != JSON_OBJECT)
    return NULL;
  for (const struct json_value *at = json_first(rows, object); at; at = json_next(rows, at))
    if (strcmp(rows->text->str + at->key, key) == 0)
      return at;
  return NULL;
}

enum json_type json_type(const struct json_value *value)
{
  return value->type;
}

const char *json_text(const struct json_rows *rows, const struct json_value *value)
{
  return value->text != NONE ? rows->text->str + value->text : "";
}
