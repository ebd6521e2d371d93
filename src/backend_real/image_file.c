/* Packed images: opening is reading the header, mapping the tables, and making pointers of offsets in place.
 *
 * The mapping is private, so the file stays as it is. Parameters are read by pread: a file that is cut while
 * it is used gives short reads, not a signal, and they go straight to where they are wanted. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend_real/image_format.h"
#include "backend_real/image_kinds.h"
#include "core/error.h"

struct packed {
  struct image image;
  int fd;
  uint8_t *map; /* header and tables */
  uint64_t map_bytes, data_offset;
};

static void packed_free(struct image *image)
{
  struct packed *packed = (struct packed *)image;
  if (packed->map)
    munmap(packed->map, packed->map_bytes);
  if (packed->fd >= 0)
    close(packed->fd);
  g_free(image->name);
  g_free(packed);
}

static void packed_read(const struct image *image, uint64_t offset, uint64_t bytes, void *to)
{
  const struct packed *packed = (const struct packed *)image;
  uint64_t done = 0;
  while (done < bytes) {
    ssize_t got = pread(packed->fd, (uint8_t *)to + done, MIN(bytes - done, 1u << 30),
                        (off_t)(packed->data_offset + offset + done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0) {
      g_warning("%s: parameters cannot be read: %s", image->name,
                got < 0 ? g_strerror(errno) : "the file was cut");
      memset((uint8_t *)to + done, 0, bytes - done);
      return;
    }
    done += (uint64_t)got;
  }
}

static uint64_t packed_checksum(const struct image *image, uint32_t layer)
{
  return image->layer[layer].checksum;
}

/* --- opening --- */

static gboolean check_bound(const char *path, const char *what, uint64_t found, uint64_t least, uint64_t most,
                            GError **error)
{
  if (found >= least && found <= most)
    return TRUE;
  return input_error(error, path, 0,
                     "%s: expected %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT ", found %" G_GUINT64_FORMAT,
                     what, least, most, found);
}

static gboolean check_header(const char *path, const struct image_header *header, uint64_t file_bytes,
                             GError **error)
{
  if (memcmp(header->magic, IMAGE_MAGIC, sizeof header->magic) != 0)
    return input_error(error, path, 0, "expected a model image (.dmi), found a file that begins otherwise");
  if (header->version != IMAGE_VERSION)
    return input_error(error, path, 0, "expected a model image of version %u, found version %u",
                       IMAGE_VERSION, header->version);
  if (!check_bound(path, "layers", header->layers, 1, IMAGE_LAYERS_MAX, error) ||
      !check_bound(path, "tensors", header->tensors, 0, IMAGE_TENSORS_MAX, error) ||
      !check_bound(path, "shapes", header->shapes, 0, IMAGE_SHAPES_MAX, error) ||
      !check_bound(path, "strings", header->strings, 1, IMAGE_STRINGS_MAX, error) ||
      !check_bound(path, "parameter bytes", header->data_bytes, 0, IMAGE_DATA_MAX, error))
    return FALSE;
  struct image_tables tables = image_tables_of(header);
  uint64_t data_offset = image_data_offset(&tables);
  if (header->data_offset != data_offset)
    return input_error(error, path, 0,
                       "expected parameters at byte %" G_GUINT64_FORMAT ", found %" G_GUINT64_FORMAT,
                       data_offset, header->data_offset);
  if (file_bytes != data_offset + header->data_bytes)
    return input_error(error, path, 0, "expected %" G_GUINT64_FORMAT " bytes, found %" G_GUINT64_FORMAT "%s",
                       data_offset + header->data_bytes, file_bytes,
                       file_bytes < data_offset + header->data_bytes ? ": truncated?" : "");
  return TRUE;
}

static gboolean check_layers(const struct image *image, GError **error)
{
  uint64_t at = 0;
  for (uint32_t i = 0; i < image->layers; i++) {
    const struct image_layer *layer = &image->layer[i];
    if (layer->offset != at || layer->bytes > image->bytes - at)
      return input_error(error, image->name, 0,
                         "layer %u: expected to begin at %" G_GUINT64_FORMAT " and end by %" G_GUINT64_FORMAT
                         ", found offset %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT " bytes",
                         i, at, image->bytes, layer->offset, layer->bytes);
    at += layer->bytes;
  }
  if (at == image->bytes)
    return TRUE;
  return input_error(error, image->name, 0,
                     "layers: expected %" G_GUINT64_FORMAT " bytes in all, found %" G_GUINT64_FORMAT,
                     image->bytes, at);
}

static gboolean bad_tensor(const struct image *image, uint32_t tensor, const char *what, GError **error)
{
  return input_error(error, image->name, 0, "tensor %u: %s lies out of bounds or does not fit", tensor, what);
}

/* Record i of the file becomes image_tensor i, in place. at: where its bytes may begin. */
static gboolean fix_tensor(const struct image *image, uint32_t i, const struct image_header *header,
                           uint8_t *map, const struct image_tables *tables, uint64_t at, GError **error)
{
  struct image_tensor *tensor = &image->tensor[i];
  struct image_tensor_record record;
  memcpy(&record, tensor, sizeof record);
  if (record.name >= header->strings || record.dtype >= header->strings)
    return bad_tensor(image, i, "name or dtype", error);
  if (record.dims > IMAGE_DIMS_MAX || record.shape > header->shapes ||
      record.dims > header->shapes - record.shape)
    return bad_tensor(image, i, "shape", error);
  if (record.layer >= image->layers)
    return bad_tensor(image, i, "layer", error);
  const struct image_layer *layer = &image->layer[record.layer];
  uint64_t layer_end = layer->offset + layer->bytes, bytes;
  if (record.offset < MAX(at, layer->offset) || record.offset > layer_end ||
      record.bytes > layer_end - record.offset)
    return bad_tensor(image, i, "data", error);
  *tensor = (struct image_tensor){
      .name = (const char *)map + tables->strings + record.name,
      .dtype = (const char *)map + tables->strings + record.dtype,
      .layer = record.layer,
      .dims = record.dims,
      .shape = (const uint64_t *)(void *)(map + tables->shapes) + record.shape,
      .offset = record.offset,
      .bytes = record.bytes,
  };
  if (!image_tensor_bytes(tensor->dtype, tensor->shape, tensor->dims, &bytes) || bytes != tensor->bytes)
    return bad_tensor(image, i, "dtype times shape", error);
  return TRUE;
}

static gboolean fix_tables(struct packed *packed, const struct image_header *header, GError **error)
{
  struct image *image = &packed->image;
  struct image_tables tables = image_tables_of(header);
  image->bytes = header->data_bytes;
  image->layers = header->layers;
  image->tensors = header->tensors;
  image->layer = (struct image_layer *)(void *)(packed->map + tables.layers);
  image->tensor = (struct image_tensor *)(void *)(packed->map + tables.tensors);
  /* Then every string that begins within ends within. */
  if (packed->map[tables.end - 1] != 0)
    return input_error(error, image->name, 0, "strings: expected a zero byte at their end");
  if (!check_layers(image, error))
    return FALSE;
  uint64_t at = 0;
  for (uint32_t i = 0; i < image->tensors; i++) {
    if (!fix_tensor(image, i, header, packed->map, &tables, at, error))
      return FALSE;
    at = image->tensor[i].offset + image->tensor[i].bytes;
  }
  return TRUE;
}

static gboolean map_tables(struct packed *packed, GError **error)
{
  const char *path = packed->image.name;
  struct image_header header;
  struct stat status;
  packed->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* of a pipe, no waiting for a writer */
  if (packed->fd < 0 || fstat(packed->fd, &status) != 0)
    return input_error(error, path, 0, "cannot open: %s", g_strerror(errno));
  if (!S_ISREG(status.st_mode))
    return input_error(error, path, 0, "expected a file");
  ssize_t got = pread(packed->fd, &header, sizeof header, 0);
  if (got != (ssize_t)sizeof header)
    return input_error(error, path, 0, "expected a model image (.dmi), found %s",
                       got < 0 ? g_strerror(errno) : "a shorter file");
  if (!check_header(path, &header, (uint64_t)status.st_size, error))
    return FALSE;
  packed->data_offset = header.data_offset;
  packed->map_bytes = image_tables_of(&header).end;
  void *map = mmap(NULL, packed->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, packed->fd, 0);
  if (map == MAP_FAILED)
    return input_error(error, path, 0, "cannot map: %s", g_strerror(errno));
  packed->map = map;
  return fix_tables(packed, &header, error);
}

struct image *image_open(const char *path, GError **error)
{
  static const struct image_kind kind = {
      .free = packed_free,
      .read = packed_read,
      .checksum = packed_checksum,
  };
  struct packed *packed = g_new0(struct packed, 1);
  packed->image.kind = &kind;
  packed->image.name = g_strdup(path);
  packed->fd = -1;
  if (map_tables(packed, error))
    return &packed->image;
  packed_free(&packed->image);
  return NULL;
}
