/* A server's process: linked to the controller's, it takes part in one run after another as a GPU server or a
 * memory server, until it is told to go.
 *
 * Life of a run: PREPARE (read the experiment, open memory, transport and device, start the actor, whose mail
 * is held back), READY, GO (who can be read, mail goes out), … END (everything closed again), ENDED. */
#ifndef DM_SERVER_H
#define DM_SERVER_H

#include "backend_real/control.h"
#include "backend_real/real_world.h"
#include "backend_real/run_spec.h"
#include "harness/recorder.h"

struct server_options {
  enum actor_kind kind; /* ACTOR_GPU_SERVER or ACTOR_MEMORY_SERVER */
  uint32_t index;
  struct link_config link;
  char *data_address; /* HOST or HOST:PORT where its shelf listens */
  uint32_t first_gpu; /* ordinal of its first GPU on this machine */
  char *record;       /* recordings go to files of this name (recording_create), NULL: nowhere */
};

struct server {
  struct loop *loop;
  struct link *link;
  const struct server_options *options;
  const struct server_kind *kind;
  struct recording *recording; /* NULL: none */
  GError *error;               /* why it ends, NULL: it was asked to */

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
};

/* What differs between the two. */
struct server_kind {
  const char *name;
  uint64_t (*memory_bytes)(const struct config *config, uint32_t index);
  /* Opens what it stands on and makes the actor; on failure close() follows. */
  gboolean (*open)(struct server *server, GError **error);
  void (*actor_free)(void *actor);
  const struct actor_ops *actor;
  void (*usage)(const struct server *server, struct usage *usage);
  char *(*describe)(const struct server *server); /* what it really uses; g_free */
};
extern const struct server_kind server_kind_gpu, server_kind_memory;

/* Until SIGTERM or SIGINT, the controller's BYE, or the link's loss (FALSE + error). */
gboolean server_run(const struct server_options *options, GError **error);

#endif
