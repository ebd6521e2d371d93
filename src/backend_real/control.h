/* Control connections: a star with the controller's process in the middle, over CurveZMQ (authenticated and
 * encrypted).
 *
 * The hub binds; every other role and the client hold one link to it. Frames are a kind and bytes. Frames of
 * kind FRAME_MESSAGES carry core messages of one run, gathered until the loop waits; they are decoded and
 * bounded here. A peer that breaks the protocol (unknown kind, wrong size, value out of bounds, more than its
 * share of unread bytes: outbox.h) is expelled: it gets FRAME_REFUSED with the reason, later frames of it are
 * ignored and logged once, and the owner sees it as lost. Nothing that a peer sends is trusted, and no queue
 * is longer than its count allows: one that does not read its frames is lost, none is dropped silently.
 *
 * Hub and link have threads of ZeroMQ: a process forks before it has one, not after. */
#ifndef DM_CONTROL_H
#define DM_CONTROL_H

#include "backend_real/keys.h"
#include "backend_real/loop.h"
#include "core/messages.h"
#include "core/world.h"

/* K(NAME, way (TO_HUB, TO_PEER or TO_BOTH), who to whom and what the payload is, largest payload). Payloads
 * other than messages are the roles' business: roles.h. */
#define FRAME_TABLE(K)                                                                                       \
  K(HELLO, TO_HUB, "peer to hub: struct hello", 1024)                                                        \
  K(WELCOME, TO_PEER, "hub to peer: u32 version of the protocol", 64)                                        \
  K(REFUSED, TO_PEER, "hub to peer: text; the connection is over", 1024)                                     \
  K(BYE, TO_BOTH, "either: leaves of its own will", 0)                                                       \
  K(SIGN, TO_BOTH, "either: a sign of life, for what every frame tells; nobody above sees it", 0)            \
  K(MESSAGES, TO_BOTH, "core messages of one run: u32 run, then messages", 65536)                            \
  K(BEGIN, TO_HUB, "client to hub: a run to be set up", 4194304)                                             \
  K(PREPARE, TO_PEER, "hub to servers: the same, with the pool's addresses", 4194304)                        \
  K(READY, TO_BOTH, "server to hub, hub to client", 65536)                                                   \
  K(FAILED, TO_BOTH, "server to hub, hub to client: the run cannot be: text", 4096)                          \
  K(GO, TO_PEER, "hub to servers: who can be read; mail may go", 65536)                                      \
  K(END, TO_BOTH, "client to hub, hub to servers: the run is over", 64)                                      \
  K(ENDED, TO_BOTH, "server to hub, hub to client", 65536)                                                   \
  K(GRANT, TO_PEER, "hub to memory server: a peer may read", 1024)                                           \
  K(GRANTED, TO_HUB, "memory server to hub", 64)                                                             \
  K(METER, TO_BOTH, "client to hub, hub to servers: how much so far?", 64)                                   \
  K(METERED, TO_BOTH, "server to hub, hub to client", 4096)                                                  \
  K(LETTER, TO_BOTH, "server to server, by the hub: of their transports", 65536)                             \
  K(RECORDS, TO_BOTH, "server to hub, hub to client: struct record each", 65536)                             \
  K(REVOKE, TO_PEER, "hub to memory server: a peer may read no longer", 64)

enum frame_kind {
#define K(NAME, way, text, bytes) FRAME_##NAME,
  FRAME_TABLE(K)
#undef K
      FRAME_KINDS
};

/* "gpu-server", "client", …, for messages to people. */
const char *peer_name(actor_id peer);

/* Who connects. */
struct hello {
  enum actor_kind role;
  uint32_t index;    /* place in its pool; of a client NO_INDEX: any that is free */
  uint64_t epoch;    /* grows with every start of that place: wall clock, us */
  char address[108]; /* where its data plane listens, "" = none */
  char version[64];  /* program_version() */
  char can[64];      /* transports that can be used there, comma-separated, "" = none */
};

