/* Safetensors headers: whatever the JSON, a cover of the data and a plan of an image, or one error line.
 *
 * Input: how much data the file has (4 bytes, little-endian), then the header. */
#include <stdint.h>
#include <string.h>

#include "backend_real/image_plan.h"

static void check_plan(const struct image_plan *plan, uint64_t data_bytes)
{
  uint64_t at = 0, moved = 0;
  for (uint32_t i = 0; i < plan->layers->len; i++) {
    const struct image_layer *layer = &g_array_index(plan->layers, struct image_layer, i);
    g_assert(layer->offset == at);
    at += layer->bytes;
  }
  g_assert(at == data_bytes && plan->header.data_bytes == data_bytes);
  for (uint32_t i = 0; i < plan->moves->len; i++) {
    const struct image_move *move = &g_array_index(plan->moves, struct image_move, i);
    const struct image_tensor_record *record = &g_array_index(plan->records, struct image_tensor_record, i);
    const struct image_layer *layer = &g_array_index(plan->layers, struct image_layer, move->layer);
    g_assert(move->to == moved && move->from + move->bytes <= data_bytes);
    g_assert(move->to >= layer->offset && move->to + move->bytes <= layer->offset + layer->bytes);
    g_assert(record->offset == move->to && record->bytes == move->bytes && record->layer == move->layer);
    g_assert(record->shape + record->dims <= plan->shapes->len);
    g_assert(record->name < plan->strings->len && record->dtype < plan->strings->len);
    moved += move->bytes;
  }
  g_assert(moved == data_bytes && plan->strings->data[plan->strings->len - 1] == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  uint32_t data_bytes;
  if (size < sizeof data_bytes)
    return 0;
  memcpy(&data_bytes, data, sizeof data_bytes);
  g_autoptr(GError) error = NULL;
  struct safetensors *source =
      safetensors_parse("fuzz", (const char *)data + 4, size - 4, data_bytes, &error);
  g_assert((source == NULL) == (error != NULL));
  struct image_plan *plan = source ? image_plan_new("fuzz", source, &error) : NULL;
  g_assert((plan == NULL) == (error != NULL));
  if (plan) {
    check_plan(plan, data_bytes);
    image_plan_free(plan);
  } else {
    g_assert(!strchr(error->message, '\n'));
  }
  if (source)
    safetensors_free(source);
  return 0;
}
