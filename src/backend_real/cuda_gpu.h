/* One GPU of a CUDA device: its memory, its lanes (a copy stream each way, compute streams) and what is under
 * way on each.
 *
 * A lane is a CUDA stream and a ring of operations. The caller's thread issues: it fills in the next place of
 * the ring and then moves `issued`. The watcher's thread (cuda_watch.h) sees them end, in order, and moves
 * `ended`, which frees the place. So a lane needs no lock, and neither a copy nor a compute allocates. */
#ifndef DM_CUDA_GPU_H
#define DM_CUDA_GPU_H

#include <stdatomic.h>

#include "backend_real/cuda_kernel.h"
#include "backend_real/device.h"

#define CUDA_PCI_BYTES 16

enum { CUDA_TO_GPU, CUDA_TO_HOST, CUDA_COMPUTE, CUDA_LANES = CUDA_COMPUTE + DEVICE_STREAMS };

struct cuda_operation {
  uint64_t tag;
  int64_t issued_ns, compute_ns;
  const volatile gboolean *stop;
};

struct cuda_lane {
  cudaStream_t stream;
  cudaEvent_t *event;             /* [DEVICE_UNDER_WAY] after each copy; NULL: a lane of computes */
  struct cuda_report *report;     /* [DEVICE_UNDER_WAY] of each compute, pinned */
  struct cuda_report *report_gpu; /* the same, as the GPU addresses it */
  struct cuda_sum *sum;           /* in GPU memory; computes of a stream follow one another, so one will do */
  struct cuda_operation *operation; /* [DEVICE_UNDER_WAY]; operation n lies in place n % DEVICE_UNDER_WAY */
  _Atomic uint64_t issued, ended;

  /* The watcher's own. */
  int64_t last_end_ns, started_ns; /* when the previous one ended; when the first was seen to run, 0 = not */
};

struct cuda_gpu {
  int ordinal;
  char *name;
  uint64_t total; /* bytes of memory there are */
  uint8_t *memory;
  uint64_t taken;           /* bytes of it, whole CUDA_DMABUF_ALIGN */
  int dmabuf;               /* of it; -1: none */
  char pci[CUDA_PCI_BYTES]; /* "0000:17:00.0"; "" unknown */
  gboolean must_flush;      /* else kernels see at once what NICs wrote */
  cudaStream_t mover;       /* of pageable copies */
  unsigned blocks;          /* that fill it */
  struct cuda_lane lane[CUDA_LANES];
  _Atomic gboolean
      broken; /* a CUDA call failed: nothing new is issued, what is under way is not awaited long */
};

/* Of CUDA's GPU `ordinal`, as /sys writes it; "" unknown. */
void cuda_pci_address(int ordinal, char pci[CUDA_PCI_BYTES]);
/* Opens the GPU of that ordinal, gpu_bytes taken and every kernel loaded. DM_ERROR_INPUT: not that much is
 * free; DM_ERROR_FAILED: CUDA's reason. On failure cuda_gpu_close is still to be called. */
gboolean cuda_gpu_open(struct cuda_gpu *gpu, int ordinal, uint64_t gpu_bytes, GError **error);
/* Makes the dma-buf of its memory, if there is none yet. FALSE + DM_ERROR_FAILED: why it cannot be. */
gboolean cuda_gpu_export(struct cuda_gpu *gpu, GError **error);
/* Frees what was opened; nothing is under way. */
void cuda_gpu_close(struct cuda_gpu *gpu);

/* TRUE if the call was good. Else the GPU is broken; said once. */
gboolean cuda_gpu_check(struct cuda_gpu *gpu, cudaError_t status, const char *call);

/* Issues; FALSE: it is not under way, and ends as failed. Copy: *token names it. Nothing waits. */
gboolean cuda_gpu_copy(struct cuda_gpu *gpu, uint8_t *host, const struct device_copy *copy, uint64_t *token);
gboolean cuda_gpu_compute(struct cuda_gpu *gpu, const struct device_compute *compute);

static inline uint32_t cuda_place(uint64_t operation)
{
  return (uint32_t)(operation % DEVICE_UNDER_WAY);
}

#endif
