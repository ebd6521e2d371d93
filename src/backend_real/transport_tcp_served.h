/* What a TCP shelf serves: for each model, which bytes of its image are where in memory.
 *
 * Threads look up under a lock of their owner's; looking up allocates nothing. */
#ifndef DM_TRANSPORT_TCP_SERVED_H
#define DM_TRANSPORT_TCP_SERVED_H

#include <sys/uio.h>
#include "core/arena.h"

struct served;

struct served *served_new(void);
void served_free(struct served *served);
/* The image's bytes [offset, offset + bytes) are at `place`, instead of where they were before. */
void served_add(struct served *served, uint32_t model, uint64_t offset, uint64_t bytes,
                const struct ranges *place);
void served_remove(struct served *served, uint32_t model, uint64_t offset, uint64_t bytes);

enum served_answer {
  SERVED_HERE,
  SERVED_NOT_HERE, /* not, or not whole, though it may have been */
  SERVED_NEVER,    /* reaches beyond all that was ever served of the model */
};
/* Where the image's bytes [offset, offset + bytes), bytes > 0, are: up to `room` pieces, in order, of memory
 * that begins at base. *pieces receives how many; they may cover less than bytes when room is too small. All
 * the bytes must be served, though. */
enum served_answer served_find(const struct served *served, uint32_t model, uint64_t offset, uint64_t bytes,
                               uint8_t *base, struct iovec *piece, uint32_t room, uint32_t *pieces);

#endif
