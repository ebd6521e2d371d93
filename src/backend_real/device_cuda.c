/* GPUs through CUDA: the device's table, and opening. What a GPU does is cuda_gpu.c, how ends are seen
 * cuda_watch.c, the kernel cuda_kernel.cu. */
#include "backend_real/cuda_watch.h"
#include "backend_real/device_kinds.h"
#include "backend_real/transport.h"
#include "core/error.h"

struct device {
  struct device_config config;
  gboolean pinned;
  struct cuda_gpu *gpu; /* [opened] */
  uint32_t opened;
  struct cuda_watch *watch;
};

static const char *cuda_missing(void)
{
  int version = 0, count = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0)
    return "no CUDA driver";
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver)
    return "the CUDA driver is older than the toolkit that this was built with";
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0))
    return "no GPU";
  return status == cudaSuccess ? NULL : cudaGetErrorString(status);
}

/* The arena, registered with every GPU at once: bytes from the network land where the copy engines read. */
static gboolean pin(struct device *device, GError **error)
{
  const struct device_config *config = &device->config;
  if (config->host_bytes == 0 || config->pageable)
    return TRUE;
  cudaError_t status = cudaHostRegister(config->host, config->host_bytes, cudaHostRegisterPortable);
  device->pinned = status == cudaSuccess;
  if (!device->pinned)
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED,
                "cannot pin the host arena (%.2f GB) for CUDA: %s; is that much memory free?",
                (double)config->host_bytes / 1e9, cudaGetErrorString(status));
  return device->pinned;
}

static void cuda_close(struct device *device)
{
  if (device->watch)
    cuda_watch_free(device->watch);
  if (device->pinned)
    cudaHostUnregister(device->config.host);
  for (uint32_t i = 0; i < device->opened; i++)
    cuda_gpu_close(&device->gpu[i]);
  g_free(device->gpu);
  g_free(device);
}

static gboolean check_config(const struct device_config *config, int count, GError **error)
{
  if (config->gpus == 0 || config->gpu_bytes == 0)
    return input_error(error, NULL, 0, "cuda device: expected at least one GPU with memory");
  if (!config->share && (uint64_t)config->first_gpu + config->gpus > (uint64_t)count)
    return input_error(
        error, NULL, 0,
        "cuda device: GPUs %u to %u are wanted, this machine has %d (servers may share one, if "
        "told so)",
        config->first_gpu, config->first_gpu + config->gpus - 1, count);
  return TRUE;
}

static gboolean open_gpus(struct device *device, int count, GError **error)
{
  const struct device_config *config = &device->config;
  device->gpu = g_new0(struct cuda_gpu, config->gpus);
  while (device->opened < config->gpus) {
    uint32_t i = device->opened++;
    if (!cuda_gpu_open(&device->gpu[i], (int)((config->first_gpu + i) % (uint32_t)count), config->gpu_bytes,
                       error))
      return FALSE;
  }
  return TRUE;
}

static struct device *cuda_open(const struct device_config *config, GError **error)
{
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count < 1) {
    input_error(error, NULL, 0, "cuda device: %s",
                status == cudaSuccess ? "no GPU" : cudaGetErrorString(status));
    return NULL;
  }
  if (!check_config(config, count, error))
    return NULL;
  struct device *device = g_new0(struct device, 1);
  device->config = *config;
  if (!open_gpus(device, count, error) || !pin(device, error)) {
    cuda_close(device);
    return NULL;
  }
  device->watch = cuda_watch_new(device->gpu, config);
  return device;
}

static const char *cuda_pci(const struct device *device, uint32_t gpu)
{
  return *device->gpu[gpu].pci ? device->gpu[gpu].pci : NULL;
}

/* The dma-buf is made when it is asked for first. */
static gboolean cuda_gpu_memory(struct device *device, uint32_t gpu, struct memory *memory, GError **error)
{
  struct cuda_gpu *of = &device->gpu[gpu];
  if (!cuda_gpu_export(of, error))
    return FALSE;
  *memory =
      (struct memory){.bytes = device->config.gpu_bytes, .dmabuf = of->dmabuf, .pci = cuda_pci(device, gpu)};
  return TRUE;
}

static const char *cuda_describe(const struct device *device, uint32_t gpu)
{
  return device->gpu[gpu].name;
}

static uint64_t cuda_memory(const struct device *device, uint32_t gpu)
{
  return device->gpu[gpu].total;
}

static gboolean cuda_fill(struct device *device, uint32_t gpu, uint64_t offset, const void *from,
                          uint64_t bytes, GError **error)
{
  if (!device_fill_fits(&device->config, gpu, offset, bytes, error))
    return FALSE;
  struct cuda_gpu *to = &device->gpu[gpu];
  cudaStream_t stream = to->lane[CUDA_TO_GPU].stream;
  if (atomic_load(&to->broken) || !cuda_gpu_check(to, cudaSetDevice(to->ordinal), "cudaSetDevice") ||
      !cuda_gpu_check(to, cudaMemcpyAsync(to->memory + offset, from, bytes, cudaMemcpyHostToDevice, stream),
                      "cudaMemcpyAsync") ||
      !cuda_gpu_check(to, cudaStreamSynchronize(stream), "cudaStreamSynchronize")) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "GPU %u (%s) cannot be filled: it is given up", gpu,
                to->name);
    return FALSE;
  }
  return TRUE;
}

static gboolean cuda_move(struct device *device, uint32_t index, gboolean to_host, void *host,
                          uint64_t on_gpu, uint64_t bytes)
{
  struct cuda_gpu *gpu = &device->gpu[index];
  uint8_t *at_gpu = gpu->memory + on_gpu;
  cudaError_t status = atomic_load(&gpu->broken) ? cudaErrorUnknown : cudaSetDevice(gpu->ordinal);
  if (status == cudaSuccess && to_host)
    status = cudaMemcpyAsync(host, at_gpu, bytes, cudaMemcpyDeviceToHost, gpu->mover);
  else if (status == cudaSuccess)
    status = cudaMemcpyAsync(at_gpu, host, bytes, cudaMemcpyHostToDevice, gpu->mover);
  if (status == cudaSuccess)
    status = cudaStreamSynchronize(gpu->mover);
  return cuda_gpu_check(gpu, status, "a pageable copy");
}

static uint64_t cuda_copy(struct device *device, const struct device_copy *copy)
{
  uint64_t token = 0;
  if (device_copy_fits(&device->config, copy) &&
      cuda_gpu_copy(&device->gpu[copy->gpu], device->config.host, copy, &token))
    cuda_watch_call(device->watch);
  else
    cuda_watch_refuse(device->watch, copy->tag);
  return token;
}

static void cuda_compute(struct device *device, const struct device_compute *compute)
{
  if (device_compute_fits(&device->config, compute) && cuda_gpu_compute(&device->gpu[compute->gpu], compute))
    cuda_watch_call(device->watch);
  else
    cuda_watch_refuse(device->watch, compute->tag);
}

const struct device_ops device_cuda = {
    .name = "cuda",
    .missing = cuda_missing,
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .memory = cuda_memory,
    .pci = cuda_pci,
    .gpu_memory = cuda_gpu_memory,
    .fill = cuda_fill,
    .move = cuda_move,
    .copy = cuda_copy,
    .compute = cuda_compute,
};
