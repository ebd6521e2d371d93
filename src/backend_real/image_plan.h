/* How a safetensors file becomes an image: which layers, in which order the tensors lie, and the tables of
 * the file that say so. */
#ifndef DM_IMAGE_PLAN_H
#define DM_IMAGE_PLAN_H

#include "backend_real/image_format.h"
#include "backend_real/safetensors.h"

/* One tensor's way. */
struct image_move {
  uint64_t from, to, bytes; /* offsets in the source's data and in the image */
  uint32_t layer;
};

struct image_plan {
  struct image_header header;
  GArray *layers;  /* of struct image_layer; checksums are filled in by who copies */
  GArray *moves;   /* of struct image_move, in the order of the image */
  GArray *records; /* of struct image_tensor_record, likewise */
  GArray *shapes;  /* of uint64_t */
  GByteArray *strings;
};

/* DM_ERROR_INPUT: no tensor, or more than an image can have. path: the source's, for errors. */
struct image_plan *image_plan_new(const char *path, const struct safetensors *source, GError **error);
void image_plan_free(struct image_plan *plan);
typedef struct image_plan ImagePlan; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ImagePlan, image_plan_free)

#endif
