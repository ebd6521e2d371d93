/* Writing a model's file; see ssd_file.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend_real/image_format.h"
#include "backend_real/interrupt.h"
#include "backend_real/ssd_file.h"
#include "core/error.h"

#define STEP_BYTES (4u << 20)

static struct image_header header_of(const struct image *image)
{
  struct image_header header = {.version = IMAGE_VERSION,
                                .layers = image_layers(image),
                                .strings = 1,
                                .data_bytes = image_bytes(image)};
  memcpy(header.magic, IMAGE_MAGIC, sizeof header.magic);
  struct image_tables tables = image_tables_of(&header);
  header.data_offset = image_data_offset(&tables);
  return header;
}

uint64_t ssd_file_bytes(const struct image *image)
{
  struct image_header header = header_of(image);
  return header.data_offset + header.data_bytes;
}

static gboolean failed(const char *path, int failure, GError **error)
{
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: cannot be written: %s", path, g_strerror(failure));
  return FALSE;
}

static gboolean write_all(const char *path, int fd, uint64_t at, const void *from, uint64_t bytes,
                          GError **error)
{
  for (uint64_t done = 0; done < bytes;) {
    ssize_t put = pwrite(fd, (const uint8_t *)from + done, bytes - done, (off_t)(at + done));
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return failed(path, errno, error);
    done += (uint64_t)put;
  }
  return TRUE;
}

static gboolean write_data(const char *path, int fd, uint64_t at, const struct image *image, GError **error)
{
  g_autofree uint8_t *step = g_malloc(STEP_BYTES);
  for (uint64_t done = 0; done < image_bytes(image); done += STEP_BYTES) {
    uint64_t n = MIN(STEP_BYTES, image_bytes(image) - done);
    image_read(image, done, n, step);
    if (!interrupt_check(error) || !write_all(path, fd, at + done, step, n, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean write_tables(const char *path, int fd, const struct image_header *header,
                             const struct image *image, GError **error)
{
  struct image_tables tables = image_tables_of(header);
  g_autofree struct image_layer *layer = g_new(struct image_layer, header->layers);
  for (uint32_t l = 0; l < header->layers; l++)
    layer[l] = *image_layer(image, l);
  return write_all(path, fd, tables.layers, layer, header->layers * sizeof *layer, error) &&
         write_all(path, fd, tables.strings, "", 1, error) &&
         write_all(path, fd, 0, header, sizeof *header, error);
}

/* The room is taken first: a disk that is full says so before the work is done. */
static gboolean write_file(const char *path, int fd, const struct image *image, GError **error)
{
  struct image_header header = header_of(image);
  int failure = posix_fallocate(fd, 0, (off_t)(header.data_offset + header.data_bytes));
  if (failure != 0)
    return failed(path, failure, error);
  if (!write_data(path, fd, header.data_offset, image, error) ||
      !write_tables(path, fd, &header, image, error))
    return FALSE;
  if (fsync(fd) != 0)
    return failed(path, errno, error);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  return TRUE;
}

gboolean ssd_file_write(const char *path, const struct image *image, GError **error)
{
  g_autofree char *partial = g_strconcat(path, ".partial", NULL);
  int fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0)
    return failed(path, errno, error);
  gboolean good = write_file(path, fd, image, error);
  if (close(fd) != 0 && good)
    good = failed(path, errno, error);
  if (good && rename(partial, path) != 0)
    good = failed(path, errno, error);
  if (!good)
    unlink(partial);
  return good;
}
