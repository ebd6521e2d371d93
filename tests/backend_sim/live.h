/* Operations under way in a watched simulation: which bytes each touches, and which must wait for which. */
#ifndef DM_LIVE_H
#define DM_LIVE_H

#include "backend_sim/sim.h"
#include "memories.h"

enum kind { FETCH, COPY, COMPUTE };

/* Bytes of one memory that an operation reads or writes. */
struct access {
  struct memory *memory;
  uint64_t at, length, image;
  gboolean write;
};

struct live {
  op_id op, after, after_fetch;
  enum kind kind;
  actor_id actor;
  uint32_t model, gpu, lane, group;
  gboolean to_host, ring; /* ring: a fetch into less than it reads, or a copy from there */
  GArray *accesses;
  const struct fetch_plan *plan;
  uint32_t first_group;
  gboolean remote, direct; /* direct: a fetch into GPU memory, or a computation after one */
  uint32_t server[MEMORY_SERVERS_MAX];
};

struct live *live_new(actor_id actor, op_id op, enum kind kind, uint32_t model);
void live_free(gpointer live);
/* `all` (of struct live) is in order of their begin. NULL: none has the id. */
struct live *live_find(const GPtrArray *all, op_id op);
/* b, begun after a, starts only when a is over (or, a being its fetch, its part of a). */
gboolean live_ordered(const GPtrArray *all, const struct live *a, const struct live *b);
/* The operation has failed: what must fail with it (what is after it, of a copy the rest of its lane, of a
 * fetch into GPU memory what is after its groups from `groups` on) touches nothing any more. */
void live_doom(const GPtrArray *all, const struct live *failed, uint32_t groups);
/* Both touch the same bytes, and one of them writes. */
gboolean live_collide(const struct live *a, const struct live *b);

#endif
