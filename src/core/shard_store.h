/* The shards in one memory: for each model the parts of its image that are there (or on their way), and
 * where.
 *
 * Owns the addresses of an arena of base 0. Parts of a model lie in order of offset and do not overlap. Room
 * is given back in whole ARENA_ALIGNs, so bytes that share one with bytes that stay on both sides of them
 * stay too; everything held is counted. */
#ifndef DM_SHARD_STORE_H
#define DM_SHARD_STORE_H

#include "core/arena.h"
#include "core/sharding.h"

struct shard {
  struct piece piece;  /* of the image */
  struct ranges place; /* its byte `skip` is the piece's first */
  uint32_t skip;       /* below ARENA_ALIGN; 0 until the shard is trimmed */
  gboolean here;       /* FALSE: on its way */
};

struct shard_store;

/* bytes: size of the memory. */
struct shard_store *shard_store_new(uint32_t models, uint64_t bytes);
void shard_store_free(struct shard_store *store);
/* Bytes of all shards, those on their way among them. */
uint64_t shard_store_held(const struct shard_store *store);
/* In order of offset; they move when the model's shards change. */
struct shard *shard_store_shards(struct shard_store *store, uint32_t model, uint32_t *count);
/* The shard that begins at offset, NULL if none does. */
struct shard *shard_store_find(struct shard_store *store, uint32_t model, uint64_t offset);
/* Appends to `missing` (of struct piece) what of `wanted` no shard has. Both are in order of offset, without
 * overlap. */
void shard_store_missing(struct shard_store *store, uint32_t model, const struct piece *wanted,
                         uint32_t count, GArray *missing);
/* Takes room for a part that no shard overlaps, on its way. NULL: too little is left. */
struct shard *shard_store_add(struct shard_store *store, uint32_t model, struct piece piece);
/* Lets go what is not in `wanted` (ordered, no overlap); gone is told of every part that was here. */
void shard_store_trim(struct shard_store *store, uint32_t model, const struct piece *wanted, uint32_t count,
                      void (*gone)(void *context, uint32_t model, struct piece piece), void *context);
/* Lets go what is still on its way. */
void shard_store_drop_coming(struct shard_store *store, uint32_t model);

/* Puts pieces (a GArray of struct piece) in order and joins those that touch or overlap. */
void pieces_merge(GArray *pieces);

#endif
