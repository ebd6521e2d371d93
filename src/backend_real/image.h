/* A model image: the parameters of one model as they lie on the wire and in every memory, layer after layer,
 * with a table of layers and tensors.
 *
 * Two kinds. A packed image is a file (.dmi): a header and tables with offsets for pointers, then the
 * parameters at a 2 MiB boundary; it opens by mmap and pointer fix-up, whatever its size. A generated image
 * has no file: every byte is a function of (profile's name, seed, offset). The layers' boundaries are the
 * profile's. */
#ifndef DM_IMAGE_H
#define DM_IMAGE_H

#include <glib.h>
#include "core/model.h"

struct image;

struct image_layer {
  uint64_t offset, bytes, checksum;
};

struct image_tensor {
  const char *name, *dtype; /* dtype as safetensors spells it */
  uint32_t layer, dims;
  const uint64_t *shape; /* [dims] */
  uint64_t offset, bytes;
};

/* Opens a packed image. DM_ERROR_INPUT: not one, truncated, tables out of bounds. Data is not read:
 * image_verify does. */
struct image *image_open(const char *path, GError **error);
/* Variant `seed` of a profile. Checksums of layers are computed when first asked for. */
struct image *image_generate(const struct profile *profile, uint64_t seed);
void image_free(struct image *image);

/* All that follows is thread-safe. */
/* For errors: the file, or the profile that it was generated of. */
const char *image_name(const struct image *image);
uint64_t image_bytes(const struct image *image);
uint32_t image_layers(const struct image *image);
const struct image_layer *image_layer(const struct image *image, uint32_t layer);
uint32_t image_tensors(const struct image *image);
const struct image_tensor *image_tensor(const struct image *image, uint32_t tensor);
/* Bytes [offset, offset + bytes), which lie within the image, to `to`. What a packed image's file does not
 * give (it was cut, a bad disk) reads as zeros, logged: their checksum tells. */
void image_read(const struct image *image, uint64_t offset, uint64_t bytes, void *to);
/* Sum over layers [first, last). */
uint64_t image_checksum(const struct image *image, uint32_t first, uint32_t last);
/* Reads all of it and compares. */
gboolean image_verify(const struct image *image, GError **error);

/* Packs a safetensors file. Its tensors, in the order of their data, become layers by their names' part
 * before the last dot: a layer stands where its first tensor does, and holds its tensors one after the other,
 * without padding. progress may be NULL; done goes from 0 to 1. The file appears whole or not at all. */
gboolean image_pack(const char *safetensors, const char *out, void (*progress)(void *context, double done),
                    void *context, GError **error);

#endif
