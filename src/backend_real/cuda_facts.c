/* What CUDA tells of the GPUs; see gpu_facts.h. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include "backend_real/gpu_facts.h"

#define TRIED_BYTES (2ULL << 20)
#define PCI_TEXT    32

typedef CUresult (*export_call)(void *handle, CUdeviceptr from, size_t bytes, CUmemRangeHandleType type,
                                unsigned long long flags);

/* By its name, not by linking: the program starts where there is no driver. NULL: the driver has no such
 * call. */
static export_call find_export(void)
{
  void *call = NULL;
  enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  cudaError_t status = cudaGetDriverEntryPointByVersion("cuMemGetHandleForAddressRange", &call, 11070,
                                                        cudaEnableDefault, &found);
#elif CUDART_VERSION >= 12000
  cudaError_t status =
      cudaGetDriverEntryPoint("cuMemGetHandleForAddressRange", &call, cudaEnableDefault, &found);
#else
  cudaError_t status = cudaErrorNotSupported;
#endif
  return status == cudaSuccess && found == cudaDriverEntryPointSuccess ? (export_call)call : NULL;
}

static void set_export(struct gpu_facts *gpu, enum gpu_export dmabuf, const char *why)
{
  gpu->dmabuf = dmabuf;
  gpu->dmabuf_why = g_strdup(why);
}

static void try_export(struct gpu_facts *gpu)
{
  void *memory = NULL;
  int file = -1;
  export_call call = find_export();
  if (!call) {
    set_export(gpu, GPU_EXPORT_NO, "the driver has no such call");
    return;
  }
  cudaError_t status = cudaSetDevice(gpu->ordinal);
  if (status == cudaSuccess)
    status = cudaMalloc(&memory, TRIED_BYTES);
  if (status != cudaSuccess) {
    set_export(gpu, GPU_EXPORT_UNKNOWN, cudaGetErrorString(status));
    return;
  }
  CUresult result = call(&file, (CUdeviceptr)memory, TRIED_BYTES, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  if (result == CUDA_SUCCESS)
    set_export(gpu, GPU_EXPORT_YES, NULL);
  else
    set_export(gpu, GPU_EXPORT_NO,
               result == CUDA_ERROR_NOT_SUPPORTED ? "the driver does not support it" : "the driver refuses");
  if (result == CUDA_SUCCESS)
    close(file);
  cudaFree(memory);
}

static struct gpu_facts *facts_of(int ordinal)
{
  struct gpu_facts *gpu = g_new0(struct gpu_facts, 1);
  struct cudaDeviceProp properties;
  char pci[PCI_TEXT] = "";
  gpu->ordinal = ordinal;
  gpu->numa = -1;
  if (cudaGetDeviceProperties(&properties, ordinal) == cudaSuccess) {
    gpu->name = g_strdup(properties.name);
    gpu->bytes = properties.totalGlobalMem;
  }
  if (cudaDeviceGetPCIBusId(pci, sizeof pci, ordinal) == cudaSuccess) {
    g_autofree char *lower = g_ascii_strdown(pci, -1);
    g_strlcpy(gpu->pci, lower, sizeof gpu->pci);
  }
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
