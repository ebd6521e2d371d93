/* What the kinds of image share; see image.h. */
#include "backend_real/checksum.h"
#include "backend_real/image_kinds.h"
#include "core/error.h"

/* How much of an image is looked at in one go: small enough for the processor's caches. */
#define STEP_BYTES (256u * 1024)

void image_free(struct image *image)
{
  if (image)
    image->kind->free(image);
}

const char *image_name(const struct image *image)
{
  return image->name;
}

uint64_t image_bytes(const struct image *image)
{
  return image->bytes;
}

uint32_t image_layers(const struct image *image)
{
  return image->layers;
}

const struct image_layer *image_layer(const struct image *image, uint32_t layer)
{
  g_return_val_if_fail(layer < image->layers, NULL);
  image->kind->checksum(image, layer); /* is there once this returns */
  return &image->layer[layer];
}

uint32_t image_tensors(const struct image *image)
{
  return image->tensors;
}

const struct image_tensor *image_tensor(const struct image *image, uint32_t tensor)
{
  g_return_val_if_fail(tensor < image->tensors, NULL);
  return &image->tensor[tensor];
}

void image_read(const struct image *image, uint64_t offset, uint64_t bytes, void *to)
{
  g_return_if_fail(offset <= image->bytes && bytes <= image->bytes - offset);
  image->kind->read(image, offset, bytes, to);
}

uint64_t image_checksum(const struct image *image, uint32_t first, uint32_t last)
{
  g_return_val_if_fail(first <= last && last <= image->layers, 0);
  uint64_t sum = 0;
  for (uint32_t i = first; i < last; i++)
    sum += image->kind->checksum(image, i);
  return sum;
}

gboolean image_verify(const struct image *image, GError **error)
{
  g_autofree uint8_t *step = g_malloc(STEP_BYTES);
  for (uint32_t i = 0; i < image->layers; i++) {
    const struct image_layer *layer = image_layer(image, i);
    uint64_t sum = 0;
    for (uint64_t at = 0; at < layer->bytes; at += STEP_BYTES) {
      uint64_t n = MIN(STEP_BYTES, layer->bytes - at);
      image->kind->read(image, layer->offset + at, n, step);
      sum += checksum(step, layer->offset + at, n);
    }
    if (sum != layer->checksum)
      return input_error(error, image->name, 0,
                         "layer %u: expected checksum %016" G_GINT64_MODIFIER
                         "x, found %016" G_GINT64_MODIFIER "x: its bytes are damaged",
                         i, layer->checksum, sum);
  }
  return TRUE;
}
