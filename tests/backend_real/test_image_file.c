/* Packed images: what the file looks like, that opening does not depend on its size, that damage is found,
 * and that no table can lead out of bounds. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "backend_real/checksum.h"
#include "backend_real/image_format.h"
#include "core/error.h"
#include "safetensors_file.h"

typedef struct image Image;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Image, image_free)

#define DATA 65536

/* Three tensors of two layers: 40000 + 5536 and 20000 bytes. */
static char *small_file(const char *folder)
{
  static const char json[] = "{\"x.a\":{\"dtype\":\"F32\",\"shape\":[100,100],\"data_offsets\":[0,40000]},"
                             "\"x.b\":{\"dtype\":\"U8\",\"shape\":[5536],\"data_offsets\":[40000,45536]},"
                             "\"y.a\":{\"dtype\":\"F32\",\"shape\":[5000],\"data_offsets\":[45536,65536]}}";
  static uint8_t data[DATA];
  for (uint32_t i = 0; i < DATA; i++)
    data[i] = (uint8_t)checksum_mix(i);
  g_autofree char *source = safetensors_write(folder, "in.safetensors", json, data, DATA);
  char *out = g_build_filename(folder, "small.dmi", NULL);
  g_autoptr(GError) error = NULL;
  cr_assert(image_pack(source, out, NULL, NULL, &error), "%s", error ? error->message : "");
  return out;
}

static void write_at(const char *path, uint64_t offset, const void *from, size_t bytes)
{
  int fd = open(path, O_WRONLY);
  cr_assert(fd >= 0 && pwrite(fd, from, bytes, (off_t)offset) == (ssize_t)bytes);
  close(fd);
}

static void read_at(const char *path, uint64_t offset, void *to, size_t bytes)
{
  int fd = open(path, O_RDONLY);
  cr_assert(fd >= 0 && pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes);
  close(fd);
}

/* The layout of image_format.h, by hand. */
Test(image_file, layout)
{
  g_autoptr(Scratch) folder = scratch_new();
  g_autofree char *path = small_file(folder);
  uint32_t counts[4];
  uint64_t sizes[3], layer[3], tensor[6], shape[4];
  char magic[8], strings[20];
  read_at(path, 0, magic, 8);
  cr_assert_eq(memcmp(magic,
                      "\x89"
                      "DMI\r\n\x1a\n",
                      8),
               0);
  read_at(path, 8, counts, sizeof counts);
  cr_assert(counts[0] == 1 && counts[1] == 2 && counts[2] == 3 && counts[3] == 4);
  read_at(path, 24, sizes, sizeof sizes);
  cr_assert(sizes[0] == 19 && sizes[1] == 2 << 20 && sizes[2] == DATA);
  read_at(path, 64 + 24, layer, sizeof layer);
  cr_assert(layer[0] == 45536 && layer[1] == 20000);
  read_at(path, 64 + 48 + 48, tensor, sizeof tensor); /* x.b */
  cr_assert(tensor[2] == ((uint64_t)1 << 32 | 0) && tensor[3] == 2 && tensor[4] == 40000 &&
            tensor[5] == 5536);
  read_at(path, 64 + 48 + 144, shape, sizeof shape);
  cr_assert(shape[0] == 100 && shape[1] == 100 && shape[2] == 5536 && shape[3] == 5000);
  read_at(path, 64 + 48 + 144 + 32, strings, 19);
  cr_assert_eq(memcmp(strings, "x.a\0F32\0x.b\0U8\0y.a", 19), 0);
  uint8_t first;
  read_at(path, 2 << 20, &first, 1);
  cr_assert_eq(first, (uint8_t)checksum_mix(0));
}

/* A terabyte, nearly all of it a hole: opening reads none of it. */
Test(image_file, opens_whatever_its_size)
{
  g_autoptr(Scratch) folder = scratch_new();
  g_autofree char *path = small_file(folder);
  const uint64_t huge = UINT64_C(1) << 40, last = huge - 45536, dims[1] = {last / 4};
  int fd = open(path, O_WRONLY);
  if (ftruncate(fd, (off_t)((2 << 20) + huge)) != 0)
    cr_skip_test("this file system has no files of 1 TiB");
  close(fd);
  write_at(path, 40, &huge, 8);
  write_at(path, 64 + 24 + 8, &last, 8);
  write_at(path, 64 + 48 + 96 + 40, &last, 8);
  write_at(path, 64 + 48 + 144 + 24, dims, 8);
  int64_t begin = g_get_monotonic_time();
  g_autoptr(GError) error = NULL;
  g_autoptr(Image) image = image_open(path, &error);
  int64_t taken_us = g_get_monotonic_time() - begin;
  cr_assert(image, "%s", error ? error->message : "");
  cr_assert_lt(taken_us, 1000000);
  cr_assert_eq(image_bytes(image), huge);
  uint8_t end[3] = {1, 1, 1};
  image_read(image, huge - 3, 3, end);
  cr_assert(end[0] == 0 && end[2] == 0);
}

