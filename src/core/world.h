/* The seam: all that the core can do to the world and learn from it. Virtual or real time, the core never
 * asks which.
 *
 * An actor is run to completion: one message, timer or completion at a time, on one thread; `now` is frozen
 * meanwhile. Every operation (fetch, copy, compute) ends in exactly one completion, never from inside the
 * call that began it. Until then the host blocks and GPU ranges that it names belong to the world; cancel is
 * a request and changes nothing of that. An operation whose `after` failed or was cancelled ends as
 * OP_FAILED. `after` may name an operation that has already ended well: it is then no constraint. Each actor
 * has a world of its own (its address, its clock). */
#ifndef DM_WORLD_H
#define DM_WORLD_H

#include "core/arena.h"
#include "core/messages.h"
#include "core/sharding.h"

struct world;
typedef uint64_t op_id;    /* 0 = none */
typedef uint64_t timer_id; /* 0 = none */

enum actor_kind { ACTOR_CLIENT, ACTOR_CONTROLLER, ACTOR_GPU_SERVER, ACTOR_MEMORY_SERVER };

typedef uint32_t actor_id;
#define ACTOR(kind, index) ((actor_id)(kind) << 24 | (uint32_t)(index))
#define ACTOR_KIND(actor)  ((enum actor_kind)((actor) >> 24))
#define ACTOR_INDEX(actor) ((actor)&0xffffff)

/* Places (struct ranges) in a spec are read during the call only; what they name belongs to the operation
 * until it ends. Addresses are offsets in this server's host memory, or in the memory of the GPU named. */

/* Reads groups of a model into this server's host memory, or straight into the memory of one of its GPUs
 * (capability gpudirect), over one stream a memory server (or from its own SSD), each in group order.
 *
 * Into host memory: streams pause while more than window_bytes of what arrived waits for copies that name
 * this fetch.
 *
 * Byte b of the image (first: the first byte that the plan reads) goes to place (b - first) mod ring_bytes of
 * `host`. Where the ring is smaller than what is read, a stream begins a group only once the group's last
 * byte lies within ring_bytes of the first byte of the first group that is not copied yet.
 *
 * Into a GPU's memory: nothing waits for a copy, so no stream ever pauses; window_bytes and ring_bytes are 0.
 * A group is there once its last byte and those of all groups before it are: computations may begin after it.
 * Only remote fetches go there. */
struct fetch_spec {
  uint32_t model;
  enum load_source source;       /* SOURCE_REMOTE or SOURCE_SSD */
  const struct fetch_plan *plan; /* must live until the completion */
  const uint32_t *server;        /* [plan->streams] memory server each stream reads from; copied */
  uint32_t first_group;          /* earlier groups are here already */
  gboolean sequential;           /* group after group, else all streams run ahead */
  uint64_t window_bytes;         /* 0 = unbounded */
  const struct ranges *host;     /* where it goes; NULL: to `device` */
  uint64_t ring_bytes;           /* its size; at least the largest group */
  const struct ranges *device;   /* in the memory of gpu, the image's byte b at place b; NULL: to `host` */
  uint32_t gpu;                  /* local GPU it is for; NO_INDEX: of none */
  uint64_t request;              /* for the records: request that caused it */
  uint64_t tag;
};

/* Moves bytes between host memory and a GPU. Copies of one lane run in order, and one that fails takes the
 * rest of its lane, as it then is, with it; those of different lanes of a GPU run in the order in which they
 * can begin. */
struct copy_spec {
  uint32_t gpu; /* of this server */
  uint32_t lane;
  uint32_t model, group;     /* group: of the fetch named, and for the records */
  uint64_t offset, bytes;    /* of the image */
  const struct ranges *host; /* the image's byte b at place b mod ring_bytes; NULL: pageable memory
                                that is taken for this copy. Of
                                training state (model NO_INDEX): where it waits while it is not on the GPU */
  uint64_t ring_bytes;
  const struct ranges *device; /* the image's byte b at place b */
  gboolean to_host;
  gboolean pageable; /* host memory that is not pinned (capability pageable) */
  double extra_ns;   /* further host time of this copy: per-tensor costs */
  op_id after_fetch; /* begins when `group` of that fetch is here; 0 = is here */
  op_id after;       /* another copy of this GPU; 0 = none */
  uint64_t request, tag;
};

/* Runs layers on a GPU. Operations of one stream run in order; streams of a GPU share it in space
 * (capability). */
