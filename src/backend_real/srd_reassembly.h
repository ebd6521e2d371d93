/* Reassembly: reads under way whose segments come in any order, each written once to its place.
 *
 * A read is cut into segments of one size that both its ends know, the last one shorter, so a segment is
 * either exactly one of these or wrong; none can overlap another. A bit a segment tells which came.
 * Everything is allocated at the start. */
#ifndef DM_SRD_REASSEMBLY_H
#define DM_SRD_REASSEMBLY_H

#include <glib.h>
#include <stdint.h>

struct reassembly;

/* Room for so many reads at once (1 to 65536), of up to READ_BYTES_MAX bytes, in segments of at least
 * segment_least bytes. */
struct reassembly *reassembly_new(uint32_t reads, uint32_t segment_least);
void reassembly_free(struct reassembly *reassembly);

struct reassembly_read {
  uint32_t peer;
  uint32_t segment;
  uint32_t bytes;
  uint8_t *place;
  uint64_t tag;
};
/* Its id, which is never used again. There must be room. */
uint64_t reassembly_open(struct reassembly *reassembly, const struct reassembly_read *read);

enum segment_fate {
  SEGMENT_STORED,
  SEGMENT_LAST,    /* stored, and the read is whole and over */
  SEGMENT_UNKNOWN, /* of no read of this peer's that is under way; it may have been */
  SEGMENT_TWICE,
  SEGMENT_WRONG, /* not one of the read's segments */
};

/* A segment came. Only the first two wrote anything, within the read's place. SEGMENT_LAST: *tag. */
enum segment_fate reassembly_take(struct reassembly *reassembly, uint32_t peer, uint64_t id, uint32_t at,
                                  const uint8_t *payload, uint32_t bytes, uint64_t *tag);
/* The read is over without its bytes. FALSE: no such read of this peer's is under way. */
gboolean reassembly_refuse(struct reassembly *reassembly, uint32_t peer, uint64_t id, uint64_t *tag);
/* Ends one of the peer's reads, oldest slot first. FALSE: it has none. */
gboolean reassembly_drop(struct reassembly *reassembly, uint32_t peer, uint64_t *tag);

#endif