Test(image_file, damage_is_found_and_its_layer_named)
{
  g_autoptr(Scratch) folder = scratch_new();
  g_autofree char *path = small_file(folder);
  for (uint32_t layer = 0; layer < 2; layer++) {
    g_autoptr(GError) error = NULL;
    g_autofree char *name = g_strdup_printf("layer %u", layer);
    uint64_t at = (2 << 20) + (layer ? DATA - 1 : 12345);
    uint8_t byte, other;
    read_at(path, at, &byte, 1);
    other = byte ^ 0x80;
    write_at(path, at, &other, 1);
    g_autoptr(Image) image = image_open(path, &error);
    cr_assert(image);
    cr_assert_not(image_verify(image, &error));
    cr_assert(strstr(error->message, name), "%s", error->message);
    write_at(path, at, &byte, 1);
  }
}

/* Every field of header and tables set to values that matter; whatever opens holds what image.h promises. */
static void use_all(const Image *image)
{
  uint64_t end = 0, bytes;
  for (uint32_t i = 0; i < image_layers(image); i++) {
    cr_assert_eq(image_layer(image, i)->offset, end);
    end += image_layer(image, i)->bytes;
  }
  cr_assert_eq(end, image_bytes(image));
  end = 0;
  for (uint32_t i = 0; i < image_tensors(image); i++) {
    const struct image_tensor *tensor = image_tensor(image, i);
    const struct image_layer *layer = image_layer(image, tensor->layer);
    cr_assert(strlen(tensor->name) < 20 && strlen(tensor->dtype) < 20);
    cr_assert(image_tensor_bytes(tensor->dtype, tensor->shape, tensor->dims, &bytes) &&
              bytes == tensor->bytes);
    cr_assert(tensor->offset >= end && tensor->offset >= layer->offset &&
              tensor->offset + tensor->bytes <= layer->offset + layer->bytes);
    end = tensor->offset + tensor->bytes;
  }
}

Test(image_file, fields_out_of_bounds_are_refused)
{
  g_autoptr(Scratch) folder = scratch_new();
  g_autofree char *path = small_file(folder);
  static const uint64_t values[] = {0,    1,        2,        7,          19,        20,        45536,
                                    DATA, 1u << 20, 2u << 20, UINT32_MAX, INT64_MAX, UINT64_MAX};
  unsigned refused = 0, opened = 0;
  for (uint64_t at = 0; at < 64 + 48 + 144 + 32 + 19; at += 4)
    for (size_t k = 0; k < 2 * G_N_ELEMENTS(values); k++) {
      size_t width = k % 2 ? 4 : 8;
      uint64_t was = 0;
      g_autoptr(GError) error = NULL;
      read_at(path, at, &was, width);
      write_at(path, at, &values[k / 2], width);
      g_autoptr(Image) image = image_open(path, &error);
      if (image)
        use_all(image);
      else
        cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT) && g_str_has_prefix(error->message, path));
      refused += !image;
      opened += image != NULL;
      write_at(path, at, &was, width);
    }
  cr_assert_gt(refused, 1000);
  cr_assert_gt(opened, 50); /* checksums, and values that are as they were */
}

Test(image_file, cut_files_are_refused)
{
  g_autoptr(Scratch) folder = scratch_new();
  g_autofree char *path = small_file(folder);
  static const uint64_t lengths[] = {(2 << 20) + DATA + 1, (2 << 20) + DATA - 1, 2 << 20, 300, 64, 63, 8, 0};
  for (size_t i = 0; i < G_N_ELEMENTS(lengths); i++) {
    g_autoptr(GError) error = NULL;
    cr_assert_eq(truncate(path, (off_t)lengths[i]), 0);
    cr_assert_not(image_open(path, &error));
    cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT), "%s", error->message);
  }
  g_autoptr(GError) error = NULL;
  cr_assert_not(image_open(folder, &error));
  cr_assert(strstr(error->message, "expected a file"));
}

/* Cut while it is open: zeros, a warning, and the checksum tells; no signal. */
Test(image_file, cut_while_open_reads_zeros)
{
  g_autoptr(Scratch) folder = scratch_new();
  g_autofree char *path = small_file(folder);
  g_autoptr(GError) error = NULL;
  g_autoptr(Image) image = image_open(path, &error);
  cr_assert(image);
  g_log_set_default_handler(g_log_default_handler, NULL);
  g_log_set_always_fatal(G_LOG_LEVEL_ERROR);
  cr_assert_eq(truncate(path, (2 << 20) + 1000), 0);
  static uint8_t bytes[DATA];
  memset(bytes, 1, sizeof bytes);
  image_read(image, 0, DATA, bytes);
  cr_assert(bytes[999] == (uint8_t)checksum_mix(999) && bytes[1000] == 0 && bytes[DATA - 1] == 0);
  cr_assert_not(image_verify(image, &error));
}
