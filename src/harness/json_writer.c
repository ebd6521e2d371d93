/* JSON output; see json_writer.h. */
#include "harness/json_writer.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <yajl/yajl_gen.h>
#include "harness/setting.h"

struct json_writer {
  yajl_gen gen;
};

static void print_stream(void *context, const char *text, size_t length)
{
  fwrite(text, 1, length, context);
}

struct json_writer *json_writer_new(void)
{
  struct json_writer *json = g_new0(struct json_writer, 1);
  json->gen = yajl_gen_alloc(NULL);
  yajl_gen_config(json->gen, yajl_gen_beautify, 1);
  yajl_gen_config(json->gen, yajl_gen_indent_string, "  ");
  return json;
}

struct json_writer *json_writer_new_stream(FILE *out)
{
  struct json_writer *json = g_new0(struct json_writer, 1);
  json->gen = yajl_gen_alloc(NULL);
  yajl_gen_config(json->gen, yajl_gen_print_callback, print_stream, out);
  return json;
}

void json_writer_free(struct json_writer *json)
{
  yajl_gen_free(json->gen);
  g_free(json);
}

char *json_writer_text(const struct json_writer *json)
{
  const unsigned char *text;
  size_t length;
  if (yajl_gen_get_buf(json->gen, &text, &length) != yajl_gen_status_ok)
    return g_strdup("");
  return g_strndup((const char *)text, length);
}

static void check(yajl_gen_status status)
{
  if (status != yajl_gen_status_ok)
    g_error("JSON written out of order (%d)", (int)status);
}

void json_object_open(struct json_writer *json)
{
  check(yajl_gen_map_open(json->gen));
}

void json_object_close(struct json_writer *json)
{
  check(yajl_gen_map_close(json->gen));
}

void json_array_open(struct json_writer *json)
{
  check(yajl_gen_array_open(json->gen));
}

void json_array_close(struct json_writer *json)
{
  check(yajl_gen_array_close(json->gen));
}

void json_key(struct json_writer *json, const char *key)
{
  json_string(json, key);
}

void json_string(struct json_writer *json, const char *text)
{
  if (!text) {
    check(yajl_gen_null(json->gen));
    return;
  }
  if (g_utf8_validate(text, -1, NULL)) {
    check(yajl_gen_string(json->gen, (const unsigned char *)text, strlen(text)));
    return;
  }
  g_autofree char *valid = g_utf8_make_valid(text, -1);
  check(yajl_gen_string(json->gen, (const unsigned char *)valid, strlen(valid)));
}

static void write_number(struct json_writer *json, const char *text)
{
  check(yajl_gen_number(json->gen, text, strlen(text)));
}

void json_boolean(struct json_writer *json, gboolean value)
{
  check(yajl_gen_bool(json->gen, value));
}

void json_integer(struct json_writer *json, uint64_t value)
{
  char text[32];
  g_snprintf(text, sizeof text, "%" PRIu64, value);
  write_number(json, text);
}

void json_real(struct json_writer *json, double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  if (isfinite(value))
    write_number(json, real_format(value, text));
  else
    check(yajl_gen_null(json->gen));
}

void json_value(struct json_writer *json, const char *text)
{
  guint64 whole;
  double number;
  if (integer_parse(text, 0, G_MAXUINT64, &whole, NULL))
    json_integer(json, whole);
  else if (number_parse(text, -G_MAXDOUBLE, G_MAXDOUBLE, &number, NULL))
    json_real(json, number);
  else
    json_string(json, text);
}

void json_microseconds(struct json_writer *json, int64_t ns)
{
  char text[40];
  g_snprintf(text, sizeof text, "%" PRId64 ".%03d", ns / 1000, (int)(ns % 1000));
  write_number(json, text);
}

const char *real_format(double value, char buffer[G_ASCII_DTOSTR_BUF_SIZE])
{
  if (value == 0) /* -0 too */
    return strcpy(buffer, "0");
  static const char *const formats[] = {"%.15g", "%.16g", "%.17g"};
  for (size_t i = 0; i < G_N_ELEMENTS(formats); i++) {
    g_ascii_formatd(buffer, G_ASCII_DTOSTR_BUF_SIZE, formats[i], value);
    if (g_ascii_strtod(buffer, NULL) == value)
      break;
  }
  return buffer;
}

/* --- members
 * --------------------------------------------------------------------------------------------------------*/

void json_object_at(struct json_writer *json, const char *key)
{
  json_key(json, key);
  json_object_open(json);
}

void json_array_at(struct json_writer *json, const char *key)
{
  json_key(json, key);
  json_array_open(json);
}

void json_string_at(struct json_writer *json, const char *key, const char *text)
{
  json_key(json, key);
  json_string(json, text);
}

void json_boolean_at(struct json_writer *json, const char *key, gboolean value)
{
  json_key(json, key);
  json_boolean(json, value);
}

void json_integer_at(struct json_writer *json, const char *key, uint64_t value)
{
  json_key(json, key);
  json_integer(json, value);
}

void json_real_at(struct json_writer *json, const char *key, double value)
{
  json_key(json, key);
  json_real(json, value);
}

void json_value_at(struct json_writer *json, const char *key, const char *text)
{
  json_key(json, key);
  json_value(json, text);
}
