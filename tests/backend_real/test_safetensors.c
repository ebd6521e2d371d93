/* From safetensors to an image: every tensor's bytes, layers by name, and files that must be refused. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend_real/checksum.h"
#include "backend_real/image.h"
#include "core/error.h"
#include "safetensors_file.h"

typedef struct image Image;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Image, image_free)

static Image *pack_and_open(const char *folder, const char *source)
{
  g_autofree char *out = g_build_filename(folder, "out.dmi", NULL);
  g_autoptr(GError) error = NULL;
  cr_assert(image_pack(source, out, NULL, NULL, &error), "%s", error ? error->message : "");
  Image *image = image_open(out, &error);
  cr_assert(image, "%s", error ? error->message : "");
  return image;
}

/* Two layers whose tensors lie mixed in the file, one without a dot, an empty one, a padded header. */
Test(safetensors, layers_by_name)
{
  static const char json[] = "{\"__metadata__\":{\"format\":\"pt\",\"dtype\":\"\"},"
                             "\"conv.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                             "\"bn.bias\":{\"shape\":[3],\"dtype\":\"F16\",\"data_offsets\":[24,30]},"
                             "\"conv.bias\":{\"dtype\":\"U8\",\"data_offsets\":[30,33],\"shape\":[3]},"
                             "\"none\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[33,33]},"
                             "\"scale\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[33,41]}}   ";
  g_autoptr(Scratch) folder = scratch_new();
  uint8_t data[41];
  for (unsigned i = 0; i < sizeof data; i++)
    data[i] = (uint8_t)(i + 1);
  g_autofree char *source = safetensors_write(folder, "in.safetensors", json, data, sizeof data);
  g_autoptr(Image) image = pack_and_open(folder, source);
  static const struct {
    const char *name, *dtype;
    uint32_t layer, dims;
    uint64_t offset, bytes, from;
  } expected[] = {
      {"conv.weight", "F32", 0, 2, 0, 24, 0}, {"conv.bias", "U8", 0, 1, 24, 3, 30},
      {"bn.bias", "F16", 1, 1, 27, 6, 24},    {"none", "F32", 2, 2, 33, 0, 33},
      {"scale", "F64", 3, 0, 33, 8, 33},
  };
  cr_assert_eq(image_tensors(image), G_N_ELEMENTS(expected));
  cr_assert_eq(image_layers(image), 4);
  cr_assert_eq(image_bytes(image), 41);
  for (uint32_t i = 0; i < G_N_ELEMENTS(expected); i++) {
    const struct image_tensor *tensor = image_tensor(image, i);
    uint8_t bytes[24];
    cr_assert_str_eq(tensor->name, expected[i].name);
    cr_assert_str_eq(tensor->dtype, expected[i].dtype);
    cr_assert_eq(tensor->layer, expected[i].layer);
    cr_assert_eq(tensor->dims, expected[i].dims);
    cr_assert_eq(tensor->offset, expected[i].offset);
    cr_assert_eq(tensor->bytes, expected[i].bytes);
    image_read(image, tensor->offset, tensor->bytes, bytes);
    cr_assert_eq(memcmp(bytes, data + expected[i].from, tensor->bytes), 0, "%s", tensor->name);
  }
  cr_assert_eq(image_tensor(image, 0)->shape[0], 2);
  cr_assert_eq(image_tensor(image, 0)->shape[1], 3);
  cr_assert_eq(image_layer(image, 0)->bytes, 27);
  cr_assert_eq(image_layer(image, 1)->offset, 27);
  cr_assert_eq(scratch_files(folder), 2, "a partial file was left");
}

/* Random files: names of random layers, offsets shuffled against the header's order. */
static char *random_file(GRand *rand, const char *folder, GByteArray *data, GPtrArray *names, GArray *begins)
{
  g_autoptr(GString) json = g_string_new("{");
  unsigned count = (unsigned)g_rand_int_range(rand, 1, 60);
  g_autofree char **entries = g_new0(char *, count);
  for (unsigned i = 0; i < count; i++) {
    uint64_t elements = (uint64_t)g_rand_int_range(rand, 0, i % 7 ? 300 : 40000), begin = data->len;
    char *name = g_strdup_printf("block.%d.t%u", g_rand_int_range(rand, 0, 12), i);
    entries[i] = g_strdup_printf("\"%s\":{\"dtype\":\"BF16\",\"shape\":[%d,2],\"data_offsets\":[%d,%d]}",
                                 name, (int)elements, (int)begin, (int)(begin + 4 * elements));
    for (uint64_t k = 0; k < 4 * elements; k++) {
      guint8 byte = (guint8)g_rand_int(rand);
      g_byte_array_append(data, &byte, 1);
    }
    g_ptr_array_add(names, name);
    g_array_append_val(begins, begin);
  }
  for (unsigned i = count; i > 0; i--) {
    unsigned k = (unsigned)g_rand_int_range(rand, 0, (gint32)i);
    g_string_append_printf(json, "%s%s", json->len > 1 ? "," : "", entries[k]);
    g_free(entries[k]);
    entries[k] = entries[i - 1];
  }
  g_string_append_c(json, '}');
  return safetensors_write(folder, "random.safetensors", json->str, data->data, data->len);
}

