/* Sizes of the .dmi file's parts; see image_format.h. */
#include "backend_real/image_format.h"

#include <string.h>

/* The safetensors format's dtypes; bits of one element. */
static const struct dtype {
  const char *name;
  unsigned bits;
} dtypes[] = {
    {"BOOL", 8},    {"U8", 8},      {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F4", 4},
    {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"I16", 16}, {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},
    {"U32", 32},    {"F32", 32},    {"I64", 64}, {"U64", 64},    {"F64", 64},    {"C64", 64},
};

struct image_tables image_tables_of(const struct image_header *header)
{
  struct image_tables tables = {.layers = sizeof *header};
  tables.tensors = tables.layers + (uint64_t)header->layers * sizeof(struct image_layer);
  tables.shapes = tables.tensors + (uint64_t)header->tensors * sizeof(struct image_tensor_record);
  tables.strings = tables.shapes + (uint64_t)header->shapes * sizeof(uint64_t);
  tables.end = tables.strings + header->strings;
  return tables;
}

uint64_t image_data_offset(const struct image_tables *tables)
{
  return (tables->end + IMAGE_DATA_ALIGN - 1) / IMAGE_DATA_ALIGN * IMAGE_DATA_ALIGN;
}

/* 0: there is no such dtype. */
static unsigned element_bits(const char *dtype)
{
  for (size_t i = 0; i < G_N_ELEMENTS(dtypes); i++)
    if (strcmp(dtype, dtypes[i].name) == 0)
      return dtypes[i].bits;
  return 0;
}

gboolean image_dtype_known(const char *dtype)
{
  return element_bits(dtype) != 0;
}

gboolean image_tensor_bytes(const char *dtype, const uint64_t *shape, uint32_t dims, uint64_t *bytes)
{
  uint64_t bits = element_bits(dtype);
  if (bits == 0)
    return FALSE;
  for (uint32_t i = 0; i < dims; i++)
    if (__builtin_mul_overflow(bits, shape[i], &bits))
      return FALSE;
  *bytes = bits / 8;
  return bits % 8 == 0;
}
