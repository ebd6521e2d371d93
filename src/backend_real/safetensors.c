/* Reading safetensors headers, over yajl; see safetensors.h. */
#include "backend_real/safetensors.h"

#include <string.h>
#include <yajl/yajl_parse.h>

#include "backend_real/image_format.h"
#include "core/error.h"

/* Where in the JSON the parser is. */
enum place { BEFORE, NAMES, TENSOR, SHAPE, OFFSETS, METADATA, AFTER };

enum field { NO_FIELD, DTYPE, SHAPE_FIELD, OFFSETS_FIELD };

struct parse {
  struct safetensors *result;
  enum place place;
  enum field field;       /* of the value to come */
  unsigned seen;          /* 1 << field: of this tensor */
  gboolean metadata_next; /* the value to come is the file's metadata */
  gboolean metadata_seen;
  struct safetensor tensor;
  uint32_t offsets; /* found so far */
  GHashTable *names;
  char *refused; /* what is wrong */
};

static int refuse(struct parse *parse, const char *what)
{
  g_autofree char *name = parse->tensor.name ? g_strescape(parse->tensor.name, NULL) : NULL;
  parse->refused = name ? g_strdup_printf("tensor \"%.200s\": %s", name, what) : g_strdup(what);
  return 0;
}

static int unexpected(struct parse *parse, const char *found)
{
  static const char *const expected[] = {
      [BEFORE] = "an object",
      [NAMES] = "a tensor's object",
      [TENSOR] = "dtype (text), shape or data_offsets (arrays)",
      [SHAPE] = "a whole number",
      [OFFSETS] = "a whole number",
      [METADATA] = "text",
      [AFTER] = "the end",
  };
  g_autofree char *what = g_strdup_printf("expected %s, found %s", expected[parse->place], found);
  return refuse(parse, what);
}

static int on_null(void *context)
{
  return unexpected(context, "null");
}

static int on_boolean(void *context, int value)
{
  return unexpected(context, value ? "true" : "false");
}

static int on_number(void *context, const char *text, size_t length)
{
  struct parse *parse = context;
  char digits[24] = "";
  guint64 value;
  if (parse->place != SHAPE && parse->place != OFFSETS)
    return unexpected(parse, "a number");
  if (length < sizeof digits)
    memcpy(digits, text, length);
  if (!g_ascii_string_to_unsigned(digits, 10, 0, IMAGE_DATA_MAX, &value, NULL))
    return refuse(parse, "expected whole numbers up to 2^50");
  if (parse->place == SHAPE) {
    if (parse->tensor.dims++ == IMAGE_DIMS_MAX)
      return refuse(parse, "expected at most 32 dimensions");
    g_array_append_val(parse->result->shapes, value);
    return 1;
  }
  if (parse->offsets == 2)
    return refuse(parse, "expected two data_offsets, found more");
  *(parse->offsets++ == 0 ? &parse->tensor.begin : &parse->tensor.end) = value;
  return 1;
}

static int on_string(void *context, const unsigned char *text, size_t length)
{
  struct parse *parse = context;
  if (parse->place == METADATA)
    return 1;
  if (parse->place != TENSOR || parse->field != DTYPE)
    return unexpected(parse, "text");
  g_autofree char *dtype = g_strndup((const char *)text, length);
  if (strlen(dtype) != length || !image_dtype_known(dtype))
    return refuse(parse, "its dtype is none that this program knows");
  parse->tensor.dtype = g_string_chunk_insert_const(parse->result->strings, dtype);
  return 1;
}

/* A tensor's name, or the metadata's. */
static int on_name(struct parse *parse, const char *text, size_t length)
{
  parse->tensor = (struct safetensor){.shape = parse->result->shapes->len};
  parse->seen = 0;
  parse->offsets = 0;
  parse->metadata_next = length == strlen("__metadata__") && memcmp(text, "__metadata__", length) == 0;
  if (parse->metadata_next) {
    if (parse->metadata_seen)
      return refuse(parse, "__metadata__ is there twice");
    parse->metadata_seen = TRUE;
    return 1;
  }
  if (length == 0 || memchr(text, 0, length))
    return refuse(parse, "expected names of tensors to be text without zero bytes");
  parse->tensor.name = g_string_chunk_insert_len(parse->result->strings, text, (gssize)length);
  if (!g_hash_table_add(parse->names, (gpointer)parse->tensor.name))
    return refuse(parse, "is there twice");
  if (parse->result->tensors->len == IMAGE_TENSORS_MAX)
    return refuse(parse, "is one too many: expected at most 2^20");
  return 1;
}

static int on_key(void *context, const unsigned char *text, size_t length)
{
  static const char *const fields[] = {
      [DTYPE] = "dtype", [SHAPE_FIELD] = "shape", [OFFSETS_FIELD] = "data_offsets"};
  struct parse *parse = context;
  if (parse->place == NAMES)
    return on_name(parse, (const char *)text, length);
  if (parse->place == METADATA)
    return 1;
  for (unsigned field = DTYPE; field <= OFFSETS_FIELD; field++)
    if (length == strlen(fields[field]) && memcmp(text, fields[field], length) == 0) {
      if (parse->seen & 1u << field)
        return refuse(parse, "has a key twice");
      parse->seen |= 1u << field;
      parse->field = (enum field)field;
      return 1;
    }
  return refuse(parse, "expected only dtype, shape and data_offsets, found another key");
}