struct compute_spec {
  uint32_t gpu, stream;
  uint32_t model, group;       /* group NO_INDEX: a whole resident model */
  uint64_t offset, bytes;      /* of the image: the parameters that it reads */
  const struct ranges *device; /* the image's byte b at place b; NULL: no model (training) */
  double compute_ns;           /* nominal time of the layers, without overheads */
  uint32_t layers;             /* launches */
  gboolean loaded;             /* the group was loaded: its event is waited for (group_sync) */
  op_id after;                 /* the copy that brings the group; 0 = is here */
  op_id after_fetch;           /* the fetch into GPU memory that brings `group`; 0 = is here. One of both */
  uint64_t request, tag;
  /* Training: steps > 0 repeats the step; cancel then ends it at the next layer (layer_ns, [layers], scaled
   * to compute_ns in all) or, with layer_ns NULL, at the end of the step. The completion tells the whole
   * steps done. */
  uint64_t steps;
  const double *layer_ns;
};

enum op_status { OP_DONE, OP_FAILED, OP_CANCELLED };

struct completion {
  uint64_t tag;
  enum op_status status;
  uint64_t bytes;  /* fetch: bytes that came */
  uint32_t groups; /* fetch into GPU memory: the groups before this one are there, and no other is: what names
                      a later one has failed */
  uint64_t steps;  /* training compute: whole steps done */
};

enum world_capability {
  WORLD_SSD = 1 << 0,
  WORLD_PAGEABLE = 1 << 1,
  WORLD_SPACE_SHARING = 1 << 2,
  WORLD_UNBOUNDED_MEMORY = 1 << 3,
  WORLD_GPUDIRECT = 1 << 4, /* fetches into GPU memory */
};

struct world_ops {
  int64_t (*now)(struct world *world);
  timer_id (*timer)(struct world *world, int64_t delay_ns, uint64_t tag);
  void (*timer_cancel)(struct world *world, timer_id timer);
  void (*send)(struct world *world, actor_id to, const struct message *message);
  op_id (*fetch)(struct world *world, const struct fetch_spec *spec);
  op_id (*copy)(struct world *world, const struct copy_spec *spec);
  op_id (*compute)(struct world *world, const struct compute_spec *spec);
  void (*cancel)(struct world *world, op_id op);
  /* Reads from the model's source: the image's bytes [offset, offset + bytes) are to be at `place` (its byte
   * `offset` first), in the memory of gpu, or in host memory (NO_INDEX): a tier that starts warm, a shard
   * that is there, or that nobody has any more (a little at a time). May block; the simulator takes no time
   * for it. */
  void (*fill)(struct world *world, uint32_t model, uint64_t offset, uint64_t bytes, uint32_t gpu,
               const struct ranges *place);
  /* Memory servers: from now on peers may read the image's bytes [offset, offset + bytes) from `place` in
   * host memory; place NULL: no longer, these being all or a part of what one earlier call named. The rest of
   * it stays where it is. */
  void (*serve)(struct world *world, uint32_t model, uint64_t offset, uint64_t bytes,
                const struct ranges *place);
  /* Tells an onlooker; time and this server's numbers are filled in. Only call where world_records says so.
   */
  void (*record)(struct world *world, const struct record *record);
  uint32_t capabilities; /* enum world_capability bits */
};

/* The functions of a world's table, named PREFIX_now, PREFIX_timer and so on. */
#define WORLD_FUNCTIONS(PREFIX)                                                                              \
  .now = PREFIX##_now, .timer = PREFIX##_timer, .timer_cancel = PREFIX##_timer_cancel,                       \
  .send = PREFIX##_send, .fetch = PREFIX##_fetch, .copy = PREFIX##_copy, .compute = PREFIX##_compute,        \
  .cancel = PREFIX##_cancel, .fill = PREFIX##_fill, .serve = PREFIX##_serve, .record = PREFIX##_record

struct world {
  const struct world_ops *ops;
  gboolean records; /* somebody listens to records */
};

/* What an actor is to its world. */
struct actor_ops {
  void (*start)(void *actor);
  void (*message)(void *actor, actor_id from, const struct message *message);
  void (*timer)(void *actor, uint64_t tag);
  void (*completion)(void *actor, const struct completion *completion);
  void (*peer_lost)(void *actor, actor_id peer);
};

static inline int64_t world_now(struct world *world)
{
  return world->ops->now(world);
}

static inline void world_send(struct world *world, actor_id to, const struct message *message)
{
  world->ops->send(world, to, message);
}

static inline gboolean world_records(const struct world *world)
{
  return world->records;
}

#endif
