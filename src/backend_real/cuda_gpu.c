/* Issuing work to a GPU; see cuda_gpu.h. */
#include "backend_real/cuda_gpu.h"

#include <string.h>

#include "backend_real/cuda_dmabuf.h"
#include "backend_real/device_kinds.h"

_Static_assert(CUDA_PIECES == DEVICE_PIECES && sizeof(struct cuda_piece) == sizeof(struct device_range) &&
                   (int)CUDA_DONE == (int)DEVICE_DONE && (int)CUDA_FAILED == (int)DEVICE_FAILED &&
                   (int)CUDA_WRONG_BYTES == (int)DEVICE_WRONG_BYTES &&
                   (int)CUDA_STOPPED == (int)DEVICE_STOPPED,
               "twins in cuda_kernel.h");

gboolean cuda_gpu_check(struct cuda_gpu *gpu, cudaError_t status, const char *call)
{
  if (status == cudaSuccess)
    return TRUE;
  if (!atomic_exchange(&gpu->broken, TRUE))
    g_warning("GPU %d (%s) is given up: %s: %s", gpu->ordinal, gpu->name, call, cudaGetErrorString(status));
  return FALSE;
}

/* A place for the lane's next operation; NULL: as many as may be are under way. */
static struct cuda_operation *next_operation(struct cuda_lane *lane)
{
  uint64_t next = atomic_load_explicit(&lane->issued, memory_order_relaxed);
  if (next - atomic_load(&lane->ended) >= DEVICE_UNDER_WAY)
    return NULL;
  return &lane->operation[cuda_place(next)];
}

/* A token is the number of a copy and its lane; 0 names none. */
static uint64_t token_of(unsigned lane, uint64_t number)
{
  return (number + 1) << 1 | lane;
}

/* Makes the lane wait for a copy, unless that is over or comes before anyway. FALSE: there is no such copy.
 */
static gboolean wait_for(struct cuda_gpu *gpu, struct cuda_lane *lane, uint64_t token)
{
  if (token == 0)
    return TRUE;
  struct cuda_lane *copies = &gpu->lane[token & 1];
  uint64_t number = (token >> 1) - 1;
  if (number >= atomic_load_explicit(&copies->issued, memory_order_relaxed))
    return FALSE;
  /* An event is recorded anew only once `ended` has passed its former copy, by this thread. */
  if (lane == copies || number < atomic_load(&copies->ended))
    return TRUE;
  return cuda_gpu_check(gpu, cudaStreamWaitEvent(lane->stream, copies->event[cuda_place(number)], 0),
                        "cudaStreamWaitEvent");
}

static gboolean put_copies(struct cuda_gpu *gpu, struct cuda_lane *lane, uint8_t *host,
                           const struct device_copy *copy)
{
  for (uint32_t i = 0; i < copy->pieces; i++) {
    const struct device_piece *piece = &copy->piece[i];
    uint8_t *at_host = host + piece->host, *at_gpu = gpu->memory + piece->device;
    if (piece->bytes == 0)
      continue;
    cudaError_t status =
        cudaMemcpyAsync(copy->to_host ? at_host : at_gpu, copy->to_host ? at_gpu : at_host, piece->bytes,
                        copy->to_host ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice, lane->stream);
    if (!cuda_gpu_check(gpu, status, "cudaMemcpyAsync"))
      return FALSE;
  }
  return TRUE;
}

/* From here on it is the watcher's: what a broken GPU did not take as well, for part of it may be under way.
 */
static void issue(struct cuda_lane *lane)
{
  atomic_fetch_add(&lane->issued, 1);
}

gboolean cuda_gpu_copy(struct cuda_gpu *gpu, uint8_t *host, const struct device_copy *copy, uint64_t *token)
{
  unsigned index = copy->to_host ? CUDA_TO_HOST : CUDA_TO_GPU;
  struct cuda_lane *lane = &gpu->lane[index];
  struct cuda_operation *operation = next_operation(lane);
  *token = 0;
  if (!operation || atomic_load(&gpu->broken) ||
      !cuda_gpu_check(gpu, cudaSetDevice(gpu->ordinal), "cudaSetDevice") || !wait_for(gpu, lane, copy->after))
    return FALSE;
  *operation = (struct cuda_operation){.tag = copy->tag, .issued_ns = device_now()};
  uint64_t number = atomic_load_explicit(&lane->issued, memory_order_relaxed);
  if (put_copies(gpu, lane, host, copy))
    cuda_gpu_check(gpu, cudaEventRecord(lane->event[cuda_place(number)], lane->stream), "cudaEventRecord");
  *token = token_of(index, number);
  issue(lane);
  return TRUE;
}

gboolean cuda_gpu_compute(struct cuda_gpu *gpu, const struct device_compute *compute)
{
  struct cuda_lane *lane = &gpu->lane[CUDA_COMPUTE + compute->stream];
  struct cuda_operation *operation = next_operation(lane);
  if (!operation || atomic_load(&gpu->broken) ||
      !cuda_gpu_check(gpu, cudaSetDevice(gpu->ordinal), "cudaSetDevice") ||
      !wait_for(gpu, lane, compute->after) ||
      (compute->landed && gpu->must_flush &&
       !cuda_gpu_check(gpu, (cudaError_t)cuda_dmabuf_flush(), "cudaDeviceFlushGPUDirectRDMAWrites")))
    return FALSE;
  uint64_t number = atomic_load_explicit(&lane->issued, memory_order_relaxed);
  struct cuda_work work = {
      .memory = gpu->memory,
      .pieces = compute->pieces,
      .checksum = compute->checksum,
      .compute_ns = compute->compute_ns,
      .number = number + 1,
      .more = (uint32_t)compute->more,
      .stoppable = compute->stop != NULL,
      .sum = lane->sum,
      .report = &lane->report_gpu[cuda_place(number)],
  };
  memcpy(work.piece, compute->piece, compute->pieces * sizeof compute->piece[0]);
  *(volatile uint32_t *)&lane->report[cuda_place(number)].stop = 0;
  *operation = (struct cuda_operation){
      .tag = compute->tag,
      .issued_ns = device_now(),
      .compute_ns = MAX(compute->compute_ns, 0),
      .stop = compute->stop,
  };
  cuda_gpu_check(gpu, cuda_kernel_launch(&work, device_compute_bytes(compute), gpu->blocks, lane->stream),
                 "kernel launch");
  if (!compute->more)
    issue(lane);
  return TRUE;
}
