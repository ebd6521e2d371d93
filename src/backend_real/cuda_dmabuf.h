/* GPU memory for other devices to write into (GPUDirect RDMA): a range of it as a dma-buf, and what it takes
 * that kernels see what was written.
 *
 * Run on an H200 (driver 580): the export; computes that would flush first, which there need not (its writes
 * are ordered for its own kernels). Not run: a NIC that writes, cudaDeviceFlushGPUDirectRDMAWrites. */
#ifndef DM_CUDA_DMABUF_H
#define DM_CUDA_DMABUF_H

#include <glib.h>
#include <stdint.h>

/* Ranges begin and end on a multiple of this: of the processor's pages (4 to 64 KiB) and of CUDA's own
 * blocks, so that an allocation of so many bytes is one of its own. */
#define CUDA_DMABUF_ALIGN (2u << 20)

/* A file descriptor of the dma-buf of [memory, memory + bytes), which lies within one cudaMalloc (what comes
 * from CUDA's virtual-memory API does not register with NICs). The GPU is the thread's current one. -1 +
 * DM_ERROR_FAILED: the driver's reason. The caller closes it. */
int cuda_dmabuf_export(int ordinal, void *memory, uint64_t bytes, GError **error);

/* The same; *why receives the reason alone; g_free. */
int cuda_dmabuf_try(int ordinal, void *memory, uint64_t bytes, char **why);

/* *must_flush: kernels started after a NIC's write has ended may not see it without cuda_dmabuf_flush. FALSE
 * + DM_ERROR_FAILED: it would be so, and the driver cannot flush from the host. */
gboolean cuda_dmabuf_order(int ordinal, gboolean *must_flush, GError **error);
/* Lets the current GPU see what was written to it; a cudaError_t. Blocks, for about a microsecond. */
int cuda_dmabuf_flush(void);

#endif
