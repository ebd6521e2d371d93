/* The images of a run's models, by model id: packed files where the run names a folder that has NAME.dmi for
 * them, else generated from profile and variant. */
#ifndef DM_IMAGES_H
#define DM_IMAGES_H

#include "backend_real/image.h"

struct images;

/* folder: of packed images, or NULL. A file whose layers are not those of the model's profile is refused. */
struct images *images_new(const struct catalog *catalog, const char *folder, GError **error);
/* How many models of the catalog have a file there. */
uint32_t images_packed(const struct catalog *catalog, const char *folder);
void images_free(struct images *images);
/* Computes the checksums of all layers, on all processors: a request must not wait for them.
 * DM_ERROR_INTERRUPTED: a signal waits (interrupt.h). */
gboolean images_prepare(struct images *images, GError **error);
const struct image *images_get(const struct images *images, uint32_t model);
/* What the image's bytes [offset, offset + bytes) sum to. Cheap where they are whole layers. */
uint64_t images_checksum(const struct images *images, uint32_t model, uint64_t offset, uint64_t bytes);

#endif
