/* The executor's kernel: reads every byte of a compute's pieces in GPU memory, compares their checksum, and
 * goes on until the compute has lasted long enough. Launched from C. */
#ifndef DM_CUDA_KERNEL_H
#define DM_CUDA_KERNEL_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* device.h speaks C and GLib, the kernel's compiler neither: what both know of has a twin here. */
#define CUDA_PIECES 16

enum cuda_status { CUDA_DONE, CUDA_FAILED, CUDA_WRONG_BYTES, CUDA_STOPPED };

struct cuda_piece {
  uint64_t device, bytes, offset;
};

/* Where a compute reports, in pinned host memory: a cache line of its own. The kernel writes all but stop. */
struct cuda_report {
  uint64_t started; /* number of the compute whose first block runs */
  uint64_t ended;   /* number of the compute that is over: what follows is then its */
  uint64_t duration_ns;
  uint32_t status; /* enum cuda_status */
  uint32_t stop;   /* the host's: not 0 = end early */
  uint64_t unused[4];
};

/* What the blocks of a stream's kernels sum into, in GPU memory; zeroed between computes. */
struct cuda_sum {
  unsigned long long sum, start_ns;
  unsigned int blocks; /* that are through */
};

struct cuda_work {
  const uint8_t *memory; /* of the GPU; the pieces' base; readable up to 8 bytes past any piece */
  uint32_t pieces;
  struct cuda_piece piece[CUDA_PIECES];
  uint64_t checksum;
  int64_t compute_ns;
  uint64_t number; /* of the compute, never 0 */
  uint32_t more, stoppable;
  struct cuda_sum *sum;
  struct cuda_report *report; /* as the GPU sees it */
};

/* Blocks that fill the current device; 0 + *error: the program holds no code for it. */
unsigned cuda_kernel_blocks(cudaError_t *error);
/* As many blocks as the work's bytes are worth, at most blocks_max. */
cudaError_t cuda_kernel_launch(const struct cuda_work *work, uint64_t bytes, unsigned blocks_max,
                               cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
