/* Model images: whatever header and tables say, an image that holds what image.h promises, or one error line.
 *
 * The input is a file's beginning; parameters, zeros all, are added as far as its header asks for at most 8
 * MiB of file. */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend_real/image_format.h"

#define FILE_MAX (8u << 20)

static void use_tensors(const struct image *image)
{
  uint64_t end = 0, bytes;
  for (uint32_t i = 0; i < image_tensors(image); i++) {
    const struct image_tensor *tensor = image_tensor(image, i);
    const struct image_layer *layer = image_layer(image, tensor->layer);
    g_assert(strlen(tensor->name) < FILE_MAX && strlen(tensor->dtype) < FILE_MAX);
    g_assert(image_tensor_bytes(tensor->dtype, tensor->shape, tensor->dims, &bytes) &&
             bytes == tensor->bytes);
    g_assert(tensor->offset >= end && tensor->offset >= layer->offset);
    g_assert(tensor->offset + tensor->bytes <= layer->offset + layer->bytes);
    end = tensor->offset + tensor->bytes;
  }
}

static void use(const struct image *image)
{
  uint64_t end = 0;
  uint8_t byte;
  for (uint32_t i = 0; i < image_layers(image); i++) {
    g_assert(image_layer(image, i)->offset == end);
    end += image_layer(image, i)->bytes;
  }
  g_assert(end == image_bytes(image));
  use_tensors(image);
  if (end)
    image_read(image, end - 1, 1, &byte);
  image_verify(image, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct image_header header;
  int fd = memfd_create("image", 0);
  g_assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
  if (size >= sizeof header) {
    memcpy(&header, data, sizeof header);
    if (header.data_offset <= FILE_MAX && header.data_bytes <= FILE_MAX - header.data_offset)
      g_assert(ftruncate(fd, (off_t)(header.data_offset + header.data_bytes)) == 0);
  }
  g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
  g_autoptr(GError) error = NULL;
  struct image *image = image_open(path, &error);
  g_assert((image == NULL) == (error != NULL));
  if (image)
    use(image);
  else
    g_assert(!strchr(error->message, '\n'));
  image_free(image);
  close(fd);
  return 0;
}
