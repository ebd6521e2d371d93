/* A world by hand around one memory server: what it fetches ends when the test says so, what it fills and
 * serves is counted byte by byte. */
#ifndef MEMORY_SCRIPT_H
#define MEMORY_SCRIPT_H

#include "core/memory_server.h"

#define MODELS    6
#define IMAGE_MAX 90000
#define SERVERS   5
#define OPS_MAX   8
#define ME        1

struct fetching {
  op_id op;
  uint64_t tag;
  uint32_t model;
  struct piece piece;
  gboolean cancelled;
};

struct script {
  struct world world;
  struct config config;
  struct system system;
  struct catalog *catalog;
  struct load_plans *plans;
  struct memory_server *server;

  op_id ops;
  GArray *fetching;                                             /* of struct fetching */
  uint8_t filled[MODELS][IMAGE_MAX], served[MODELS][IMAGE_MAX]; /* how often */
  uint8_t brought[MODELS][IMAGE_MAX];                           /* by a fetch or a fill */
  gboolean timer;                                               /* one is set */
  GArray *placed;                                               /* of struct message_placed */
  uint32_t joins;
  uint64_t present, from; /* of the change under way */
  uint32_t last_model;    /* of the fetch before; moves go in order of the models */
};

/* Six models of two profiles; the server is ME, of at_start that are there from the start. */
struct script *script_new(enum sharding_kind sharding, uint32_t at_start, uint32_t replicas,
                          uint64_t memory_bytes);
void script_free(struct script *s);
/* Ends a fetch. */
void script_end(struct script *s, guint index, enum op_status status);
/* Fires the timer; FALSE: none is set. */
gboolean script_tick(struct script *s);

#endif
