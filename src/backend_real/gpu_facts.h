/* What CUDA tells of this machine's GPUs, for `doctor`. */
#ifndef DM_GPU_FACTS_H
#define DM_GPU_FACTS_H

#include <glib.h>
#include <stdint.h>

enum gpu_export { GPU_EXPORT_UNKNOWN, GPU_EXPORT_NO, GPU_EXPORT_YES };

struct gpu_facts {
  int ordinal;            /* CUDA's; -1: on PCI, but CUDA does not see it */
  char *name;             /* NULL unknown */
  uint64_t bytes;         /* memory; 0 unknown */
  char pci[16];           /* "0000:17:00.0"; "" unknown */
  int numa;               /* node, -1 unknown */
  char *driver;           /* of the kernel, that has taken it: "nvidia"; NULL none, or unknown */
  enum gpu_export dmabuf; /* its memory can be exported for GPUDirect: tried */
  char *dmabuf_why;       /* NULL, or why not */
};

void gpu_facts_free(gpointer gpu);

/* Those that CUDA sees, in its order; numa and driver are left unknown. Takes a little of each one's memory
 * for a moment. */
GPtrArray *cuda_facts(void); /* of struct gpu_facts *; unref frees them */
/* CUDA's version that the driver has, as "13.0"; NULL: no driver, or built without nvcc. Free with g_free. */
char *cuda_driver_version(void);

#endif
