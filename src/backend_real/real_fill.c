/* Fills: a model's bytes from its image, into host memory or a GPU's. */
#include "backend_real/interrupt.h"
#include "backend_real/real_world_internal.h"

#define FILL_BYTES (8U << 20) /* of a model's image at the start; then signals are looked at */

static void fill_host(struct real_world *rw, const struct image *image, uint64_t offset, uint64_t bytes,
                      const struct ranges *place)
{
  for (uint64_t at = 0, piece; at < bytes && !interrupt_waits(); at += piece) {
    uint64_t to = ranges_piece(place, at, MIN(bytes - at, FILL_BYTES), &piece);
    image_read(image, offset + at, piece, rw->memory->base + to);
  }
}

static void fill_device(struct real_world *rw, const struct image *image, uint64_t offset, uint64_t bytes,
                        uint32_t gpu, const struct ranges *place)
{
  g_autofree uint8_t *bounce = g_malloc(MIN(bytes, FILL_BYTES));
  g_autoptr(GError) error = NULL;
  for (uint64_t at = 0, piece; at < bytes && !interrupt_waits(); at += piece) {
    uint64_t to = ranges_piece(place, at, MIN(bytes - at, FILL_BYTES), &piece);
    image_read(image, offset + at, piece, bounce);
    if (!rw->device_ops->fill(rw->device, gpu, to, bounce, piece, &error)) {
      real_world_fail(rw, "filling GPU %u: %s", gpu, error->message);
      return;
    }
  }
}

void real_fill(struct real_world *rw, uint32_t model, uint64_t offset, uint64_t bytes, uint32_t gpu,
               const struct ranges *place)
{
  const struct image *image = images_get(rw->images, model);
  if (gpu == NO_INDEX)
    fill_host(rw, image, offset, bytes, place);
  else
    fill_device(rw, image, offset, bytes, gpu, place);
}
