/* Laying out an image; see image_plan.h. */
#include "backend_real/image_plan.h"

#include <string.h>

#include "core/error.h"

/* The layer of each tensor: numbered by first appearance of the names' part before the last dot. Returns how
 * many there are. */
static uint32_t number_layers(const struct safetensors *source, uint32_t *layer_of)
{
  g_autoptr(GHashTable) known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  for (uint32_t i = 0; i < source->tensors->len; i++) {
    const char *name = g_array_index(source->tensors, struct safetensor, i).name;
    const char *dot = strrchr(name, '.');
    char *layer = dot ? g_strndup(name, (gsize)(dot - name)) : g_strdup(name);
    gpointer number;
    if (g_hash_table_lookup_extended(known, layer, NULL, &number)) {
      g_free(layer);
    } else {
      number = GUINT_TO_POINTER(g_hash_table_size(known));
      g_hash_table_insert(known, layer, number);
    }
    layer_of[i] = GPOINTER_TO_UINT(number);
  }
  return g_hash_table_size(known);
}

/* The tensors' order in the image: by layer, within one by the source's. A counting sort. */
static uint32_t *order_tensors(const uint32_t *layer_of, uint32_t tensors, uint32_t layers)
{
  g_autofree uint32_t *next = g_new0(uint32_t, layers + 1);
  uint32_t *order = g_new(uint32_t, MAX(tensors, 1));
  for (uint32_t i = 0; i < tensors; i++)
    next[layer_of[i] + 1]++;
  for (uint32_t i = 0; i < layers; i++)
    next[i + 1] += next[i];
  for (uint32_t i = 0; i < tensors; i++)
    order[next[layer_of[i]]++] = i;
  return order;
}

static uint64_t add_string(struct image_plan *plan, const char *text)
{
  uint64_t at = plan->strings->len;
  g_byte_array_append(plan->strings, (const guint8 *)text, (guint)strlen(text) + 1);
  return at;
}

/* A dtype is written once: after that, its offset is known by its text's address, one for each dtype. */
static uint64_t add_dtype(struct image_plan *plan, GHashTable *known, const char *dtype)
{
  gpointer at;
  if (g_hash_table_lookup_extended(known, dtype, NULL, &at))
    return GPOINTER_TO_SIZE(at);
  uint64_t added = add_string(plan, dtype);
  g_hash_table_insert(known, (gpointer)dtype, GSIZE_TO_POINTER(added));
  return added;
}

static void add_tensor(struct image_plan *plan, const struct safetensors *source,
                       const struct safetensor *tensor, uint32_t layer, GHashTable *dtypes)
{
  uint64_t bytes = tensor->end - tensor->begin, at = plan->header.data_bytes;
  struct image_move move = {.from = tensor->begin, .to = at, .bytes = bytes, .layer = layer};
  struct image_tensor_record record = {
      .name = add_string(plan, tensor->name),
      .dtype = add_dtype(plan, dtypes, tensor->dtype),
      .layer = layer,
      .dims = tensor->dims,
      .shape = plan->shapes->len,
      .offset = at,
      .bytes = bytes,
  };
  for (uint32_t i = 0; i < tensor->dims; i++)
    g_array_append_val(plan->shapes, g_array_index(source->shapes, uint64_t, tensor->shape + i));
  g_array_append_val(plan->moves, move);
  g_array_append_val(plan->records, record);
  struct image_layer *last = &g_array_index(plan->layers, struct image_layer, layer);
  last->bytes += bytes;
  plan->header.data_bytes += bytes;
}

static void fill(struct image_plan *plan, const struct safetensors *source)
{
  uint32_t tensors = source->tensors->len;
  g_autofree uint32_t *layer_of = g_new(uint32_t, MAX(tensors, 1));
  uint32_t layers = number_layers(source, layer_of);
  g_autofree uint32_t *order = order_tensors(layer_of, tensors, layers);
  g_autoptr(GHashTable) dtypes = g_hash_table_new(g_str_hash, g_str_equal);
  for (uint32_t i = 0; i < tensors; i++) {
    uint32_t layer = layer_of[order[i]];
    if (layer == plan->layers->len) {
      struct image_layer begun = {.offset = plan->header.data_bytes};
      g_array_append_val(plan->layers, begun);
    }
    add_tensor(plan, source, &g_array_index(source->tensors, struct safetensor, order[i]), layer, dtypes);
  }
}

struct image_plan *image_plan_new(const char *path, const struct safetensors *source, GError **error)
{
  if (source->tensors->len == 0) {
    input_error(error, path, 0, "expected at least one tensor, found none");
    return NULL;
  }
  struct image_plan *plan = g_new0(struct image_plan, 1);
  plan->layers = g_array_new(FALSE, FALSE, sizeof(struct image_layer));
  plan->moves = g_array_new(FALSE, FALSE, sizeof(struct image_move));
  plan->records = g_array_new(FALSE, FALSE, sizeof(struct image_tensor_record));
  plan->shapes = g_array_new(FALSE, FALSE, sizeof(uint64_t));
  plan->strings = g_byte_array_new();
  fill(plan, source);
  memcpy(plan->header.magic, IMAGE_MAGIC, sizeof plan->header.magic);
  plan->header.version = IMAGE_VERSION;
  plan->header.layers = plan->layers->len;
  plan->header.tensors = plan->records->len;
  plan->header.shapes = plan->shapes->len;
  plan->header.strings = plan->strings->len;
  struct image_tables tables = image_tables_of(&plan->header);
  plan->header.data_offset = image_data_offset(&tables);
  if (plan->strings->len <= IMAGE_STRINGS_MAX)
    return plan;
  input_error(error, path, 0, "expected names of at most %u bytes in all, found %u", IMAGE_STRINGS_MAX,
              plan->strings->len);
  image_plan_free(plan);
  return NULL;
}

void image_plan_free(struct image_plan *plan)
{
  g_array_free(plan->layers, TRUE);
  g_array_free(plan->moves, TRUE);
  g_array_free(plan->records, TRUE);
  g_array_free(plan->shapes, TRUE);
  g_byte_array_free(plan->strings, TRUE);
  g_free(plan);
}
