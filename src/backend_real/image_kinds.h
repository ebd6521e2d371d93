/* The kinds of image: what image.c knows of them. */
#ifndef DM_IMAGE_KINDS_H
#define DM_IMAGE_KINDS_H

#include "backend_real/image.h"

struct image_kind {
  void (*free)(struct image *image);
  void (*read)(const struct image *image, uint64_t offset, uint64_t bytes, void *to);
  /* The layer's checksum as the image has it; thread-safe. */
  uint64_t (*checksum)(const struct image *image, uint32_t layer);
};

/* First in each kind's own struct. */
struct image {
  const struct image_kind *kind;
  char *name; /* for errors: the file, or the profile */
  uint64_t bytes;
  uint32_t layers, tensors;
  struct image_layer *layer;   /* [layers] in order, without gaps; checksums as the kind has them */
  struct image_tensor *tensor; /* [tensors] in order, NULL if the image is generated */
};

#endif