static void check_random(const Image *image, const GByteArray *data, const GPtrArray *names,
                         const GArray *begins)
{
  uint64_t at = 0;
  cr_assert_eq(image_tensors(image), names->len);
  cr_assert_eq(image_bytes(image), data->len);
  for (uint32_t i = 0; i < names->len; i++) {
    const struct image_tensor *tensor = image_tensor(image, i);
    g_autofree uint8_t *bytes = g_malloc(tensor->bytes + 1);
    guint from;
    cr_assert(g_ptr_array_find_with_equal_func((GPtrArray *)names, tensor->name, g_str_equal, &from));
    cr_assert_eq(tensor->offset, at);
    image_read(image, at, tensor->bytes, bytes);
    cr_assert_eq(memcmp(bytes, data->data + g_array_index(begins, uint64_t, from), tensor->bytes), 0);
    const char *before = i ? image_tensor(image, i - 1)->name : "";
    gboolean same_layer = i && strtol(before + 6, NULL, 10) == strtol(tensor->name + 6, NULL, 10);
    cr_assert_eq(same_layer, i && image_tensor(image, i - 1)->layer == tensor->layer);
    at += tensor->bytes;
  }
}

Test(safetensors, random_files_keep_every_byte)
{
  GRand *rand = g_rand_new_with_seed(1);
  for (int round = 0; round < 40; round++) {
    g_autoptr(Scratch) folder = scratch_new();
    g_autoptr(GByteArray) data = g_byte_array_new();
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) begins = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_autofree char *source = random_file(rand, folder, data, names, begins);
    g_autoptr(Image) image = pack_and_open(folder, source);
    g_autoptr(GError) error = NULL;
    check_random(image, data, names, begins);
    cr_assert(image_verify(image, &error), "%s", error ? error->message : "");
  }
  g_rand_free(rand);
}

static void on_progress(void *context, double done)
{
  double *last = context;
  cr_assert(done >= *last && done <= 1);
  *last = done;
}

Test(safetensors, progress_reaches_the_end)
{
  g_autoptr(Scratch) folder = scratch_new();
  g_autofree uint8_t *data = g_malloc0(5 << 20);
  g_autofree char *json = g_strdup_printf(
      "{\"a.b\":{\"dtype\":\"I8\",\"shape\":[%d],\"data_offsets\":[0,%d]}}", 5 << 20, 5 << 20);
  g_autofree char *source = safetensors_write(folder, "in", json, data, 5 << 20);
  g_autofree char *out = g_build_filename(folder, "out", NULL);
  double last = 0;
  cr_assert(image_pack(source, out, on_progress, &last, NULL));
  cr_assert_eq(last, 1);
}

#define T(name, dtype, shape, offsets)                                                                       \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

