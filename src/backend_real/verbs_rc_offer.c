/* Offers of RC lines; see verbs_rc_offer.h. */
#include "backend_real/verbs_rc_offer.h"

#include <string.h>

#include "backend_real/little_endian.h"
#include "backend_real/verbs_queue.h"

/* Little-endian: "RC1\0", u32 qp, u32 psn, u32 mtu, u32 reads asked, u32 reads served, u32 gbit/s, u16 lid,
 * u8 ethernet, u8 0, gid. */
static const uint8_t magic[4] = {'R', 'C', '1', 0};

void rc_offer_put(const struct rc_offer *offer, uint8_t wire[RC_OFFER_BYTES])
{
  memcpy(wire, magic, sizeof magic);
  put32(wire + 4, offer->qp);
  put32(wire + 8, offer->psn);
  put32(wire + 12, offer->mtu);
  put32(wire + 16, offer->reads_asked);
  put32(wire + 20, offer->reads_served);
  put32(wire + 24, offer->gbit_s);
  put32(wire + 28, offer->lid | (offer->ethernet ? 1U << 16 : 0));
  memcpy(wire + 32, offer->gid, sizeof offer->gid);
}

static gboolean is_mtu(uint32_t bytes)
{
  return bytes >= 256 && bytes <= 4096 && (bytes & (bytes - 1)) == 0;
}

static gboolean is_reads(uint32_t reads)
{
  return reads >= 1 && reads <= RC_READS_MAX;
}

gboolean rc_offer_parse(const uint8_t *wire, size_t size, struct rc_offer *offer)
{
  static const uint8_t no_gid[16];
  if (size != RC_OFFER_BYTES || memcmp(wire, magic, sizeof magic) != 0)
    return FALSE;
  uint32_t port = get32(wire + 28);
  *offer = (struct rc_offer){.qp = get32(wire + 4),
                             .psn = get32(wire + 8),
                             .mtu = get32(wire + 12),
                             .reads_asked = get32(wire + 16),
                             .reads_served = get32(wire + 20),
                             .gbit_s = get32(wire + 24),
                             .lid = (uint16_t)port,
                             .ethernet = port >> 16 & 1};
  memcpy(offer->gid, wire + 32, sizeof offer->gid);
  gboolean reachable = offer->ethernet ? memcmp(offer->gid, no_gid, 16) != 0 : offer->lid != 0;
  return port >> 17 == 0 && offer->qp != 0 && offer->qp < 1U << 24 && offer->psn < 1U << 24 &&
         is_mtu(offer->mtu) && is_reads(offer->reads_asked) && is_reads(offer->reads_served) && reachable;
}

uint32_t rc_reads(const struct rc_offer *reader, const struct rc_offer *shelf)
{
  return MIN(reader->reads_asked, shelf->reads_served);
}

void rc_window(const struct rc_offer *reader, const struct rc_offer *shelf, struct verbs_window *window)
{
  window->reads = MIN(2 * rc_reads(reader, shelf), RC_DEPTH);
  window->bytes = verbs_window_bytes(reader->gbit_s, shelf->gbit_s);
}
