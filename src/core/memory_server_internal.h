/* Shared by the memory server's files: its state, and what one part calls of another. */
#ifndef DM_MEMORY_SERVER_INTERNAL_H
#define DM_MEMORY_SERVER_INTERNAL_H

#include "core/memory_server.h"
#include "core/shard_store.h"

/* Fetches under way at once while the plan changes. */
#define MOVES_MAX 8

/* A part of an image on its way here. */
struct move {
  op_id op; /* 0: none */
  struct fetch_plan *plan;
  uint32_t model;
  uint64_t offset; /* of its shard */
};

/* A shard that is read from its source. */
struct filling {
  gboolean on;
  uint32_t model;
  uint64_t offset, at; /* of the shard; bytes of it that are here */
};

enum memory_timer { MEMORY_TIMER_HEARTBEAT, MEMORY_TIMER_FILL };

struct memory_server {
  const struct config *config;
  struct world *world;
  uint32_t index, epoch;
  struct shard_store *store;
  uint64_t peak;
  gboolean leaving;
  struct pool_plan *plan; /* whose shards it holds; NULL: none */

  /* The change of plan that it follows. */
  struct pool_plan *incoming;  /* NULL: none */
  struct pool_plan *plan_from; /* where the shards lie now */
  uint64_t from;               /* members of it that answer */
  gboolean placed;             /* all of incoming is here */
  gboolean failed;             /* given up: what is under way ends first */
  struct message_place again;  /* the change to follow then; members 0 = none */
  struct move move[MOVES_MAX];
  struct filling filling;
  uint32_t moving;     /* moves under way, the filling one among them */
  uint32_t next_model; /* shards of earlier models are here or under way */
  GArray *wanted;      /* scratch, of struct piece */
};

/* memory_server.c */
/* Appends to *pieces what this server holds of a model under the plan (NULL: nothing). */
void memory_server_pieces(const struct memory_server *s, const struct pool_plan *plan, uint32_t model,
                          GArray *pieces);
/* The placement of the model's image under the plan. */
const struct placement *memory_server_placement(const struct memory_server *s, const struct pool_plan *plan,
                                                uint32_t model);
void memory_server_serve(struct memory_server *s, uint32_t model, struct piece piece,
                         const struct ranges *place);

/* memory_move.c */
/* PLACE: follows the change, after the one under way has been given up. */
void memory_move_place(struct memory_server *s, const struct message_place *m);
/* DROP: the change is done everywhere; what only the old plan wanted goes. */
void memory_move_drop(struct memory_server *s, uint32_t version);
void memory_move_ended(struct memory_server *s, uint32_t move, enum op_status status);
/* MEMORY_TIMER_FILL. */
void memory_move_fill(struct memory_server *s);
/* A memory server no longer answers. */
void memory_move_peer_lost(struct memory_server *s);

#endif