/* Each of 8 bytes of data. */
Test(safetensors, malformed_files_are_refused)
{
  static const struct {
    const char *json, *says;
  } cases[] = {
      {"", "premature EOF"},
      {"{}", "found 8"},
      {"[]", "found an array"},
      {"{\"a\":3}", "found a number"},
      {"{\"a\":{}}", "expected dtype, shape and two data_offsets"},
      {"{" T("a", "F32", "[2]", "[0,8]"), "parse error"},
      {"{" T("a", "F32", "[2]", "[0,8]") "} x", "parse error"},
      {"{" T("a", "F33", "[2]", "[0,8]") "}", "dtype"},
      {"{" T("a", "F32", "[3]", "[0,8]") "}", "as far apart"},
      {"{" T("a", "F32", "[-2]", "[0,8]") "}", "whole numbers"},
      {"{" T("a", "F32", "[2.0]", "[0,8]") "}", "whole numbers"},
      {"{" T("a", "F32", "[1e1]", "[0,8]") "}", "whole numbers"},
      {"{" T("a", "F32", "[2]", "[8,0]") "}", "as far apart"},
      {"{" T("a", "F32", "[2]", "[0,8,9]") "}", "more"},
      {"{" T("a", "F32", "[2]", "[0]") "}", "two data_offsets"},
      {"{" T("a", "F32", "[[2]]", "[0,8]") "}", "found an array"},
      {"{" T("a", "F32", "[2]", "[0,99999999999999999999999]") "}", "whole numbers"},
      {"{" T("a", "F32", "[1125899906842624,1125899906842624]", "[0,8]") "}", "as far apart"},
      {"{" T("a", "F4", "[15]", "[0,8]") "}", "as far apart"},
      {"{" T("a", "F32", "[1]", "[0,4]") "}", "expected 4 bytes of data, found 8"},
      {"{" T("a", "F32", "[4]", "[0,16]") "}", "expected 16 bytes of data, found 8"},
      {"{" T("a", "F32", "[1]", "[4,8]") "}", "hole"},
      {"{" T("a", "F32", "[1]", "[0,4]") "," T("b", "F32", "[1]", "[2,6]") "}", "overlap"},
      {"{" T("a", "F32", "[1]", "[0,4]") "," T("a", "F32", "[1]", "[4,8]") "}", "twice"},
      {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", "key twice"},
      {"{\"a\":{\"type\":\"F32\"}}", "another key"},
      {"{\"\":{}}", "names"},
      {"{\"a\\u0000b\":{}}", "zero bytes"},
      {"{\"__metadata__\":{\"a\":1}}", "expected text"},
      {"{\"__metadata__\":{},\"__metadata__\":{}}", "twice"},
      {"{\"a\\nb\":{\"dtype\":null}}", "a\\nb"},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autoptr(Scratch) folder = scratch_new();
    g_autofree char *source = safetensors_write(folder, "in", cases[i].json, (const uint8_t *)"12345678", 8);
    g_autofree char *out = g_build_filename(folder, "out", NULL);
    g_autoptr(GError) error = NULL;
    cr_assert_not(image_pack(source, out, NULL, NULL, &error), "%s", cases[i].json);
    cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
    cr_assert(strstr(error->message, cases[i].says), "%s: %s", cases[i].json, error->message);
    cr_assert(g_str_has_prefix(error->message, source) && !strchr(error->message, '\n'), "%s",
              error->message);
    cr_assert_eq(scratch_files(folder), 1);
  }
}

Test(safetensors, what_is_no_such_file)
{
  g_autoptr(Scratch) folder = scratch_new();
  g_autofree char *path = g_build_filename(folder, "in", NULL), *out = g_build_filename(folder, "out", NULL);
  static const struct {
    const char *bytes;
    gssize length;
  } files[] = {
      {"", 0}, {"1234567", 7}, {"\xff\xff\xff\xff\xff\xff\xff\xff{}", 10}, {"\3\0\0\0\0\0\0\0{}", 10}};
  for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
    g_autoptr(GError) error = NULL;
    cr_assert(g_file_set_contents(path, files[i].bytes, files[i].length, NULL));
    cr_assert_not(image_pack(path, out, NULL, NULL, &error));
    cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT) && strstr(error->message, "safetensors"));
  }
  g_autoptr(GError) error = NULL;
  cr_assert_not(image_pack(folder, out, NULL, NULL, &error));
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
  g_clear_error(&error);
  g_autofree char *source = safetensors_write(folder, "good", "{" T("a", "F32", "[2]", "[0,8]") "}",
                                              (const uint8_t *)"12345678", 8);
  cr_assert_not(image_pack(source, "/proc/none/out", NULL, NULL, &error));
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_FAILED));
  g_clear_error(&error);
  g_autofree char *pipe = g_build_filename(folder, "pipe", NULL);
  cr_assert_eq(mkfifo(pipe, 0600), 0);
  cr_assert_not(image_pack(pipe, out, NULL, NULL, &error)); /* and does not wait for who writes to it */
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
  g_clear_error(&error);
  cr_assert_null(image_open(pipe, &error));
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
}

/* By its own name, by a link to it: weights that cannot be had again are not written over. */
Test(safetensors, is_never_packed_onto_itself)
{
  g_autoptr(Scratch) folder = scratch_new();
  g_autofree char *source = safetensors_write(folder, "good", "{" T("a", "F32", "[2]", "[0,8]") "}",
                                              (const uint8_t *)"12345678", 8);
  g_autofree char *other = g_build_filename(folder, "other", NULL), *before = NULL;
  gsize length;
  cr_assert(g_file_get_contents(source, &before, &length, NULL) && link(source, other) == 0);
  const char *const outs[] = {source, other};
  for (size_t i = 0; i < G_N_ELEMENTS(outs); i++) {
    g_autoptr(GError) error = NULL;
    g_autofree char *after = NULL;
    gsize left;
    cr_assert_not(image_pack(source, outs[i], NULL, NULL, &error));
    cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT) &&
              strstr(error->message, "is the file that is to be packed"));
    cr_assert(g_file_get_contents(outs[i], &after, &left, NULL) && left == length &&
              memcmp(before, after, length) == 0);
    cr_assert_eq(scratch_files(folder), 2);
  }
}
