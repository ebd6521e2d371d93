/* Shared part of the JSON trace layouts; see trace_json.h. */
#include "harness/trace_json.h"

#include <string.h>

#include "core/error.h"
#include "harness/decimal.h"

struct trace_source *trace_json_new(const struct trace_format *format, const char *path,
                                    int (*fill)(struct trace_json *, struct trace_row *, GError **),
                                    GError **error)
{
  struct json_rows *rows = json_rows_open(path, error);
  if (!rows)
    return NULL;
  struct trace_json *source = g_new0(struct trace_json, 1);
  source->base.format = format;
  source->base.path = g_strdup(path);
  source->base.kind = format->kind;
  source->rows = rows;
  source->fill = fill;
  return &source->base;
}

void trace_json_close(struct trace_source *base)
{
  json_rows_close(((struct trace_json *)base)->rows);
  g_free(base->notes.detail);
  g_free(base->path);
  g_free(base);
}

int trace_json_next(struct trace_source *base, struct trace_row *row, GError **error)
{
  struct trace_json *source = (struct trace_json *)base;
  int got;
  while ((got = json_rows_next(source->rows, error)) > 0) {
    got = source->fill(source, row, error);
    row->line = json_rows_line(source->rows);
    if (got != TRACE_SKIP)
      return got;
  }
  return got;
}

gboolean trace_json_rewind(struct trace_source *base, GError **error)
{
  return json_rows_rewind(((struct trace_json *)base)->rows, error);
}

gboolean trace_json_wrong(const struct trace_json *source, const struct json_value *value, const char *key,
                          const char *expected, GError **error)
{
  static const char *const type_names[] = {"null", "true or false", NULL, NULL, "an object", "an array"};
  const char *type = value ? type_names[json_type(value)] : "nothing";
  g_autofree char *found = type ? g_strdup(type) : found_text(json_text(source->rows, value));
  return input_error(error, source->base.path, json_rows_line(source->rows), "'%s': expected %s, found %s",
                     key, expected, found);
}

static gboolean number(const struct trace_json *source, const struct json_value *value, int64_t unit,
                       int64_t *result)
{
  if (!value || json_type(value) != JSON_NUMBER)
    return FALSE;
  const char *text = json_text(source->rows, value);
  return decimal_scaled(text, strlen(text), unit, result);
}

gboolean trace_json_time(const struct trace_json *source, const char *key, int64_t unit_ns, int64_t *ns,
                         GError **error)
{
  const struct json_value *value = json_member(source->rows, json_root(source->rows), key);
  if (number(source, value, unit_ns, ns) && *ns >= 0)
    return TRUE;
  return trace_json_wrong(source, value, key, "a time that is not negative", error);
}

gboolean trace_json_tokens(const struct trace_json *source, const char *key, int64_t *tokens, GError **error)
{
  const struct json_value *value = json_member(source->rows, json_root(source->rows), key);
  gboolean whole = value && !strpbrk(json_text(source->rows, value), ".eE");
  if (whole && number(source, value, 1, tokens) && *tokens >= 0 && *tokens <= TRACE_TOKENS_MAX)
    return TRUE;
  return trace_json_wrong(source, value, key, "a whole number from 0 to 1000000000", error);
}
