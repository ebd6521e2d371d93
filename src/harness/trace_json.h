/* Trace layouts that are JSON: one object a row, numbers parsed as exactly as in the CSV layouts. */
#ifndef DM_TRACE_JSON_H
#define DM_TRACE_JSON_H

#include "harness/json_rows.h"
#include "harness/trace_format.h"

struct trace_json {
  struct trace_source base;
  struct json_rows *rows;
  int (*fill)(struct trace_json *source, struct trace_row *row,
              GError **error); /* as of struct trace_csv_layout */
};

struct trace_source *trace_json_new(const struct trace_format *format, const char *path,
                                    int (*fill)(struct trace_json *, struct trace_row *, GError **),
                                    GError **error);
void trace_json_close(struct trace_source *source);
int trace_json_next(struct trace_source *source, struct trace_row *row, GError **error);
gboolean trace_json_rewind(struct trace_source *source, GError **error);

/* Members of the current object: a time in units of unit_ns, a number of tokens. */
gboolean trace_json_time(const struct trace_json *source, const char *key, int64_t unit_ns, int64_t *ns,
                         GError **error);
gboolean trace_json_tokens(const struct trace_json *source, const char *key, int64_t *tokens, GError **error);
/* "FILE:LINE: 'KEY': expected EXPECTED, found …". Returns FALSE. */
gboolean trace_json_wrong(const struct trace_json *source, const struct json_value *value, const char *key,
                          const char *expected, GError **error);

#define TRACE_JSON_SLOTS .close = trace_json_close, .next = trace_json_next, .rewind = trace_json_rewind

#endif
