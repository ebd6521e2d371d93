/* Letters of the verbs transport, as a shelf or a reader gets them from the other end, and what is in them:
 * offers of queue pairs, regions. What is taken can be written again and is then the same. */
#include <stdlib.h>
#include <string.h>

#include "backend_real/transport_verbs_known.h"
#include "backend_real/transport_verbs_letter.h"
#include "backend_real/verbs_rc_offer.h"

static void need(int good)
{
  if (!good)
    abort();
}

static void look_at_offers(const struct verbs_offers *offers)
{
  need(offers->lines > 0 && offers->lines <= VERBS_LINES_MAX);
  for (uint32_t i = 0; i < offers->lines; i++) {
    struct rc_offer offer;
    uint8_t again[RC_OFFER_BYTES];
    need(offers->size[i] <= VERBS_OFFER_BYTES);
    if (!rc_offer_parse(offers->bytes[i], offers->size[i], &offer))
      continue;
    need(offer.qp < 1U << 24 && offer.reads_served <= RC_READS_MAX && offer.mtu <= 4096);
    rc_offer_put(&offer, again);
    need(memcmp(again, offers->bytes[i], sizeof again) == 0);
  }
}

/* As a reader that takes it. */
static void look_at_regions(const struct verbs_letter *letter)
{
  struct known_table *table = known_table_new(letter->rails);
  for (uint32_t i = 0; i < letter->entries; i++) {
    struct verbs_region region;
    verbs_letter_region(letter, i, &region);
    need(region.bytes > 0 && region.offset + region.bytes > region.offset);
    need(known_apply(table, &region));
    const struct known *first = known_find(table, region.model, region.offset);
    need(region.add == (first != NULL));
    need(!first || first->rail[letter->rails - 1].address + first->span.bytes >=
                       first->rail[letter->rails - 1].address);
    need(known_covers(table, region.model, region.offset, region.bytes) == region.add);
  }
  known_table_close(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct verbs_letter letter;
  if (!verbs_letter_parse(data, size, &letter))
    return 0;
  need(size <= LETTER_BYTES_MAX && letter.attempt != 0);
  if (letter.kind == VERBS_OPEN || letter.kind == VERBS_ACCEPT)
    look_at_offers(&letter.offers);
  if (letter.kind == VERBS_REGIONS) {
    look_at_regions(&letter);
    return 0;
  }
  g_autoptr(GByteArray) again = verbs_letter_pack(&letter);
  need(again->len == size);
  need(letter.kind == VERBS_REFUSE || memcmp(again->data, data, size) == 0);
  return 0;
}
