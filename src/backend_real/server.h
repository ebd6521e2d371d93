/* A server's process: linked to the controller's, it takes part in one run after another as a GPU server or a
 * memory server, until it is told to go.
 *
 * Life of a run: PREPARE (read the experiment, open memory, transport and device, start the actor, whose mail
 * is held back), READY, GO (who can be read, mail goes out), … END (everything closed again), ENDED. */
#ifndef DM_SERVER_H
#define DM_SERVER_H

#include "backend_real/control.h"
#include "backend_real/metrics_http.h"
#include "backend_real/real_world.h"
#include "backend_real/run_spec.h"
#include "backend_real/server_metrics.h"
#include "harness/recorder.h"

struct server_options {
  enum actor_kind kind; /* ACTOR_GPU_SERVER or ACTOR_MEMORY_SERVER */
  uint32_t index;
  struct link_config link;
  char *data_address; /* HOST or HOST:PORT where its shelf listens */
  uint32_t first_gpu; /* ordinal of its first GPU on this machine */
  char *ssd_folder;   /* of its SSD tier, NULL: it has none */
  int metrics;        /* socket to serve them on, which it takes; -1 = none */
  char *rdma_device;  /* transport.h; NULL: by the route */
  gint gid_index;     /* -1: chosen */
  char *record;       /* recordings go to files of this name (recording_create), NULL: nowhere */
};

struct server {
  struct loop *loop;
  struct link *link;
  const struct server_options *options;
  const struct server_kind *kind;
  struct metrics_http *metrics; /* NULL: not served */
  struct server_totals before;  /* of the runs that are over */
  struct recording *recording;  /* NULL: none */
  uint64_t epoch;               /* of the link */
  GError *error;                /* why it ends, NULL: it was asked to */

  /* Of the run; spec.run 0: none. */
  struct run_spec spec;
  struct experiment *experiment;
  struct setup *setup;
  struct images *images;
  struct host_memory memory;
  const struct transport_ops *transport;
  struct transport_options transport_options;
  const struct device_ops *device;
  struct shelf *shelf;
  struct ssd_store *ssd; /* NULL: the system has no SSD tier */
  struct real_world *rw;
  struct world *seam; /* of the actor: the world's, or the recorder's before it */
  void *actor;
  struct recorder *recorder;       /* NULL: nothing is recorded */
  const struct actor_ops *ear_ops; /* who is told what the actor is to hear: the actor, or the recorder */
  void *ear;
  gboolean going;
  int64_t went, left; /* GO and LEAVE, on the loop's clock; left 0: not yet */
  GArray *held;       /* of struct message: mail before GO */
  GArray *records;    /* of struct record, not yet sent */
  GArray *peers;      /* of struct run_peer: as last told */
  uint64_t broken;    /* memory servers whose data connections broke, to be tried again */
  uint64_t given_up;  /* those that the controller takes for dead */
};

/* What differs between the two. */
struct server_kind {
  const char *name;
  uint64_t (*memory_bytes)(const struct config *config, uint32_t index);
  gboolean touch; /* all of it is going to be used; else as it is filled */
  /* Opens what it stands on and makes the actor; on failure close() follows. */
  gboolean (*open)(struct server *server, GError **error);
  void (*actor_free)(void *actor);
  const struct actor_ops *actor;
  void (*usage)(const struct server *server, struct usage *usage);
  char *(*describe)(const struct server *server); /* what it really uses; g_free */
};
extern const struct server_kind server_kind_gpu, server_kind_memory;

/* Until SIGTERM or SIGINT, the controller's BYE, or the link's loss (FALSE + error). A link that only broke
 * is opened anew, 5 s being the controller's to be there again; a run that was on is closed, and the
 * controller may take this server in again, as one that joins. */
gboolean server_run(const struct server_options *options, GError **error);
/* HOST:PORT of HOST[:PORT]: any port where none is given. */
char *server_data_address(const char *address);

/* server_peers.c: whom it reads from, and letters between its transport and others' */
void server_post_to_shelf(void *context, uint32_t server, const void *letter, size_t size);
void server_post_to_reader(void *context, actor_id reader, const void *letter, size_t size);
void server_letter(struct server *s, const uint8_t *data, size_t size);
void server_peers_set(struct server *s, GArray *peers); /* takes the array */
/* Before the actor is told: a dead one's reads must end before it looks for copies. */
void server_peers_follow(struct server *s, const struct message *message);
/* Reads from one failed, and the actor was told. */
void server_peer_broken(void *context, uint32_t server);

#endif
