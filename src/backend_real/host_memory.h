/* The one arena of a process in host memory, page aligned, in the largest pages that can be had: explicit
 * huge pages (2 MiB, from the kernel's pool), else transparent ones, else small ones. Says which. */
#ifndef DM_HOST_MEMORY_H
#define DM_HOST_MEMORY_H

#include <glib.h>
#include <stdint.h>

struct host_memory {
  uint8_t *base;
  uint64_t bytes;    /* asked for */
  uint64_t mapped;   /* rounded up to pages */
  const char *pages; /* "huge pages", "transparent huge pages", "4 KiB pages" */
};

/* touch: all of it now, by several threads, so that no page fault is left for later. DM_ERROR_FAILED: not so
 * much memory. DM_ERROR_INTERRUPTED: a signal waits (interrupt.h). */
gboolean host_memory_map(struct host_memory *memory, uint64_t bytes, gboolean touch, GError **error);
void host_memory_unmap(struct host_memory *memory);

#endif
