/* Memory registered with a protection domain of an RDMA device, so that reads land in it.
 *
 * Registration pins pages, which takes tens of seconds per 100 GB on one thread: it is done in chunks by
 * several threads, once, and says how far it is. */
#ifndef DM_VERBS_MEMORY_H
#define DM_VERBS_MEMORY_H

#include "backend_real/transport.h"
#include "backend_real/verbs_device.h"

#define VERBS_CHUNK_BYTES (256ULL << 20) /* a multiple of huge pages, and not below READ_BYTES_MAX */
#define VERBS_SGES        2 /* pieces that a read may lie in: it crosses one end of a chunk at most */

struct verbs_memory;

/* Writable for this device's own reads, closed to peers. Memory without a base is registered by its dma-buf.
 * DM_ERROR_FAILED: why, and what to do (limits of locked memory, of the device; a driver without dma-buf). */
struct verbs_memory *verbs_memory_new(const struct verbs_device *device, const struct memory *memory,
                                      GError **error);
void verbs_memory_free(struct verbs_memory *memory);
/* Where bytes [at, at + bytes), bytes from 1 to READ_BYTES_MAX, lie. Returns how many pieces. */
uint32_t verbs_memory_pieces(const struct verbs_memory *memory, uint64_t at, uint32_t bytes,
                             struct ibv_sge piece[VERBS_SGES]);

/* Registers memory that begins at base for reading by peers. NULL: DM_ERROR_FAILED as above. */
struct ibv_mr *verbs_memory_expose(const struct verbs_device *device, uint8_t *base, uint64_t bytes,
                                   GError **error);

#endif
