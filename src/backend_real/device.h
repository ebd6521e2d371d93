/* A device: the GPUs of a server, or the processor standing in for them. One file a kind (cuda, host), one
 * line in the registry of device.c.
 *
 * A device owns one memory a GPU (taken whole at the start) and knows the server's host arena, registered
 * with it once. Work is put on lanes and never waits for the host: copies in their order, computes in their
 * order a stream, a compute after the copy that it names by an event on the device. Calls are made on the
 * loop's thread; ends come on foreign threads, each once. */
#ifndef DM_DEVICE_H
#define DM_DEVICE_H

#include <glib.h>
#include "core/arena.h"

struct device;
struct memory; /* transport.h */

/* Places are cut into at most so many pieces by what calls; a device takes any number up to it in one call.
 */
#define DEVICE_PIECES 16

/* Compute streams of a GPU: 0 .. DEVICE_STREAMS - 1. */
#define DEVICE_STREAMS 8

/* Copies a direction, and computes a stream, that a GPU can have under way; one more ends as failed. */
#define DEVICE_UNDER_WAY 4096

enum device_status { DEVICE_DONE, DEVICE_FAILED, DEVICE_WRONG_BYTES, DEVICE_STOPPED };

struct device_config {
  uint32_t gpus;      /* GPUs 0.. of this machine, or of CUDA_VISIBLE_DEVICES */
  uint32_t first_gpu; /* several servers on one machine share its GPUs: the first ordinal of ours, modulo what
                         there is; never two servers on one GPU unless share is set */
  gboolean share;
  uint64_t gpu_bytes; /* memory of each */
  gboolean pageable;  /* the arena is not pinned: stop-and-go systems move out of it as frameworks do */
  uint8_t *host;      /* the server's arena, page aligned; pinned here */
  uint64_t host_bytes;
  /* On any thread but the caller's, never from inside a call; not for tag 0. start, end: CLOCK_MONOTONIC ns
   * as well as they are known. */
  void (*ended)(void *context, uint64_t tag, enum device_status status, int64_t start_ns, int64_t end_ns);
  void *context;
};

/* Between host places and device places, both byte for byte. More pieces than DEVICE_PIECES: several copies,
 * of which only the last has the tag of the end, the others 0 (nobody is told). */
struct device_copy {
  uint32_t gpu;
  gboolean to_host;
  uint32_t pieces;
  struct device_piece {
    uint64_t host, device, bytes; /* offsets */
  } piece[DEVICE_PIECES];
  uint64_t after; /* token of an earlier copy of this GPU; 0 = none */
  uint64_t tag;
};

/* Reads every byte of the pieces and compares their checksum (checksum.h) with what it should be; and lasts
 * for compute_ns from where the first byte is read. Without pieces it just lasts. More pieces than
 * DEVICE_PIECES: several computes, all but the last with `more` (their checksum, time, tag and stop are not
 * looked at). */
struct device_compute {
  uint32_t gpu, stream;
  uint32_t pieces;
  struct device_range {
    uint64_t device, bytes; /* where */
    uint64_t offset;        /* of the image */
  } piece[DEVICE_PIECES];
  uint64_t checksum;
  int64_t compute_ns;
  uint64_t after; /* token of a copy; 0 = none */
  uint64_t tag;
  /* NULL, or: ends early (DEVICE_STOPPED, within about 100 us) once set, atomically: training. Lives until
   * the end is told. */
  const volatile gboolean *stop;
  gboolean more;   /* the next compute of this stream goes on with it */
  gboolean landed; /* the bytes may have come from the network, by gpu_memory */
};

struct device_ops {
  const char *name; /* "cuda", "host" */
  /* NULL = can be used here, else why not: "built without nvcc", "no CUDA driver", … */
  const char *(*missing)(void);
  struct device *(*open)(const struct device_config *config, GError **error);
  void (*close)(struct device *device); /* waits for all work */
  /* "NVIDIA H200", "host: 2 processors": for the output of a run. */
  const char *(*describe)(const struct device *device, uint32_t gpu);
  uint64_t (*memory)(const struct device *device, uint32_t gpu); /* bytes there are */
  /* Where it is, "0000:17:00.0", as long as the device lives; NULL: not on PCI, or not known. */
  const char *(*pci)(const struct device *device, uint32_t gpu);
  /* The memory of a GPU for transports to write into: host: where it is; cuda: a dma-buf. What it names lives
   * as long as the device; whoever writes into it ends before. FALSE + DM_ERROR_FAILED: why it cannot be. */
  gboolean (*gpu_memory)(struct device *device, uint32_t gpu, struct memory *memory, GError **error);
  /* Blocking; at the start only. From any memory. */
  gboolean (*fill)(struct device *device, uint32_t gpu, uint64_t device_offset, const void *from,
                   uint64_t bytes, GError **error);
  /* Blocking, never on the loop's thread, one call a GPU at a time: bytes between pageable memory and the
   * GPU, as a framework moves one tensor. FALSE: the GPU is broken. */
  gboolean (*move)(struct device *device, uint32_t gpu, gboolean to_host, void *host, uint64_t on_gpu,
                   uint64_t bytes);
  /* Tokens are never used twice, and are constraints only while the copy runs. */
  uint64_t (*copy)(struct device *device, const struct device_copy *copy);
  void (*compute)(struct device *device, const struct device_compute *compute);
};

const struct device_ops *const *devices(void);
/* Whether it is one of their names or "auto"; it may be that it cannot be used here. DM_ERROR_INPUT. */
gboolean device_name_check(const char *name, GError **error);
/* "auto" takes the first that can be used. NULL + DM_ERROR_INPUT: unknown, or why it cannot be used here. */
const struct device_ops *device_by_name(const char *name, GError **error);

#endif
