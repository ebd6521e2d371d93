/* Shards of a memory server, by model in order of offset; see shard_store.h. */
#include "core/shard_store.h"

#include <string.h>

#define PAGE_MASK ((uint64_t)ARENA_ALIGN - 1)

struct shard_list {
  struct shard *shard;
  uint32_t count, room;
};

struct shard_store {
  struct arena *arena;
  uint64_t held;
  uint32_t models;
  struct shard_list list[]; /* by model */
};

struct shard_store *shard_store_new(uint32_t models, uint64_t bytes)
{
  struct shard_store *store = g_malloc0(sizeof *store + models * sizeof store->list[0]);
  store->arena = arena_new(0, bytes);
  store->models = models;
  return store;
}

void shard_store_free(struct shard_store *store)
{
  if (!store)
    return;
  for (uint32_t m = 0; m < store->models; m++) {
    for (uint32_t i = 0; i < store->list[m].count; i++)
      ranges_clear(&store->list[m].shard[i].place);
    g_free(store->list[m].shard);
  }
  arena_free(store->arena);
  g_free(store);
}

uint64_t shard_store_held(const struct shard_store *store)
{
  return store->held;
}

struct shard *shard_store_shards(struct shard_store *store, uint32_t model, uint32_t *count)
{
  *count = store->list[model].count;
  return store->list[model].shard;
}

static uint64_t piece_end(const struct piece *piece)
{
  return piece->offset + piece->length;
}

