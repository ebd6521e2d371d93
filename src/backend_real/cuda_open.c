/* Opening and closing a GPU; see cuda_gpu.h. */
#include <string.h>
#include <unistd.h>

#include "backend_real/cuda_dmabuf.h"
#include "backend_real/cuda_gpu.h"
#include "core/error.h"

/* The kernel may read the aligned word after a piece's last byte. */
#define SLACK_BYTES 256

static gboolean failed(const struct cuda_gpu *gpu, cudaError_t status, const char *what, GError **error)
{
  if (status == cudaSuccess)
    return FALSE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "GPU %d: cannot %s: %s", gpu->ordinal, what,
              cudaGetErrorString(status));
  return TRUE;
}

static gboolean take_memory(struct cuda_gpu *gpu, uint64_t bytes, GError **error)
{
  size_t left, total;
  if (failed(gpu, cudaMemGetInfo(&left, &total), "ask for its memory", error))
    return FALSE;
  gpu->total = total;
  gpu->taken = (bytes / CUDA_DMABUF_ALIGN + 1) * CUDA_DMABUF_ALIGN;
  if (gpu->taken - bytes < SLACK_BYTES)
    gpu->taken += CUDA_DMABUF_ALIGN;
  if (bytes >= left || gpu->taken > left)
    return input_error(error, NULL, 0, "GPU %d (%s): %.2f GB are wanted, of %.2f GB %.2f GB are free",
                       gpu->ordinal, gpu->name, (double)bytes / 1e9, (double)total / 1e9, (double)left / 1e9);
  return !failed(gpu, cudaMalloc((void **)&gpu->memory, gpu->taken), "take its memory", error);
}

gboolean cuda_gpu_export(struct cuda_gpu *gpu, GError **error)
{
  if (gpu->dmabuf >= 0)
    return TRUE;
  if (failed(gpu, cudaSetDevice(gpu->ordinal), "use it", error) ||
      !cuda_dmabuf_order(gpu->ordinal, &gpu->must_flush, error))
    return FALSE;
  gpu->dmabuf = cuda_dmabuf_export(gpu->ordinal, gpu->memory, gpu->taken, error);
  return gpu->dmabuf >= 0;
}

static gboolean open_copies(struct cuda_gpu *gpu, struct cuda_lane *lane, GError **error)
{
  lane->event = g_new0(cudaEvent_t, DEVICE_UNDER_WAY);
  for (uint32_t i = 0; i < DEVICE_UNDER_WAY; i++)
    if (failed(gpu, cudaEventCreateWithFlags(&lane->event[i], cudaEventDisableTiming), "make an event",
               error))
      return FALSE;
  return TRUE;
}

static gboolean open_computes(struct cuda_gpu *gpu, struct cuda_lane *lane, GError **error)
{
  const size_t bytes = DEVICE_UNDER_WAY * sizeof *lane->report;
  const unsigned flags = cudaHostAllocMapped | cudaHostAllocPortable;
  if (failed(gpu, cudaHostAlloc((void **)&lane->report, bytes, flags), "pin memory for reports", error) ||
      failed(gpu, cudaHostGetDevicePointer((void **)&lane->report_gpu, lane->report, 0), "map reports",
             error) ||
      failed(gpu, cudaMalloc((void **)&lane->sum, sizeof *lane->sum), "take memory for sums", error) ||
      failed(gpu, cudaMemset(lane->sum, 0, sizeof *lane->sum), "clear memory for sums", error))
    return FALSE;
  memset(lane->report, 0, bytes);
  return TRUE;
}

static gboolean open_lane(struct cuda_gpu *gpu, unsigned index, GError **error)
{
  struct cuda_lane *lane = &gpu->lane[index];
  lane->operation = g_new0(struct cuda_operation, DEVICE_UNDER_WAY);
  if (failed(gpu, cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking), "make a stream", error))
    return FALSE;
  return index < CUDA_COMPUTE ? open_copies(gpu, lane, error) : open_computes(gpu, lane, error);
}

