/* Headers of safetensors files: 8 bytes little-endian length, then that many bytes of JSON, then the tensors'
 * data:
 *
 *   {"__metadata__": {"key": "text", …}, "NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
 * …}
 *
 * Offsets count from the first byte of data. The data must be covered, without holes or overlaps. Every
 * number is bounded. */
#ifndef DM_SAFETENSORS_H
#define DM_SAFETENSORS_H

#include <glib.h>
#include <stdint.h>

#define SAFETENSORS_HEADER_MAX 100000000u /* bytes of JSON: the reference implementation's limit */

struct safetensor {
  const char *name, *dtype;
  uint32_t dims;
  uint32_t shape;      /* index of the first in shapes */
  uint64_t begin, end; /* data */
};

struct safetensors {
  GArray *tensors;       /* of struct safetensor, in the order of their data */
  GArray *shapes;        /* of uint64_t */
  GStringChunk *strings; /* names and dtypes */
};

/* json: the header's text, of a file with data_bytes of data. NULL + DM_ERROR_INPUT. */
struct safetensors *safetensors_parse(const char *path, const char *json, size_t length, uint64_t data_bytes,
                                      GError **error);
void safetensors_free(struct safetensors *safetensors);
typedef struct safetensors Safetensors; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Safetensors, safetensors_free)

#endif
