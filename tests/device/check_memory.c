/* GPU memory for others to write into (GPUDirect): a dma-buf of it, or plain memory of the host device. A
 * driver that cannot is no failure: its reason is shown. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend_real/checksum.h"
#include "backend_real/transport.h"
#include "bench.h"

#define REGION (1u << 20)

/* Computes on the first region as if the network had written it. */
static enum device_status compute_landed(struct bench *bench, uint32_t gpu)
{
  uint64_t tag = bench_tag(bench);
  struct device_compute compute = {.gpu = gpu,
                                   .pieces = 1,
                                   .piece = {{0, REGION, 3}},
                                   .checksum = checksum(bench->host + REGION, 3, REGION),
                                   .landed = TRUE,
                                   .tag = tag};
  bench->ops->compute(bench->device, &compute);
  return bench_await(bench, tag)->status;
}

/* What the processor writes there is what a compute then reads. */
static void written_and_computed(struct bench *bench, uint32_t gpu, uint8_t *base, const char *what)
{
  memcpy(base, bench->host + REGION, REGION);
  bench_verdict(bench, compute_landed(bench, gpu) == DEVICE_DONE,
                "GPU %u: bytes written through %s are computed on", gpu, what);
}

static void check_dmabuf(struct bench *bench, uint32_t gpu, const struct memory *memory)
{
  char link[64], target[64] = "";
  g_snprintf(link, sizeof link, "/proc/self/fd/%d", memory->dmabuf);
  ssize_t length = readlink(link, target, sizeof target - 1);
  off_t size = lseek(memory->dmabuf, 0, SEEK_END);
  bench_verdict(bench, length > 0 && size >= 0 && (uint64_t)size >= memory->bytes,
                "GPU %u at %s: dma-buf is descriptor %d (%s), %.1f MB from offset %" G_GUINT64_FORMAT
                " on; wanted are %.1f MB",
                gpu, memory->pci, memory->dmabuf, target, (double)size / 1e6, memory->dmabuf_offset,
                (double)memory->bytes / 1e6);
  gboolean filled = bench->ops->fill(bench->device, gpu, 0, bench->host + REGION, REGION, NULL);
  bench_verdict(bench, filled && compute_landed(bench, gpu) == DEVICE_DONE,
                "GPU %u: a compute that first waits for what NICs have written", gpu);
  void *seen = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED, memory->dmabuf, 0);
  if (seen == MAP_FAILED) {
    printf("GPU %u: the processor cannot map the dma-buf (%s): NICs alone can write into it\n", gpu,
           g_strerror(errno));
    return;
  }
  written_and_computed(bench, gpu, seen, "the dma-buf");
  munmap(seen, REGION);
}

void check_memory(struct bench *bench)
{
  for (uint32_t gpu = 0; gpu < bench->gpus; gpu++) {
    g_autoptr(GError) error = NULL;
    struct memory memory;
    gint64 start = g_get_monotonic_time();
    if (!bench->ops->gpu_memory(bench->device, gpu, &memory, &error)) {
      printf("GPU %u: no GPUDirect: %s\n", gpu, error->message);
      continue;
    }
    printf("GPU %u: memory for others to write into, in %.3f ms\n", gpu,
           (double)(g_get_monotonic_time() - start) / 1e3);
    if (memory.base)
      written_and_computed(bench, gpu, memory.base, "its address");
    else
      check_dmabuf(bench, gpu, &memory);
  }
}
