/* Letters of the verbs transport: how a reader and a shelf meet over the control plane. All fields are
 * little-endian.
 *
 *   head       "DMv1", u8 kind, 3 x u8 0, u64 attempt
 *   OPEN       reader to shelf   ticket (TICKET_BYTES), offers
 *   ACCEPT     shelf to reader   u8 rails of the shelf, offers, lines x {u8 rail that serves it}
 *   REFUSE     shelf to reader   u8 length, text
 *   REGIONS    shelf to reader   u64 serial, u8 rails, u8 0, u16 entries; an entry: u32 model, u32 add, u64
 * offset, u64 bytes, and rails x {u64 address, u32 key} (an entry that takes away: zeros) NEWS       reader
 * to shelf   u64 serial that it follows, u64 bytes read CLOSE      reader to shelf   u64 0, u64 bytes read
 *   offers     u8 lines, lines x {u8 size, size x u8}
 *
 * The control plane says who the sender is and that both belong to one run. What it cannot say is whether a
 * letter was written under the grant that holds now: a shelf's process that began anew, or a reader that was
 * expelled and admitted again, has another secret. So OPEN carries a ticket of the pair's secret, with the
 * attempt as its serial and no model (NO_INDEX): it cannot be replayed, and all other letters are tied to the
 * attempt that it opened. */
#ifndef DM_TRANSPORT_VERBS_LETTER_H
#define DM_TRANSPORT_VERBS_LETTER_H

#include "backend_real/transport.h"
#include "backend_real/verbs_queue.h"

#define VERBS_LINES_MAX 64 /* to a peer */
#define VERBS_RAILS_MAX 8  /* of a shelf */
#define VERBS_WHY_BYTES 200

enum verbs_letter_kind { VERBS_OPEN = 1, VERBS_ACCEPT, VERBS_REFUSE, VERBS_REGIONS, VERBS_NEWS, VERBS_CLOSE };

struct verbs_offers {
  uint32_t lines;
  uint8_t size[VERBS_LINES_MAX];
  uint8_t bytes[VERBS_LINES_MAX][VERBS_OFFER_BYTES];
};

/* Bytes [offset, offset + bytes) of a model's image, at the shelf. Those of one model do not overlap. */
struct verbs_region {
  uint32_t model;
  gboolean add; /* else: is no longer there; the rest is 0 but for offset and bytes */
  uint64_t offset, bytes;
  struct {
    uint64_t address;
    uint32_t key;
  } rail[VERBS_RAILS_MAX];
};

struct verbs_letter {
  enum verbs_letter_kind kind;
  uint64_t attempt; /* not 0 */
  uint8_t ticket[TICKET_BYTES];
  uint32_t rails; /* 1 to VERBS_RAILS_MAX */
  struct verbs_offers offers;
  uint8_t rail[VERBS_LINES_MAX]; /* [offers.lines], each below `rails` */
  char why[VERBS_WHY_BYTES + 1]; /* printable ASCII */
  uint64_t serial, bytes;
  uint32_t entries; /* of struct verbs_region: verbs_letter_region */
  const uint8_t *entry;
};

/* FALSE: malformed, *letter is undefined. The letter points into data. All entries are good. */
gboolean verbs_letter_parse(const uint8_t *data, size_t size, struct verbs_letter *letter);
void verbs_letter_region(const struct verbs_letter *letter, uint32_t i, struct verbs_region *region);

/* What such a letter takes on the wire; all kinds but REGIONS. */
GByteArray *verbs_letter_pack(const struct verbs_letter *letter);

/* REGIONS: begin, then add entries as long as TRUE is returned. */
GByteArray *verbs_regions_begin(uint64_t attempt, uint64_t serial, uint32_t rails);
void verbs_regions_set_serial(GByteArray *letter, uint64_t serial);
/* FALSE: the letter is full, and nothing was added. */
gboolean verbs_regions_add(GByteArray *letter, const struct verbs_region *region);

#endif
