/* Offers of SRD lines; see srd_offer.h. */
#include "backend_real/srd_offer.h"

#include <string.h>

#include "backend_real/little_endian.h"
#include "backend_real/srd_answers.h"
#include "backend_real/srd_wire.h"

#define REQUESTS_MAX 65536

static const uint8_t magic[4] = {'S', 'R', '1', 0};

void srd_offer_put(const struct srd_offer *offer, uint8_t wire[SRD_OFFER_BYTES])
{
  memcpy(wire, magic, sizeof magic);
  put32(wire + 4, offer->qp);
  put32(wire + 8, offer->qkey);
  put32(wire + 12, offer->reads ? 1 : 0);
  put32(wire + 16, offer->datagram_max);
  put32(wire + 20, offer->share);
  put32(wire + 24, offer->requests);
  put32(wire + 28, offer->gbit_s);
  put32(wire + 32, (uint32_t)offer->token);
  put32(wire + 36, (uint32_t)(offer->token >> 32));
  memcpy(wire + 40, offer->gid, sizeof offer->gid);
}

gboolean srd_offer_parse(const uint8_t *wire, size_t size, gboolean of_shelf, struct srd_offer *offer)
{
  static const uint8_t no_gid[16];
  if (size != SRD_OFFER_BYTES || memcmp(wire, magic, sizeof magic) != 0)
    return FALSE;
  uint32_t flags = get32(wire + 12);
  *offer = (struct srd_offer){
      .qp = get32(wire + 4),
      .qkey = get32(wire + 8),
      .reads = flags & 1,
      .datagram_max = get32(wire + 16),
      .share = get32(wire + 20),
      .requests = get32(wire + 24),
      .gbit_s = get32(wire + 28),
      .token = get32(wire + 32) | (uint64_t)get32(wire + 36) << 32,
  };
  memcpy(offer->gid, wire + 40, sizeof offer->gid);
  gboolean counts = of_shelf ? offer->share == 0 && offer->requests > 0 && offer->requests <= REQUESTS_MAX
                             : offer->requests == 0 && offer->share > 0 && offer->share <= SRD_SHARE_MAX;
  return counts && flags <= 1 && offer->qp != 0 && offer->qp < 1U << 24 && offer->qkey < 1U << 31 &&
         srd_segment_bytes(offer->datagram_max) > 0 && memcmp(offer->gid, no_gid, sizeof no_gid) != 0;
}
