/* What CUDA tells of the GPUs; see gpu_facts.h. */
#include <cuda_runtime_api.h>
#include <unistd.h>

#include "backend_real/cuda_dmabuf.h"
#include "backend_real/cuda_gpu.h"
#include "backend_real/gpu_facts.h"

static void try_export(struct gpu_facts *gpu)
{
  void *memory = NULL;
  cudaError_t status = cudaSetDevice(gpu->ordinal);
  if (status == cudaSuccess)
    status = cudaMalloc(&memory, CUDA_DMABUF_ALIGN);
  if (status != cudaSuccess) {
    gpu->dmabuf_why = g_strdup(cudaGetErrorString(status));
    return;
  }
  int file = cuda_dmabuf_try(gpu->ordinal, memory, CUDA_DMABUF_ALIGN, &gpu->dmabuf_why);
  gpu->dmabuf = file >= 0 ? GPU_EXPORT_YES : GPU_EXPORT_NO;
  if (file >= 0)
    close(file);
  cudaFree(memory);
}

static struct gpu_facts *facts_of(int ordinal)
{
  struct gpu_facts *gpu = g_new0(struct gpu_facts, 1);
  struct cudaDeviceProp properties;
  gpu->ordinal = ordinal;
  gpu->numa = -1;
  if (cudaGetDeviceProperties(&properties, ordinal) == cudaSuccess) {
    gpu->name = g_strdup(properties.name);
    gpu->bytes = properties.totalGlobalMem;
  }
  cuda_pci_address(ordinal, gpu->pci);
  try_export(gpu);
  return gpu;
}

GPtrArray *cuda_facts(void)
{
  GPtrArray *gpus = g_ptr_array_new_with_free_func(gpu_facts_free);
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess)
    return gpus;
  for (int i = 0; i < count; i++)
    g_ptr_array_add(gpus, facts_of(i));
  return gpus;
}

char *cuda_driver_version(void)
{
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0)
    return NULL;
  return g_strdup_printf("%d.%d", version / 1000, version % 1000 / 10);
}
