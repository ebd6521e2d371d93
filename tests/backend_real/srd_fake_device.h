/* Inside the fake EFA: what its two files share. srd_fake.c: the fabric, and what a test sets;
 * srd_fake_device.c: the calls of a device. */
#ifndef DM_TEST_SRD_FAKE_DEVICE_H
#define DM_TEST_SRD_FAKE_DEVICE_H

#include "srd_fake.h"

#define CHUNK 50000 /* bytes of one registration of memory to land in: small, so that reads cross them */

struct srd_device {
  uint8_t gid[16];
  struct srd_caps caps;
  uint32_t completions_max;
  GArray *completions; /* struct srd_completion */
  GPtrArray *qps;
  int completion_fd, event_fd;
  gboolean armed, mute, dead;
  struct srd_qp *event_qp;
};

struct srd_qp {
  struct srd_device *device;
  uint32_t number, qkey, sends_max, receives_max, sends;
  void *context;
  GArray *receives; /* struct posted */
  gboolean broken;
};

struct posted {
  uint64_t id;
  struct srd_piece_at piece;
};

struct srd_address {
  uint8_t gid[16];
};

struct srd_memory {
  struct srd_device *device;
  uint8_t *base;
  uint64_t bytes;
  uint32_t key; /* of the first chunk; those that follow count up */
  gboolean chunked, remote;
};

struct flight {
  struct srd_qp *from;
  struct srd_work work;
  uint8_t gid[16]; /* of the peer: the address may be freed */
  gboolean overran;
};

struct srd_fabric {
  GMutex lock;
  GCond changed;
  GThread *thread;
  GRand *random;
  gboolean stop, held, rush;
  GPtrArray *devices, *memories;
  GArray *flights;
  uint32_t next_qp, next_key, fail;
  struct srd_caps depths;
  struct srd_fake_counts counts;
};

extern struct srd_fabric srd_net;

/* Ends the process if not: an assertion would end its thread alone. */
void srd_fake_check(gboolean good, const char *what);
/* If a rush is due. Under the lock. */
void srd_fake_rush_now(void);
/* Where a piece is; it must be registered. Under the lock. */
uint8_t *srd_fake_local(const struct srd_device *device, const struct srd_piece_at *piece);

#endif