static int on_object(void *context)
{
  struct parse *parse = context;
  if (parse->place == BEFORE)
    parse->place = NAMES;
  else if (parse->place == NAMES)
    parse->place = parse->metadata_next ? METADATA : TENSOR;
  else
    return unexpected(parse, "an object");
  return 1;
}

static int end_tensor(struct parse *parse)
{
  struct safetensor *tensor = &parse->tensor;
  const uint64_t *shape =
      tensor->dims ? &g_array_index(parse->result->shapes, uint64_t, tensor->shape) : NULL;
  uint64_t bytes;
  if (parse->seen != (1u << DTYPE | 1u << SHAPE_FIELD | 1u << OFFSETS_FIELD) || parse->offsets != 2)
    return refuse(parse, "expected dtype, shape and two data_offsets");
  if (tensor->begin > tensor->end || !image_tensor_bytes(tensor->dtype, shape, tensor->dims, &bytes) ||
      bytes != tensor->end - tensor->begin)
    return refuse(parse, "expected data_offsets as far apart as dtype and shape say");
  if (parse->result->shapes->len > IMAGE_SHAPES_MAX)
    return refuse(parse, "expected fewer dimensions in all");
  g_array_append_val(parse->result->tensors, *tensor);
  parse->tensor.name = NULL;
  parse->place = NAMES;
  return 1;
}

static int on_object_end(void *context)
{
  struct parse *parse = context;
  if (parse->place == TENSOR)
    return end_tensor(parse);
  parse->place = parse->place == METADATA ? NAMES : AFTER;
  return 1;
}

static int on_array(void *context)
{
  struct parse *parse = context;
  if (parse->place != TENSOR || (parse->field != SHAPE_FIELD && parse->field != OFFSETS_FIELD))
    return unexpected(parse, "an array");
  parse->place = parse->field == SHAPE_FIELD ? SHAPE : OFFSETS;
  return 1;
}

static int on_array_end(void *context)
{
  struct parse *parse = context;
  parse->place = TENSOR;
  return 1;
}

/* yajl's own words, in one line without the excerpt. */
static char *syntax_error(yajl_handle yajl)
{
  unsigned char *text = yajl_get_error(yajl, 0, NULL, 0);
  char *copy = g_strstrip(g_strdelimit(g_strdup((const char *)text), "\r\n", ' '));
  yajl_free_error(yajl, text);
  return copy;
}

static gboolean parse_json(struct parse *parse, const char *path, const char *json, size_t length,
                           GError **error)
{
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
  yajl_handle yajl = yajl_alloc(&callbacks, NULL, parse);
  yajl_status status = yajl_parse(yajl, (const unsigned char *)json, length);
  if (status == yajl_status_ok)
    status = yajl_complete_parse(yajl);
  if (status == yajl_status_error)
    parse->refused = syntax_error(yajl);
  yajl_free(yajl);
  if (status == yajl_status_ok && parse->place == AFTER)
    return TRUE;
  return input_error(error, path, 0, "header: %s", parse->refused ? parse->refused : "expected an object");
}

static int by_data(const void *a, const void *b)
{
  const struct safetensor *x = a, *y = b;
  if (x->begin != y->begin)
    return x->begin < y->begin ? -1 : 1;
  if (x->end != y->end)
    return x->end < y->end ? -1 : 1;
  return strcmp(x->name, y->name);
}

/* Orders the tensors by their data, which they must cover. */
static gboolean cover(struct safetensors *result, const char *path, uint64_t data_bytes, GError **error)
{
  uint64_t at = 0;
  g_array_sort(result->tensors, by_data);
  for (uint32_t i = 0; i < result->tensors->len; i++) {
    const struct safetensor *tensor = &g_array_index(result->tensors, struct safetensor, i);
    if (tensor->begin != at) {
      g_autofree char *name = g_strescape(tensor->name, NULL);
      return input_error(error, path, 0,
                         "tensor \"%.200s\": expected data at %" G_GUINT64_FORMAT ", found %" G_GUINT64_FORMAT
                         ": a hole or an overlap",
                         name, at, tensor->begin);
    }
    at = tensor->end;
  }
  if (at == data_bytes)
    return TRUE;
  return input_error(error, path, 0,
                     "expected %" G_GUINT64_FORMAT " bytes of data, found %" G_GUINT64_FORMAT "%s", at,
                     data_bytes, data_bytes < at ? ": truncated?" : "");
}

struct safetensors *safetensors_parse(const char *path, const char *json, size_t length, uint64_t data_bytes,
                                      GError **error)
{
  struct safetensors *result = g_new0(struct safetensors, 1);
  result->tensors = g_array_new(FALSE, FALSE, sizeof(struct safetensor));
  result->shapes = g_array_new(FALSE, FALSE, sizeof(uint64_t));
  result->strings = g_string_chunk_new(4096);
  struct parse parse = {.result = result, .names = g_hash_table_new(g_str_hash, g_str_equal)};
  gboolean good = parse_json(&parse, path, json, length, error) && cover(result, path, data_bytes, error);
  g_hash_table_destroy(parse.names);
  g_free(parse.refused);
  if (good)
    return result;
  safetensors_free(result);
  return NULL;
}

void safetensors_free(struct safetensors *safetensors)
{
  g_array_free(safetensors->tensors, TRUE);
  g_array_free(safetensors->shapes, TRUE);
  g_string_chunk_free(safetensors->strings);
  g_free(safetensors);
}
