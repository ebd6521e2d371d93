/* The few things that the SRD queues ask of a device, so that all else of them runs without one: verbs_srd.c
 * does them with libibverbs on EFA, tests do them on a fake one.
 *
 * Calls on one device are made one at a time, unless said otherwise. */
#ifndef DM_SRD_DEVICE_H
#define DM_SRD_DEVICE_H

#include "backend_real/nic.h"
#include "backend_real/transport.h"

struct srd_device;  /* an open device, with one completion queue */
struct srd_qp;      /* an SRD queue pair of it */
struct srd_address; /* the way to a peer's device */
struct srd_memory;  /* registered */

struct srd_caps {
  gboolean reads;           /* it can read remote memory, and lets others read */
  uint32_t read_max;        /* bytes of one such read */
  uint32_t datagram_max;    /* bytes */
  uint32_t sends_max;       /* work requests of a queue pair's send queue, reads included */
  uint32_t receives_max;    /* of its receive queue */
  uint32_t completions_max; /* in the completion queue */
  uint32_t gbit_s;          /* 0 = unknown */
};

/* A stretch of registered memory. */
struct srd_piece_at {
  uint64_t address;
  uint32_t bytes, key; /* local */
};

struct srd_work {
  uint64_t id;
  struct srd_address *to;
  uint32_t qp, qkey; /* the peer's */
  gboolean read;     /* else a datagram is sent */
  uint64_t address;  /* read: of the peer's memory */
  uint32_t key;      /* read: for that */
  uint32_t pieces;   /* read: 1; datagram: 1 or 2 */
  struct srd_piece_at piece[2];
};

/* What a completion means. EFA's errors concern one work request and leave the queue pair as it is, but for
 * those of the queue pair itself. */
enum srd_status {
  SRD_OK,
  SRD_DENIED, /* the peer's device refused this read: key, address */
  SRD_LOST,   /* the peer: its queue pair is not there, it does not answer, it has no buffer */
  SRD_BROKEN, /* the own queue pair */
};

struct srd_completion {
  uint64_t id;
  enum srd_status status;
  const char *why; /* static; NULL where SRD_OK */
  uint32_t bytes;  /* received */
};

struct srd_device_ops {
  /* completions: wanted. DM_ERROR_FAILED. */
  struct srd_device *(*open)(const struct nic *nic, const struct nic_gid *gid, GError **error);
  void (*close)(struct srd_device *device);
  void (*caps)(const struct srd_device *device, struct srd_caps *caps);
  /* Before any queue pair: how many completions may wait, at most caps.completions_max. */
  gboolean (*size)(struct srd_device *device, uint32_t completions, GError **error);

  /* Memory for reads of one's own to land in, in several registrations if need be. */
  struct srd_memory *(*memory_new)(struct srd_device *device, const struct memory *memory, GError **error);
  void (*memory_free)(struct srd_memory *memory);
  /* Where bytes [at, at + bytes), 1 to READ_BYTES_MAX, lie: the first piece, which may be shorter. */
  void (*memory_piece)(const struct srd_memory *memory, uint64_t at, uint32_t bytes,
                       struct srd_piece_at *piece);
  /* One registration. remote: peers may read it, by *key; else local: own receives may write to it. On any
   * thread. */
  struct srd_memory *(*region_new)(struct srd_device *device, uint8_t *base, uint64_t bytes, gboolean remote,
                                   uint32_t *local_key, uint32_t *key, GError **error);
  /* When it returns, the device touches it no more. On any thread. */
  void (*region_free)(struct srd_memory *region);

  /* context: see events. On any thread, so are the three below. */
  struct srd_qp *(*qp_new)(struct srd_device *device, uint32_t sends, uint32_t receives, uint32_t qkey,
                           void *context, GError **error);
  /* When it returns, nothing of it is under way; completions of it may still come. */
  void (*qp_free)(struct srd_qp *qp);
  uint32_t (*qp_number)(const struct srd_qp *qp);
  struct srd_address *(*address_new)(struct srd_device *device, const uint8_t gid[16], GError **error);
  void (*address_free)(struct srd_address *address);

  /* All or none; FALSE: errno. */
  gboolean (*send)(struct srd_qp *qp, const struct srd_work *work, uint32_t works);
  gboolean (*receive)(struct srd_qp *qp, uint64_t id, const struct srd_piece_at *piece);

  /* Completions, up to room; -1: the queue is broken. */
  int (*poll)(struct srd_device *device, struct srd_completion *completion, uint32_t room);
  /* completion_fd becomes readable at the next completion. FALSE: cannot. */
  gboolean (*arm)(struct srd_device *device);
  int (*completion_fd)(const struct srd_device *device);
  void (*drain)(struct srd_device *device); /* once that is readable */
  int (*event_fd)(const struct srd_device *device);
  /* The next event; FALSE: none. Of a queue pair that broke: its context and why (static), else NULL. */
  gboolean (*event)(struct srd_device *device, void **qp_context, const char **why);
};

#endif
