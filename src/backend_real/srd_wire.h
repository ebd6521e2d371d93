/* What goes over SRD where the device cannot read remote memory: datagrams that arrive once each, in any
 * order. A reader asks, the memory server answers in segments. All fields are little-endian.
 *
 *   reader to shelf   request  "DMq1", u32 bytes, u64 token, u64 id, u64 address, u32 key, u32 0
 *                     credit   "DMc1", u32 limit, u64 token
 *                     probe    "DMp1", u32 0, u64 token
 *   shelf to reader   segment  "DMs1", u32 taken, u64 token, u64 id, u32 at, u32 bytes, then the bytes
 *                     refusal  "DMn1", u32 taken, u64 token, u64 id
 *
 * token: the receiver made it and told it to the sender alone, over the control plane; it says who sends.
 * key, address: of exposed memory, as with RDMA READ. id: the reader's name of a read; at: where the
 * segment's first byte is in the read. limit, taken: see srd_credit.h. A refusal ends a read that is not, or
 * no longer, served. A probe asks for nothing: that it cannot be delivered says that the shelf is lost.
 *
 * Nothing is trusted: a datagram has one of these shapes to the byte, or is malformed. */
#ifndef DM_SRD_WIRE_H
#define DM_SRD_WIRE_H

#include <glib.h>
#include <stdint.h>

#define SRD_REQUEST_BYTES 40
#define SRD_CREDIT_BYTES  16
#define SRD_PROBE_BYTES   16
#define SRD_SEGMENT_BYTES 32 /* before the payload */
#define SRD_REFUSAL_BYTES 24
/* Any of them, but a segment's payload. */
#define SRD_HEAD_BYTES 40

/* A token's low bits are its receiver's index of the sender, the others are random. */
#define SRD_PEERS_MAX        4096
#define SRD_TOKEN_PEER(t)    ((uint32_t)((t) & (SRD_PEERS_MAX - 1)))
#define SRD_TOKEN(random, p) (((random) & ~(uint64_t)(SRD_PEERS_MAX - 1)) | (p))

enum srd_kind { SRD_REQUEST, SRD_CREDIT, SRD_PROBE, SRD_SEGMENT, SRD_REFUSAL };

struct srd_message {
  enum srd_kind kind;
  uint64_t token;
  uint64_t id;            /* request, segment, refusal */
  uint64_t address;       /* request */
  uint32_t key;           /* request */
  uint32_t bytes;         /* request, segment; > 0 */
  uint32_t at;            /* segment */
  uint32_t limit;         /* credit */
  uint32_t taken;         /* segment, refusal */
  const uint8_t *payload; /* segment: inside the datagram */
};

/* FALSE: malformed; of a request also: more than READ_BYTES_MAX, or past the end of all numbers. */
gboolean srd_message_parse(const uint8_t *data, size_t size, struct srd_message *message);
/* Writes the head (at most SRD_HEAD_BYTES); of a segment, `bytes` of payload belong behind it. Returns its
 * size. */
size_t srd_message_put(const struct srd_message *message, uint8_t *wire);

/* Bytes of payload in a full segment, so that it fits a datagram: whole pages where one fits, since what is
 * served lies in pages. 0: less than SRD_SEGMENT_LEAST, of which most would be heads. */
uint32_t srd_segment_bytes(uint32_t datagram_max);
#define SRD_SEGMENT_LEAST 256

#endif
