/* Streaming reader of JSON lines (one object after another) and of one JSON array of objects, over yajl.
 *
 * One object is held at a time as a small tree, whose memory is reused; an object is bounded by
 * JSON_RECORD_MAX bytes and JSON_DEPTH_MAX levels. Malformed JSON, another top-level value, or an array
 * without end: DM_ERROR_INPUT, file and line. */
#ifndef DM_JSON_ROWS_H
#define DM_JSON_ROWS_H

#include <glib.h>
#include <stdint.h>

#define JSON_RECORD_MAX (16u * 1024 * 1024)
#define JSON_DEPTH_MAX  32u

enum json_type { JSON_NULL, JSON_BOOLEAN, JSON_NUMBER, JSON_STRING, JSON_OBJECT, JSON_ARRAY };

struct json_rows;
/* A value of the current object: valid until the next call of json_rows_next. NULL stands for "not there"
 * everywhere. */
struct json_value;

struct json_rows *json_rows_open(const char *path, GError **error);
void json_rows_close(struct json_rows *rows);
/* 1: an object; 0: end; -1: error. */
int json_rows_next(struct json_rows *rows, GError **error);
gboolean json_rows_rewind(struct json_rows *rows, GError **error);
/* Line on which the current object begins, from 1. */
unsigned json_rows_line(const struct json_rows *rows);

const struct json_value *json_root(const struct json_rows *rows);
/* Member of an object by key (the first of that name), or NULL. */
const struct json_value *json_member(const struct json_rows *rows, const struct json_value *object,
                                     const char *key);
/* Elements of an array or members of an object, in order. */
const struct json_value *json_first(const struct json_rows *rows, const struct json_value *parent);
const struct json_value *json_next(const struct json_rows *rows, const struct json_value *value);
enum json_type json_type(const struct json_value *value);
/* A string's characters or a number's digits as written; "" for other types. */
const char *json_text(const struct json_rows *rows, const struct json_value *value);

#endif
