/* What one end of an SRD line tells the other in its letter. Little-endian: "SR1\0", u32 queue pair, u32
 * qkey, u32 flags (1: reads remote memory), u32 bytes of a datagram, u32 share, u32 requests, u32 gbit/s, u64
 * token, gid.
 *
 * Queue pair, qkey and token are all that a stranger would have to know: EFA checks nothing else. qkeys and
 * tokens are random. */
#ifndef DM_SRD_OFFER_H
#define DM_SRD_OFFER_H

#include <glib.h>
#include <stdint.h>

#define SRD_OFFER_BYTES 56

struct srd_offer {
  uint32_t qp;           /* 24 bits, not 0 */
  uint32_t qkey;         /* below 2^31: those above are the kernel's */
  gboolean reads;        /* both ends have it: RDMA READ; else datagrams */
  uint32_t datagram_max; /* bytes; at least a segment of SRD_SEGMENT_LEAST */
  uint32_t share;        /* a reader's: datagrams that the shelf may send before it gets credit; else 0 */
  uint32_t requests;     /* a shelf's: that it has buffers for; else 0 */
  uint32_t gbit_s;       /* 0 = unknown */
  uint64_t token;        /* to be shown to it */
  uint8_t gid[16];
};

void srd_offer_put(const struct srd_offer *offer, uint8_t wire[SRD_OFFER_BYTES]);
/* Of a shelf (else of a reader). FALSE: malformed, or a number out of bounds. */
gboolean srd_offer_parse(const uint8_t *wire, size_t size, gboolean of_shelf, struct srd_offer *offer);

#endif
