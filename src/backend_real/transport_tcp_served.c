/* What a TCP shelf serves; see transport_tcp_served.h. */
#include "backend_real/transport_tcp_served.h"

/* Bytes [offset, offset + bytes) of the image lie at `place` of memory. */
struct extent {
  uint64_t offset, bytes, place;
};

struct model {
  GArray *extents;    /* struct extent, in order of offset, none overlapping another */
  uint64_t low, high; /* all that was ever served lies in [low, high) */
};

struct served {
  GHashTable *models; /* number -> struct model; looked up, never walked */
};

static void model_free(void *data)
{
  struct model *model = data;
  g_array_free(model->extents, TRUE);
  g_free(model);
}

struct served *served_new(void)
{
  struct served *served = g_new0(struct served, 1);
  served->models = g_hash_table_new_full(NULL, NULL, NULL, model_free);
  return served;
}

void served_free(struct served *served)
{
  if (!served)
    return;
  g_hash_table_destroy(served->models);
  g_free(served);
}

static struct model *find_model(const struct served *served, uint32_t number)
{
  return g_hash_table_lookup(served->models, GUINT_TO_POINTER(number));
}

static struct model *need_model(struct served *served, uint32_t number)
{
  struct model *model = find_model(served, number);
  if (!model) {
    model = g_new0(struct model, 1);
    model->extents = g_array_new(FALSE, FALSE, sizeof(struct extent));
    model->low = UINT64_MAX;
    g_hash_table_insert(served->models, GUINT_TO_POINTER(number), model);
  }
  return model;
}

static struct extent *extent_at(const struct model *model, guint i)
{
  return &g_array_index(model->extents, struct extent, i);
}

/* The first extent that ends after `offset`. */
static guint first_after(const struct model *model, uint64_t offset)
{
  guint low = 0, high = model->extents->len;
  while (low < high) {
    guint middle = low + (high - low) / 2;
    const struct extent *e = extent_at(model, middle);
    if (e->offset + e->bytes <= offset)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Takes [offset, end) out: extents inside it go, those that reach out of it are cut. */
static void cut(struct model *model, uint64_t offset, uint64_t end)
{
  guint i = first_after(model, offset);
  while (i < model->extents->len && extent_at(model, i)->offset < end) {
    struct extent whole = *extent_at(model, i);
    g_array_remove_index(model->extents, i);
    if (whole.offset < offset) {
      struct extent before = {whole.offset, offset - whole.offset, whole.place};
      g_array_insert_val(model->extents, i++, before);
    }
    if (whole.offset + whole.bytes > end) {
      uint64_t gone = end - whole.offset;
      struct extent after = {end, whole.bytes - gone, whole.place + gone};
      g_array_insert_val(model->extents, i++, after);
    }
  }
}

void served_add(struct served *served, uint32_t number, uint64_t offset, uint64_t bytes,
                const struct ranges *place)
{
  struct model *model = need_model(served, number);
  cut(model, offset, offset + bytes);
  guint i = first_after(model, offset);
  uint64_t done = 0;
  for (uint32_t r = 0; r < place->count && done < bytes; r++) {
    struct extent e = {offset + done, MIN(place->range[r].length, bytes - done), place->range[r].offset};
    if (e.bytes == 0)
      continue;
    g_array_insert_val(model->extents, i++, e);
    done += e.bytes;
  }
  model->low = MIN(model->low, offset);
  model->high = MAX(model->high, offset + done);
}

void served_remove(struct served *served, uint32_t number, uint64_t offset, uint64_t bytes)
{
  struct model *model = find_model(served, number);
  if (model)
    cut(model, offset, offset + bytes);
}

enum served_answer served_find(const struct served *served, uint32_t number, uint64_t offset, uint64_t bytes,
                               uint8_t *base, struct iovec *piece, uint32_t room, uint32_t *pieces)
{
  *pieces = 0;
  const struct model *model = find_model(served, number);
  if (!model)
    return SERVED_NOT_HERE;
  if (offset < model->low || offset + bytes > model->high)
    return SERVED_NEVER;
  uint64_t at = offset, end = offset + bytes;
  for (guint i = first_after(model, offset); at < end; i++) {
    if (i >= model->extents->len || extent_at(model, i)->offset > at)
      return SERVED_NOT_HERE;
    const struct extent *e = extent_at(model, i);
    uint64_t skip = at - e->offset, length = MIN(e->bytes - skip, end - at);
    if (*pieces < room)
      piece[(*pieces)++] = (struct iovec){base + e->place + skip, length};
    at += length;
  }
  return SERVED_HERE;
}
