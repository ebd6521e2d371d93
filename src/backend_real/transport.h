/* A transport: one-sided reads of memory servers' shards straight into this process's host arena. One file a
 * kind (tcp, verbs), one line in the registry of transport.c.
 *
 * Two ends. A shelf stands in a memory server: what may be read, and by whom. A reader stands in whoever
 * reads (GPU servers, and memory servers that take over shards). Reads are short pieces, asked in order; the
 * transport keeps enough of them under way on each peer to fill its link, and may end them out of order. Ends
 * of reads come on foreign threads.
 *
 * A transport that sets up its connections over the control plane (verbs: queue pairs, keys of memory) writes
 * letters: short, opaque to everybody else, between a reader and a shelf that the controller has granted to
 * it, in order, from an authenticated sender. Letters are written and read on the loop's thread.
 *
 * Right to read: the controller's process gives each pair (reader, shelf) a secret over the control plane
 * (ticket.h); every data connection opens with a one-time ticket made of it, bound to reader and model. Data
 * is not encrypted. */
#ifndef DM_TRANSPORT_H
#define DM_TRANSPORT_H

#include "backend_real/ticket.h"
#include "core/arena.h"
#include "core/world.h"

struct transport;
struct shelf;
struct reader;

/* Memory that bytes come from or land in. Registered once, at the start. */
struct memory {
  uint8_t *base; /* NULL: GPU memory that the processor does not see, known by its dma-buf alone */
  uint64_t bytes;
  int dmabuf; /* where base is NULL */
  uint64_t dmabuf_offset;
  const char *pci; /* "0000:17:00.0" of the GPU that it belongs to or will be copied to; NULL: of none */
};

/* A letter's bytes, at most. */
#define LETTER_BYTES_MAX 32768

struct transport_options {
  uint32_t connections;    /* to a peer; 0 = the transport's own choice */
  uint32_t threads;        /* 0 = own choice */
  double pace_bytes_s;     /* limit of all traffic of this end, each way; 0 = none. A transport that cannot
                              refuses. */
  const char *rdma_device; /* names, comma-separated; NULL: by the route to the peer and memory's `pci` */
  gboolean gid_given;      /* else gid_index is chosen */
  uint32_t gid_index;
};

/* What an onlooker may see of either end. */
struct transport_state {
  uint32_t connections; /* open, of peers that showed a good ticket; of a reader: open or being opened */
  uint64_t refused;     /* connections closed for want of a good ticket */
};

struct shelf_config {
  struct memory memory;
  const char *address; /* to listen on, "HOST:PORT", port 0 = any */
  uint32_t index;      /* of this memory server */
  struct transport_options options;
  /* Sends a letter to the reader; NULL: there is no control plane (a transport that needs one refuses). */
  void (*post)(void *context, actor_id reader, const void *letter, size_t size);
  void *context;
};

struct reader_config {
  struct memory memory;            /* the host arena */
  const struct memory *gpu_memory; /* [gpus] that reads may land in, too; may be NULL */
  uint32_t gpus;
  actor_id self;
  struct transport_options options;
  /* On any thread: a read has ended; failed: the peer is lost, refused it, or was dropped. */
  void (*ended)(void *context, uint64_t tag, gboolean good);
  /* Sends a letter to a shelf; NULL as above. */
  void (*post)(void *context, uint32_t server, const void *letter, size_t size);
  void *context;
};

/* Bytes at `offset` of a model's image on a memory server, to place `to` of the memory of gpu, or of the host
 * arena (NO_INDEX). */
struct transport_read {
  uint32_t server, model;
  uint64_t offset;
  uint32_t gpu;
  uint64_t to;
  uint32_t bytes; /* at most READ_BYTES_MAX */
  uint32_t party; /* any number: what several ask for is served in turn, what one does in order (verbs: all in
                     order) */
  uint64_t tag;
};

struct transport_ops {
  const char *name;
  gboolean paces; /* can hold its traffic to a rate */
  /* NULL = can be used on this machine, else why not. */
  const char *(*missing)(void);

  struct shelf *(*shelf_new)(const struct shelf_config *config, GError **error);
  void (*shelf_free)(struct shelf *shelf);
  const char *(*shelf_address)(const struct shelf *shelf);
  /* The image's bytes [offset, offset + bytes) of model are at `place` in memory; NULL: no longer, and when
   * it returns nobody reads them any more. */
  void (*shelf_serve)(struct shelf *shelf, uint32_t model, uint64_t offset, uint64_t bytes,
                      const struct ranges *place);
  /* The first thing that could not be served (the NIC or the kernel takes no more memory), or NULL. The
   * pointer may be NULL: there is nothing of the kind. */
  const char *(*shelf_failure)(struct shelf *shelf);
  void (*shelf_admit)(struct shelf *shelf, actor_id reader, const struct ticket_secret *secret);
  /* Its connections are closed, its tickets good no longer, until it is admitted again. */
  void (*shelf_expel)(struct shelf *shelf, actor_id reader);
  /* A letter has come from a reader (admitted or not). NULL: has no use for letters. */
  void (*shelf_letter)(struct shelf *shelf, actor_id reader, const uint8_t *letter, size_t size);
  /* Sent so far; of RDMA, which no processor of the shelf's sees, what readers have told: once a second while
   * they read, and when they go. */
  uint64_t (*shelf_bytes)(const struct shelf *shelf);
  /* NULL: there is nothing of the kind to count. */
  void (*shelf_state)(struct shelf *shelf, struct transport_state *state);

  struct reader *(*reader_new)(const struct reader_config *config, GError **error);
  void (*reader_free)(struct reader *reader); /* ends all reads first */
  /* A memory server can be read (again). */
  void (*reader_peer)(struct reader *reader, uint32_t server, const char *address,
                      const struct ticket_secret *secret);
  /* Gives it up: its reads fail, once no byte of theirs can land any more. */
  void (*reader_drop)(struct reader *reader, uint32_t server);
  void (*reader_letter)(struct reader *reader, uint32_t server, const uint8_t *letter, size_t size);
  /* Never ends from inside the call. */
  void (*reader_read)(struct reader *reader, const struct transport_read *read);
  uint64_t (*reader_bytes)(const struct reader *reader);                      /* received so far */
  void (*reader_state)(struct reader *reader, struct transport_state *state); /* NULL as above */
};

#define READ_BYTES_MAX (1U << 20)

/* What `length` bytes in a row, at least 1, are best read in: reads of so many bytes, and a last one of what
 * is left. As many for each of a peer's connections, so that the last ones come at about the same time and
 * not behind reads of what comes next; 64 KiB to READ_BYTES_MAX. */
uint32_t transport_read_bytes(uint64_t length);

/* NULL-terminated, best first. */
const struct transport_ops *const *transports(void);
/* Names of those that can be used here, best first, comma-separated; g_free. */
char *transports_usable(void);
/* Whether it is one of their names or "auto"; it may be that it cannot be used here. DM_ERROR_INPUT. */
gboolean transport_name_check(const char *name, GError **error);
/* "auto" takes the first that can be used. NULL + DM_ERROR_INPUT: unknown, or why it cannot be used here. */
const struct transport_ops *transport_by_name(const char *name, GError **error);

#endif
