/* Writes JSON with stable numbers: doubles in the fewest digits that read back equal, whatever the locale.
 *
 * A thin layer over yajl_gen, which nests and escapes. Text that is no UTF-8 is made valid first. Calls in a
 * wrong order (a value where a key belongs) are programming errors and abort. */
#ifndef DM_JSON_WRITER_H
#define DM_JSON_WRITER_H

#include <glib.h>
#include <stdint.h>
#include <stdio.h>

struct json_writer;

/* To a string, indented by two spaces. */
struct json_writer *json_writer_new(void);
/* To a stream, without white space; write errors stay in ferror(out). */
struct json_writer *json_writer_new_stream(FILE *out);
void json_writer_free(struct json_writer *json);
typedef struct json_writer JsonWriter; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JsonWriter, json_writer_free)
/* What was written to a string; free with g_free. */
char *json_writer_text(const struct json_writer *json);

void json_object_open(struct json_writer *json);
void json_object_close(struct json_writer *json);
void json_array_open(struct json_writer *json);
void json_array_close(struct json_writer *json);
void json_key(struct json_writer *json, const char *key);
void json_string(struct json_writer *json, const char *text); /* NULL writes null */
void json_boolean(struct json_writer *json, gboolean value);
void json_integer(struct json_writer *json, uint64_t value);
void json_real(struct json_writer *json, double value); /* not finite: null */
/* A number where the text is a decimal one, else a string. */
void json_value(struct json_writer *json, const char *text);
/* Nanoseconds as microseconds with three decimals, exactly; value >= 0. */
void json_microseconds(struct json_writer *json, int64_t ns);

/* Members of the object that is open: the key, and its value or what opens one. */
void json_object_at(struct json_writer *json, const char *key);
void json_array_at(struct json_writer *json, const char *key);
void json_string_at(struct json_writer *json, const char *key, const char *text);
void json_boolean_at(struct json_writer *json, const char *key, gboolean value);
void json_integer_at(struct json_writer *json, const char *key, uint64_t value);
void json_real_at(struct json_writer *json, const char *key, double value);
void json_value_at(struct json_writer *json, const char *key, const char *text);

/* The fewest digits that strtod reads back to the same double. Locale-independent. */
const char *real_format(double value, char buffer[G_ASCII_DTOSTR_BUF_SIZE]);

#endif
