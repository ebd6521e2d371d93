/* The file of a packed image (.dmi), version 1. Little-endian, 64-bit; all that follows is checked when it is
 * opened.
 *
 *   header      64 bytes: struct image_header
 *   layers      24 bytes each: struct image_layer as it is; in order, without gaps, from 0 to data_bytes
 *   tensors     48 bytes each: struct image_tensor, with the offset of a string or the index of a shape's
 * first number in place of each pointer; in order, each within its layer, none overlapping shapes      8
 * bytes each: the tensors' dimensions strings     names and dtypes, each ended by a zero byte zeros       up
 * to a multiple of IMAGE_DATA_ALIGN parameters  data_bytes, to the end of the file
 */
#ifndef DM_IMAGE_FORMAT_H
#define DM_IMAGE_FORMAT_H

#include "backend_real/image.h"

#define IMAGE_MAGIC                                                                                          \
  "\x89"                                                                                                     \
  "DMI\r\n\x1a\n" /* a transfer as text destroys it */
#define IMAGE_VERSION    1
#define IMAGE_DATA_ALIGN (2u << 20)

/* Bounds of a file: far above any model, far below what would not fit 64 bits or memory. */
#define IMAGE_LAYERS_MAX  (1u << 20)
#define IMAGE_TENSORS_MAX (1u << 20)
#define IMAGE_DIMS_MAX    32 /* of one tensor */
#define IMAGE_SHAPES_MAX  (1u << 23)
#define IMAGE_STRINGS_MAX (1u << 28)
#define IMAGE_DATA_MAX    (UINT64_C(1) << 50)

struct image_header {
  char magic[8];
  uint32_t version, layers, tensors, shapes;
  uint64_t strings; /* bytes */
  uint64_t data_offset, data_bytes;
  uint64_t zero[2];
};

/* A tensor as it lies in the file: the size of struct image_tensor, so that it becomes one in place. */
struct image_tensor_record {
  uint64_t name, dtype; /* offsets into the strings */
  uint32_t layer, dims;
  uint64_t shape; /* index */
  uint64_t offset, bytes;
};

_Static_assert(sizeof(struct image_header) == 64 && sizeof(struct image_layer) == 24 &&
                   sizeof(struct image_tensor_record) == 48 && sizeof(struct image_tensor) == 48 &&
                   __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the file's tables are used as they lie");

/* Where the tables lie, from the header's counts, which are within bounds. */
struct image_tables {
  uint64_t layers, tensors, shapes, strings, end; /* offsets */
};

struct image_tables image_tables_of(const struct image_header *header);
/* The only place of the parameters. */
uint64_t image_data_offset(const struct image_tables *tables);

/* Bytes of a tensor; FALSE: the dtype (safetensors' spelling) is not known, or the number is no whole one or
 * too large. */
gboolean image_tensor_bytes(const char *dtype, const uint64_t *shape, uint32_t dims, uint64_t *bytes);
gboolean image_dtype_known(const char *dtype);

#endif