/* --- the hub
 * --------------------------------------------------------------------------------------------------------*/

struct hub;

#define HUB_LEFT "it left" /* why of a peer that said goodbye */

struct hub_ops {
  /* A peer has said hello (authorized, place free or of an older epoch, whose holder is lost first). NULL =
   * welcome, else the reason why not. */
  const char *(*joined)(void *context, actor_id peer, const struct hello *hello);
  void (*frame)(void *context, actor_id peer, enum frame_kind kind, const uint8_t *data, size_t size);
  void (*message)(void *context, actor_id peer, uint32_t run, const struct message *message);
  /* It left, broke off, or was expelled; once for each joined. */
  void (*lost)(void *context, actor_id peer, const char *why);
};

struct hub_config {
  const char *endpoint;        /* tcp://ADDRESS:PORT, port 0 or * = any; ipc:// for tests */
  const struct key_pair *keys; /* NULL: no encryption, allowed on loopback only */
  const char *authorized;      /* folder of public keys, or one; read anew for each connection */
};

/* NULL + DM_ERROR_INPUT: cannot bind; an address that is not loopback without keys. */
struct hub *hub_new(struct loop *loop, const struct hub_config *config, const struct hub_ops *ops,
                    void *context, GError **error);
/* Says goodbye to all. Not from inside a function of ops. */
void hub_free(struct hub *hub);
const char *hub_endpoint(const struct hub *hub); /* with the port that it got */
/* Bounds of core messages to come; before that, any is a breach. */
void hub_set_limits(struct hub *hub, uint32_t run, const struct message_limits *limits);
void hub_send(struct hub *hub, actor_id peer, enum frame_kind kind, const void *data, size_t size);
/* Appends to the peer's batch. To one that is not there: nothing (its loss was told). */
void hub_message(struct hub *hub, actor_id peer, uint32_t run, const struct message *message);
/* Breaks with a peer: a breach that an upper layer saw. */
void hub_expel(struct hub *hub, actor_id peer, const char *why);

struct hub_counts {
  uint32_t joined[4]; /* now, by enum actor_kind */
  uint64_t refused;   /* connections that never joined: no key or a wrong one, no good hello, no place */
  uint64_t expelled;  /* peers that broke the protocol or did not read */
  uint64_t lost;      /* told to the owner */
};
void hub_counts(struct hub *hub, struct hub_counts *counts);

/* --- a link
 * ---------------------------------------------------------------------------------------------------------*/

struct link;

struct link_ops {
  void (*welcome)(void *context);
  void (*frame)(void *context, enum frame_kind kind, const uint8_t *data, size_t size);
  void (*message)(void *context, uint32_t run, const struct message *message);
  /* Refused, the hub went away (no sign of life for 2 s), or it broke the protocol. Once; then the link is
   * dead. */
  void (*lost)(void *context, const char *why);
};

/* How a link was lost. */
enum link_loss {
  LINK_REFUSED, /* one of the two wants nothing more of the other, or nobody was there */
  LINK_ENDED,   /* the hub said good-bye */
  LINK_BROKE,   /* the connection broke off, or the hub was silent: another link may come about */
};

struct link_config {
  const char *endpoint;
  const struct key_pair *keys; /* NULL as above */
  const char *server_key;      /* the hub's public key, Z85 text */
  int64_t connect_timeout_ns;  /* for the first welcome */
};

struct link *link_new(struct loop *loop, const struct link_config *config, const struct hello *hello,
                      const struct link_ops *ops, void *context, GError **error);
/* Also from inside a function of ops. What was sent goes out first, for half a second at most. */
void link_free(struct link *link);
/* From `lost` on. */
enum link_loss link_loss(const struct link *link);
void link_set_limits(struct link *link, uint32_t run, const struct message_limits *limits);
/* Before the welcome too: it goes out behind the hello. */
void link_send(struct link *link, enum frame_kind kind, const void *data, size_t size);
void link_message(struct link *link, uint32_t run, const struct message *message);

#endif
