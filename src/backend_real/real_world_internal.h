/* Inside of the real world: its operations, and what one file calls of another. */
#ifndef DM_REAL_WORLD_INTERNAL_H
#define DM_REAL_WORLD_INTERNAL_H

#include "backend_real/real_world.h"
#include "backend_real/ssd_reader.h"

enum op_kind { OP_FREE, OP_FETCH, OP_COPY, OP_COMPUTE };

/* Common head of operations; each kind has a slab of its own. */
struct op {
  enum op_kind kind;
  uint32_t index, generation, next_free;
  uint64_t tag; /* the actor's */
  gboolean cancelled;
};

/* One read of a fetch, as long as it is under way. */
struct read {
  struct note note;
  struct real_world *rw;
  uint32_t fetch, group, stream, bytes;
  uint32_t opening; /* of its server, when it was asked */
  uint64_t offset, to;
  gboolean again; /* it has failed once */
  uint32_t self, next_free;
  gboolean good;
};

struct fetch_stream {
  uint32_t group, piece; /* next to ask for */
  uint64_t at;           /* bytes of the piece asked for */
  uint32_t under_way;    /* reads */
};

struct fetch_op {
  struct op op;
  struct note begun;
  struct real_world *rw;
  struct fetch_spec spec;
  struct ranges place; /* copies of what the spec names */
  gboolean direct;     /* in the memory of a GPU, not the host's */
  uint32_t server[MEMORY_SERVERS_MAX];
  struct fetch_stream *stream; /* [streams_room] */
  uint64_t *missing;           /* [groups_room] bytes of each group still to come */
  uint32_t streams_room, groups_room;
  uint32_t arrived;           /* groups, in a row from first_group */
  uint32_t under_way, copied; /* reads; groups that copies have taken, in a row */
  uint64_t came;              /* bytes */
  uint64_t base, ring;        /* the image's byte b goes to place (b - base) mod ring */
  gboolean failed;
};

enum copy_state { COPY_WAITING, COPY_ISSUED, COPY_LOST /* its end is yet to be told */ };

struct copy_op {
  struct op op;
  struct note note;
  struct real_world *rw;
  struct copy_spec spec;
  struct ranges host, device;
  enum copy_state state;
  uint64_t token;     /* of the last part, once issued */
  uint32_t lane_next; /* the next of the lane */
  op_id fetch;        /* whose group it takes, 0 = none */
  gboolean failed;    /* on the device, or what it waited for did */
  int64_t start, end;
};

struct compute_op {
  struct op op;
  struct note note;
  struct real_world *rw;
  struct compute_spec spec;
  struct ranges device;
  gboolean failed, wrong, stopped;
  volatile gboolean stop;
  uint32_t stream_next;
  int64_t asked, start, end;
};

/* Operations of one GPU in the order in which they were asked for. */
struct lane {
  uint32_t lane, first, last; /* of copies, or of computes of a stream */
};

struct mover;

struct real_gpu {
  struct mover *mover; /* of pageable copies; NULL: none yet */
  GArray *lanes;       /* of struct lane: lanes with copies that wait */
  GArray *streams;     /* of struct lane: streams with computes that wait */
};

struct slab {
  GPtrArray *all; /* of struct op *, or NULL for reads */
  uint32_t free;
};

struct real_world {
  struct world world;
  struct real_world_config is;
  const struct actor_ops *actor_ops;
  void *actor;
  const struct host_memory *memory;
  const struct images *images;
  const struct transport_ops *transport;
  struct shelf *shelf;
  struct reader *reader;
  const struct ssd_store *ssd_store;
  struct ssd_reader *ssd; /* NULL: no SSD tier */
  const struct device_ops *device_ops;
  struct device *device;
  struct real_gpu *gpu;
  uint32_t gpus;
  struct slab fetches, copies, computes;
  GPtrArray *reads; /* of struct read * */
  uint32_t free_read;
  uint64_t peers;                       /* bit i: memory server i can be read */
  uint32_t opening[MEMORY_SERVERS_MAX]; /* grows whenever one is dropped */
  gboolean closed;                      /* nothing is begun any more, and nobody is told */
  struct real_usage usage;
  GError *error;
};

static inline op_id op_id_of(const struct op *op)
{
  return (uint64_t)op->generation << 32 | (uint64_t)op->kind << 28 | op->index;
}

/* real_op.c */
void ops_init(struct real_world *rw);
void ops_free(struct real_world *rw);
/* The operation, NULL if it has ended. */
struct op *op_find(struct real_world *rw, op_id id, enum op_kind kind);
/* A free slot of `size` bytes whose own room (arrays) is kept. */
struct op *op_take(struct slab *slab, enum op_kind kind, gsize size);
/* Frees the slot, then tells the actor; the tag is filled in. */
void op_end(struct real_world *rw, struct op *op, struct completion completion);
void ranges_copy(struct ranges *to, const struct ranges *from);

/* real_world.c */
void real_world_fail(struct real_world *rw, const char *format, ...) G_GNUC_PRINTF(2, 3);
void real_record(struct real_world *rw, struct record record);

/* real_fetch.c */
op_id real_fetch(struct real_world *rw, const struct fetch_spec *spec);
void real_fetch_cancel(struct real_world *rw, struct fetch_op *fetch);
gboolean real_fetch_has(const struct fetch_op *fetch, uint32_t group);
/* A copy has taken the group out of host memory. */
void real_fetch_copied(struct real_world *rw, struct fetch_op *fetch, uint32_t group);
void real_fetch_ended(void *context, uint64_t tag, gboolean good); /* of a read, on any thread */

/* real_fill.c */
void real_fill(struct real_world *rw, uint32_t model, uint64_t offset, uint64_t bytes, uint32_t gpu,
               const struct ranges *place);

/* real_pageable.c */
void real_pageable_issue(struct real_world *rw, struct copy_op *copy);
void real_pageable_close(struct real_gpu *gpu);

/* real_issue.c */
/* Onto the device's queues; ended through real_gpu_ended. */
void real_issue_copy(struct real_world *rw, struct copy_op *copy);
void real_issue_compute(struct real_world *rw, struct compute_op *compute);

/* real_gpu.c */
op_id real_copy(struct real_world *rw, const struct copy_spec *spec);
op_id real_compute(struct real_world *rw, const struct compute_spec *spec);
void real_compute_cancel(struct real_world *rw, struct compute_op *compute);
/* Puts on the device what can be; ends what cannot be any more. */
void real_gpu_pump(struct real_world *rw, uint32_t gpu);
/* A fetch is about to end: what waits for its groups goes on or is lost. */
void real_gpu_fetch_over(struct real_world *rw, const struct fetch_op *fetch);
void real_gpu_ended(void *context, uint64_t tag, enum device_status status, int64_t start, int64_t end);

#endif