/* CUDA loads code and sets streams up when they are first used: that is now. Report 0 is left as if unused.
 */
static gboolean warm_up(struct cuda_gpu *gpu, GError **error)
{
  for (unsigned i = CUDA_COMPUTE; i < CUDA_LANES; i++) {
    struct cuda_lane *lane = &gpu->lane[i];
    struct cuda_work work = {
        .memory = gpu->memory, .number = UINT64_MAX, .sum = lane->sum, .report = lane->report_gpu};
    if (failed(gpu, cuda_kernel_launch(&work, 0, 1, lane->stream), "start a kernel", error))
      return FALSE;
  }
  if (failed(gpu, cudaDeviceSynchronize(), "run a kernel", error))
    return FALSE;
  for (unsigned i = CUDA_COMPUTE; i < CUDA_LANES; i++) {
    if (gpu->lane[i].report->ended != UINT64_MAX) {
      g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "GPU %d: a kernel ran, but its report did not arrive",
                  gpu->ordinal);
      return FALSE;
    }
    memset(gpu->lane[i].report, 0, sizeof *gpu->lane[i].report);
  }
  return TRUE;
}

void cuda_pci_address(int ordinal, char pci[CUDA_PCI_BYTES])
{
  char text[32] = "";
  if (cudaDeviceGetPCIBusId(text, sizeof text, ordinal) != cudaSuccess)
    text[0] = 0;
  g_autofree char *lower = g_ascii_strdown(text, -1);
  g_strlcpy(pci, strlen(lower) < CUDA_PCI_BYTES ? lower : "", CUDA_PCI_BYTES);
}

gboolean cuda_gpu_open(struct cuda_gpu *gpu, int ordinal, uint64_t gpu_bytes, GError **error)
{
  struct cudaDeviceProp properties;
  gpu->ordinal = ordinal;
  gpu->dmabuf = -1;
  if (failed(gpu, cudaSetDevice(ordinal), "use it", error) ||
      failed(gpu, cudaGetDeviceProperties(&properties, ordinal), "ask what it is", error))
    return FALSE;
  gpu->name = g_strdup(properties.name);
  cuda_pci_address(ordinal, gpu->pci);
  cudaError_t status;
  gpu->blocks = cuda_kernel_blocks(&status);
  if (failed(gpu, status, "use the program's kernels (built for other GPUs?)", error) ||
      !take_memory(gpu, gpu_bytes, error))
    return FALSE;
  for (unsigned i = 0; i < CUDA_LANES; i++)
    if (!open_lane(gpu, i, error))
      return FALSE;
  return !failed(gpu, cudaStreamCreateWithFlags(&gpu->mover, cudaStreamNonBlocking), "make a stream",
                 error) &&
         warm_up(gpu, error);
}

static void close_lane(struct cuda_lane *lane)
{
  for (uint32_t i = 0; lane->event && i < DEVICE_UNDER_WAY; i++)
    if (lane->event[i])
      cudaEventDestroy(lane->event[i]);
  if (lane->stream)
    cudaStreamDestroy(lane->stream);
  cudaFree(lane->sum);
  if (lane->report)
    cudaFreeHost(lane->report);
  g_free(lane->event);
  g_free(lane->operation);
}

/* Errors of the calls below say nothing new: a broken GPU's memory goes with the process. */
void cuda_gpu_close(struct cuda_gpu *gpu)
{
  cudaSetDevice(gpu->ordinal);
  for (unsigned i = 0; i < CUDA_LANES; i++)
    close_lane(&gpu->lane[i]);
  if (gpu->mover)
    cudaStreamDestroy(gpu->mover);
  if (gpu->dmabuf > 0) /* 0: never opened so far */
    close(gpu->dmabuf);
  cudaFree(gpu->memory);
  g_free(gpu->name);
}
