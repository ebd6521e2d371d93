/* Sharding: where the bytes of a model's image lie in the memory pool.
 *
 * The image is the concatenation of the layers' parameters. A placement says which memory server holds which
 * byte range; a fetch plan cuts each group along it. Memory servers are named by dense slots 0..M-1 of the
 * placement's server list; copies r = 1..replicas-1 put slot s on server slot (s + r) mod M. */
#ifndef DM_SHARDING_H
#define DM_SHARDING_H

#include "core/grouping.h"

enum sharding_kind {
  SHARDING_PER_APP,    /* whole model on one server: slot (rotation mod M) */
  SHARDING_HORIZONTAL, /* group j on slot j mod M */
  SHARDING_VERTICAL,   /* the image cut into M equal byte ranges, range i on slot i */
  SHARDING_HYBRID      /* each group cut over all M slots: DistMind's */
};

gboolean sharding_parse(const char *text, enum sharding_kind *kind, GError **error);
const char *sharding_name(enum sharding_kind kind);

struct extent {
  uint64_t offset, length; /* in the image, bytes */
  uint32_t slot;           /* of the placement: 0..M-1 */
};

/* Ordered by offset, covers [0, param_bytes) exactly once, no empty extent. */
struct placement {
  uint32_t slots;
  uint32_t extents;
  struct extent *extent;
};

/* Placement over `slots` servers of a model cut as `home` (the grouping that shard boundaries follow).
 * rotation spreads per-app models: slot rotation mod slots. A byte remainder of an even cut goes to the
 * lowest slots. */
struct placement *placement_new(enum sharding_kind kind, const struct grouping *home, uint32_t slots,
                                uint32_t rotation);
void placement_free(struct placement *placement);
/* Bytes that slot holds of one copy. */
uint64_t placement_slot_bytes(const struct placement *placement, uint32_t slot);

/* A contiguous part of an image. */
struct piece {
  uint64_t offset, length; /* bytes */
};

/* What one load reads from each server, in group order. Streams are the servers that hold anything of it. */
struct fetch_plan {
  uint32_t groups, streams;
  uint32_t *slot;         /* [streams] slot of the placement each stream reads from */
  uint64_t *bytes;        /* [groups * streams] bytes of group g on stream s at [g * streams + s]; may be 0 */
  uint64_t *group_bytes;  /* [groups] sums */
  uint64_t *group_offset; /* [groups] of their first bytes in the image */
  uint32_t *first_piece; /* [groups * streams + 1] pieces of group g on stream s: first_piece[g * streams + s]
                            up to the next entry's */
  struct piece *piece;   /* in order of group, stream, offset */
  uint64_t total_bytes;
};

/* Cuts the groups of `grouping` (of any GPU kind) along the placement. */
struct fetch_plan *fetch_plan_new(const struct placement *placement, const struct grouping *grouping);
/* The same for a part of an image: extents follow each other without a gap from extent[0].offset on and are
 * cut into groups of group_bytes[groups]; slots are below `slots`. */
struct fetch_plan *fetch_plan_cut(const struct extent *extent, uint32_t extents, uint32_t slots,
                                  const uint64_t *group_bytes, uint32_t groups);
void fetch_plan_free(struct fetch_plan *plan);

#endif
