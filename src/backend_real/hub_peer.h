/* A connection to the hub, and the table of them: part of the hub (control_hub.c), for nobody else. */
#ifndef DM_HUB_PEER_H
#define DM_HUB_PEER_H

#include "backend_real/control.h"
#include "backend_real/outbox.h"

#define ROUTING_BYTES_MAX 255

/* What a ROUTER socket knows a connection by. */
struct routing {
  uint8_t size;
  uint8_t bytes[ROUTING_BYTES_MAX];
};

enum peer_state {
  PEER_NEW,    /* no hello yet */
  PEER_JOINED, /* holds its place */
  PEER_OUT,    /* refused, expelled or left: its frames are ignored */
};

struct peer {
  struct routing routing;
  char user[KEY_TEXT]; /* the key that it proved to have; "" where there are no keys */
  char address[64];
  enum peer_state state;
  actor_id id;
  uint64_t epoch;
  struct outbox *outbox;
  gboolean dirty;   /* something is to be sent */
  gboolean gone;    /* the connection is over, though frames of it may still be there to read */
  gboolean ignored; /* a frame came after it was out, and that was logged */
  gboolean pending; /* its loss is to be told, or it is to be forgotten */
  char *why;        /* of a loss that the owner has not been told yet */
  int64_t gone_at;
};

/* Keyed by routing; owns its peers. */
GHashTable *peer_table_new(void);
struct peer *peer_table_add(GHashTable *table, void *socket, const struct routing *routing, const char *user,
                            const char *address);

#endif
