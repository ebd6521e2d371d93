/* What one end of an RC line tells the other: its queue pair and port, and what the port can. */
#ifndef DM_VERBS_RC_OFFER_H
#define DM_VERBS_RC_OFFER_H

#include <glib.h>
#include <stdint.h>

#define RC_OFFER_BYTES 48
#define RC_READS_MAX   255 /* the field of the InfiniBand specification has 8 bits */
#define RC_DEPTH       64  /* work requests of a queue pair */

struct rc_offer {
  uint32_t qp, psn;                   /* 24 bits each; qp is not 0 */
  uint32_t mtu;                       /* bytes: 256, 512, 1024, 2048 or 4096 */
  uint32_t reads_asked, reads_served; /* 1 to RC_READS_MAX */
  uint32_t gbit_s;                    /* 0 = unknown */
  uint16_t lid;                       /* InfiniBand: not 0 */
  gboolean ethernet;
  uint8_t gid[16];
};

void rc_offer_put(const struct rc_offer *offer, uint8_t wire[RC_OFFER_BYTES]);
/* FALSE: malformed. */
gboolean rc_offer_parse(const uint8_t *wire, size_t size, struct rc_offer *offer);

/* How much a reader's queue pair should have under way (see struct verbs_window): reads that both ports can,
 * twice over so that the queue never runs dry, and the bytes that the slower of them carries in a round trip.
 */
struct verbs_window;
void rc_window(const struct rc_offer *reader, const struct rc_offer *shelf, struct verbs_window *window);
/* Reads that may be on the wire at once. */
uint32_t rc_reads(const struct rc_offer *reader, const struct rc_offer *shelf);

#endif