/* Index of the first shard that begins at offset or after it. */
static uint32_t shard_from(const struct shard_list *list, uint64_t offset)
{
  uint32_t low = 0, high = list->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (list->shard[middle].piece.offset < offset)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

struct shard *shard_store_find(struct shard_store *store, uint32_t model, uint64_t offset)
{
  struct shard_list *list = &store->list[model];
  uint32_t i = shard_from(list, offset);
  return i < list->count && list->shard[i].piece.offset == offset ? &list->shard[i] : NULL;
}

static void append_between(GArray *pieces, uint64_t begin, uint64_t end)
{
  struct piece piece = {.offset = begin, .length = end - begin};
  if (begin < end)
    g_array_append_val(pieces, piece);
}

void shard_store_missing(struct shard_store *store, uint32_t model, const struct piece *wanted,
                         uint32_t count, GArray *missing)
{
  const struct shard_list *list = &store->list[model];
  uint32_t i = 0;
  for (uint32_t w = 0; w < count; w++) {
    uint64_t at = wanted[w].offset, end = piece_end(&wanted[w]);
    while (i < list->count && piece_end(&list->shard[i].piece) <= at)
      i++;
    for (uint32_t k = i; k < list->count && list->shard[k].piece.offset < end; k++) {
      append_between(missing, at, list->shard[k].piece.offset);
      at = piece_end(&list->shard[k].piece);
    }
    append_between(missing, at, end);
  }
}

static void list_insert(struct shard_list *list, uint32_t at, struct shard shard)
{
  if (list->count == list->room) {
    list->room = list->room ? list->room * 2 : 1;
    list->shard = g_renew(struct shard, list->shard, list->room);
  }
  memmove(&list->shard[at + 1], &list->shard[at], (list->count++ - at) * sizeof shard);
  list->shard[at] = shard;
}

struct shard *shard_store_add(struct shard_store *store, uint32_t model, struct piece piece)
{
  struct shard_list *list = &store->list[model];
  struct shard shard = {.piece = piece};
  if (!arena_take(store->arena, piece.length, &shard.place))
    return NULL;
  uint32_t at = shard_from(list, piece.offset);
  list_insert(list, at, shard);
  store->held += piece.length;
  return &list->shard[at];
}

static void place_give(struct shard_store *store, struct ranges *place)
{
  arena_give(store->arena, place);
  ranges_clear(place);
}

/* Lets go the part [begin, end) of the shard's image, whose room has been given back. */
static void let_go(struct shard_store *store, const struct shard *shard, uint64_t begin, uint64_t end,
                   uint32_t model, void (*gone)(void *, uint32_t, struct piece), void *context)
{
  if (begin >= end)
    return;
  store->held -= end - begin;
  if (shard->here && gone)
    gone(context, model, (struct piece){.offset = begin, .length = end - begin});
}

/* The parts of the shard that are wanted; those that share an ARENA_ALIGN are one. */
static void parts_kept(const struct shard *shard, const struct piece *wanted, uint32_t count, GArray *kept)
{
  uint64_t zero = shard->piece.offset - shard->skip; /* the image's byte that the place begins with */
  g_array_set_size(kept, 0);
  for (uint32_t w = 0; w < count; w++) {
    uint64_t begin = MAX(wanted[w].offset, shard->piece.offset);
    uint64_t end = MIN(piece_end(&wanted[w]), piece_end(&shard->piece));
    if (begin >= end)
      continue;
    struct piece *last = kept->len ? &g_array_index(kept, struct piece, kept->len - 1) : NULL;
    uint64_t page = last ? (piece_end(last) - zero + PAGE_MASK) & ~PAGE_MASK : 0;
    if (last && page > ((begin - zero) & ~PAGE_MASK))
      last->length = end - last->offset;
    else
      append_between(kept, begin, end);
  }
}

/* Cuts the shard, which is in no list any more, into the kept parts; they are inserted from index `at` on. */
static void shard_cut(struct shard_store *store, uint32_t model, uint32_t at, struct shard shard,
                      const GArray *kept, void (*gone)(void *, uint32_t, struct piece), void *context)
{
  uint64_t zero = shard.piece.offset - shard.skip, done = shard.piece.offset, base = 0;
  for (uint32_t i = 0; i < kept->len; i++) {
    struct piece piece = g_array_index(kept, struct piece, i);
    uint64_t begin = (piece.offset - zero) & ~PAGE_MASK;
    uint64_t end = (piece_end(&piece) - zero + PAGE_MASK) & ~PAGE_MASK;
    struct shard part = {.piece = piece, .skip = (uint32_t)(piece.offset - zero - begin), .here = shard.here};
    struct ranges rest = {0};
    ranges_split(&shard.place, begin - base, &part.place);
    place_give(store, &shard.place);
    ranges_split(&part.place, end - begin, &rest);
    shard.place = rest;
    base = end;
    let_go(store, &shard, done, piece.offset, model, gone, context);
    done = piece_end(&piece);
    list_insert(&store->list[model], at + i, part);
  }
  place_give(store, &shard.place);
  let_go(store, &shard, done, piece_end(&shard.piece), model, gone, context);
}

void shard_store_trim(struct shard_store *store, uint32_t model, const struct piece *wanted, uint32_t count,
                      void (*gone)(void *context, uint32_t model, struct piece piece), void *context)
{
  struct shard_list *list = &store->list[model];
  GArray *kept = g_array_new(FALSE, FALSE, sizeof(struct piece));
  for (uint32_t i = 0; i < list->count;) {
    struct shard shard = list->shard[i];
    parts_kept(&shard, wanted, count, kept);
    const struct piece *first = kept->len == 1 ? &g_array_index(kept, struct piece, 0) : NULL;
    if (first && first->offset == shard.piece.offset && first->length == shard.piece.length) {
      i++;
      continue;
    }
    memmove(&list->shard[i], &list->shard[i + 1], (--list->count - i) * sizeof shard);
    shard_cut(store, model, i, shard, kept, gone, context);
    i += kept->len;
  }
  g_array_unref(kept);
}

void shard_store_drop_coming(struct shard_store *store, uint32_t model)
{
  struct shard_list *list = &store->list[model];
  uint32_t kept = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    struct shard *shard = &list->shard[i];
    if (shard->here) {
      list->shard[kept++] = *shard;
    } else {
      store->held -= shard->piece.length;
      place_give(store, &shard->place);
    }
  }
  list->count = kept;
}

static int by_offset(const void *a, const void *b)
{
  const struct piece *x = a, *y = b;
  return x->offset < y->offset ? -1 : x->offset > y->offset;
}

void pieces_merge(GArray *pieces)
{
  struct piece *piece = (struct piece *)(void *)pieces->data;
  uint32_t kept = 0;
  g_array_sort(pieces, by_offset);
  for (uint32_t i = 0; i < pieces->len; i++) {
    if (kept > 0 && piece[i].offset <= piece_end(&piece[kept - 1]))
      piece[kept - 1].length =
          MAX(piece_end(&piece[kept - 1]), piece_end(&piece[i])) - piece[kept - 1].offset;
    else
      piece[kept++] = piece[i];
  }
  g_array_set_size(pieces, kept);
}
