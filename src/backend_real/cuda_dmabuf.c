/* GPU memory as dma-buf; see cuda_dmabuf.h. The driver's functions are found through the runtime, so that
 * nothing links against libcuda, which machines without a GPU lack. */
#include "backend_real/cuda_dmabuf.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include "core/error.h"

typedef CUresult (*export_function)(void *handle, CUdeviceptr at, size_t bytes, CUmemRangeHandleType type,
                                    unsigned long long flags);
typedef CUresult (*attribute_function)(int *value, CUdevice_attribute attribute, CUdevice device);
typedef CUresult (*name_function)(CUresult result, const char **name);

/* NULL: this driver has no such function. version: CUDA's, that the function came with. */
static void *driver_function(const char *name, unsigned version)
{
  void *function = NULL;
  enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  cudaError_t status = cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found);
#else
  (void)version;
  cudaError_t status = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  return status == cudaSuccess && found == cudaDriverEntryPointSuccess ? function : NULL;
}

static const char *result_name(CUresult result)
{
  name_function name_of = (name_function)driver_function("cuGetErrorName", 6000);
  const char *name = NULL;
  return name_of && name_of(result, &name) == CUDA_SUCCESS && name ? name : "unknown error";
}

static const char *supported(int ordinal)
{
  attribute_function attribute = (attribute_function)driver_function("cuDeviceGetAttribute", 2000);
  int value = 0;
  if (!attribute || attribute(&value, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, ordinal) != CUDA_SUCCESS)
    return "the driver does not say whether it can";
  return value ? "the driver says that it can" : "the driver says that it cannot";
}

int cuda_dmabuf_try(int ordinal, void *memory, uint64_t bytes, char **why)
{
  export_function export = (export_function)driver_function("cuMemGetHandleForAddressRange", 11070);
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = (uint64_t)(uintptr_t)memory;
  int fd = -1;
  if (!export) {
    *why = g_strdup("the driver has no cuMemGetHandleForAddressRange (CUDA 11.7)");
    return -1;
  }
  if (at % page != 0 || bytes % page != 0) {
    *why = g_strdup_printf(
        "%" G_GUINT64_FORMAT " bytes at 0x%" G_GINT64_MODIFIER "x do not begin and end on a page", bytes, at);
    return -1;
  }
  CUresult result = export(&fd, (CUdeviceptr)at, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  if (result != CUDA_SUCCESS || fd < 0) {
    *why = g_strdup_printf("%s (%s)", result_name(result), supported(ordinal));
    return -1;
  }
  return fd;
}

int cuda_dmabuf_export(int ordinal, void *memory, uint64_t bytes, GError **error)
{
  g_autofree char *why = NULL;
  int fd = cuda_dmabuf_try(ordinal, memory, bytes, &why);
  if (fd < 0)
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "GPU %d: its memory has no dma-buf: %s", ordinal, why);
  return fd;
}

gboolean cuda_dmabuf_order(int ordinal, gboolean *must_flush, GError **error)
{
  int ordering = cudaGPUDirectRDMAWritesOrderingNone, flushes = 0;
  if (cudaDeviceGetAttribute(&ordering, cudaDevAttrGPUDirectRDMAWritesOrdering, ordinal) != cudaSuccess)
    ordering = cudaGPUDirectRDMAWritesOrderingNone;
  if (cudaDeviceGetAttribute(&flushes, cudaDevAttrGPUDirectRDMAFlushWritesOptions, ordinal) != cudaSuccess)
    flushes = 0;
  *must_flush = ordering < cudaGPUDirectRDMAWritesOrderingOwner;
  if (!*must_flush || flushes & cudaFlushGPUDirectRDMAWritesOptionHost)
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED,
              "GPU %d: its kernels may not see what a NIC has written (ordering %d, ways to flush %d)",
              ordinal, ordering, flushes);
  return FALSE;
}

int cuda_dmabuf_flush(void)
{
  return cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                            cudaFlushGPUDirectRDMAWritesToOwner);
}
