/* Letters of the verbs transport; see transport_verbs_letter.h. */
#include "backend_real/transport_verbs_letter.h"

#include <string.h>

#define HEAD_BYTES    16
#define ENTRY_BYTES   24 /* without its rails */
#define RAIL_BYTES    12
#define ENTRIES_MAX   G_MAXUINT16
#define ENTRIES_PLACE (HEAD_BYTES + 10) /* of the count */

static const uint8_t magic[4] = {'D', 'M', 'v', '1'};

/* --- reading
 * -------------------------------------------------------------------------------------------------------*/

/* What is left of a letter. Once short, it stays so. */
struct rest {
  const uint8_t *at;
  size_t size;
  gboolean is_short;
};

static const uint8_t *take(struct rest *rest, size_t bytes)
{
  static const uint8_t zeros[256];
  if (rest->is_short || rest->size < bytes) {
    rest->is_short = TRUE;
    return zeros;
  }
  rest->at += bytes;
  rest->size -= bytes;
  return rest->at - bytes;
}

static uint64_t number(const uint8_t *at, unsigned bytes)
{
  uint64_t value = 0;
  for (unsigned i = 0; i < bytes; i++)
    value |= (uint64_t)at[i] << 8 * i;
  return value;
}

static uint64_t take_number(struct rest *rest, unsigned bytes)
{
  return number(take(rest, bytes), bytes);
}

static gboolean take_offers(struct rest *rest, struct verbs_offers *offers)
{
  offers->lines = (uint32_t)take_number(rest, 1);
  if (offers->lines == 0 || offers->lines > VERBS_LINES_MAX)
    return FALSE;
  for (uint32_t i = 0; i < offers->lines; i++) {
    offers->size[i] = (uint8_t)take_number(rest, 1);
    if (offers->size[i] > VERBS_OFFER_BYTES)
      return FALSE;
    memcpy(offers->bytes[i], take(rest, offers->size[i]), offers->size[i]);
  }
  return TRUE;
}

static gboolean take_rails(struct rest *rest, struct verbs_letter *letter)
{
  letter->rails = (uint32_t)take_number(rest, 1);
  if (letter->rails == 0 || letter->rails > VERBS_RAILS_MAX || !take_offers(rest, &letter->offers))
    return FALSE;
  for (uint32_t i = 0; i < letter->offers.lines; i++) {
    letter->rail[i] = (uint8_t)take_number(rest, 1);
    if (letter->rail[i] >= letter->rails)
      return FALSE;
  }
  return TRUE;
}

static gboolean take_why(struct rest *rest, char why[VERBS_WHY_BYTES + 1])
{
  size_t size = take_number(rest, 1);
  if (size > VERBS_WHY_BYTES)
    return FALSE;
  const uint8_t *text = take(rest, size);
  for (size_t i = 0; i < size; i++)
    why[i] = g_ascii_isprint((char)text[i]) ? (char)text[i] : '?';
  why[size] = 0;
  return TRUE;
}

static size_t entry_bytes(uint32_t rails)
{
  return ENTRY_BYTES + (size_t)rails * RAIL_BYTES;
}

static gboolean is_region(const struct verbs_region *region, uint32_t rails)
{
  gboolean good = region->bytes > 0 && region->offset <= UINT64_MAX - region->bytes;
  for (uint32_t r = 0; r < rails && region->add; r++)
    good = good && region->rail[r].address <= UINT64_MAX - region->bytes;
  return good;
}

void verbs_letter_region(const struct verbs_letter *letter, uint32_t i, struct verbs_region *region)
{
  const uint8_t *at = letter->entry + i * entry_bytes(letter->rails);
  *region = (struct verbs_region){.model = (uint32_t)number(at, 4),
                                  .add = number(at + 4, 4) == 1,
                                  .offset = number(at + 8, 8),
                                  .bytes = number(at + 16, 8)};
  at += ENTRY_BYTES;
  for (uint32_t r = 0; r < letter->rails; r++, at += RAIL_BYTES) {
    region->rail[r].address = number(at, 8);
    region->rail[r].key = (uint32_t)number(at + 8, 4);
  }
}

static gboolean take_regions(struct rest *rest, struct verbs_letter *letter)
{
  letter->serial = take_number(rest, 8);
  letter->rails = (uint32_t)take_number(rest, 1);
  uint64_t zero = take_number(rest, 1);
  letter->entries = (uint32_t)take_number(rest, 2);
  letter->entry = rest->at;
  if (rest->is_short || zero != 0 || letter->rails == 0 || letter->rails > VERBS_RAILS_MAX ||
      rest->size != letter->entries * entry_bytes(letter->rails))
    return FALSE;
  for (uint32_t i = 0; i < letter->entries; i++) {
    struct verbs_region region;
    verbs_letter_region(letter, i, &region);
    if (number(letter->entry + i * entry_bytes(letter->rails) + 4, 4) > 1 ||
        !is_region(&region, letter->rails))
      return FALSE;
  }
  rest->size = 0;
  return TRUE;
}

static gboolean take_body(struct rest *rest, struct verbs_letter *letter)
{
  switch (letter->kind) {
  case VERBS_OPEN:
    memcpy(letter->ticket, take(rest, TICKET_BYTES), TICKET_BYTES);
    return take_offers(rest, &letter->offers);
  case VERBS_ACCEPT:
    return take_rails(rest, letter);
  case VERBS_REFUSE:
    return take_why(rest, letter->why);
  case VERBS_REGIONS:
    return take_regions(rest, letter);
  case VERBS_NEWS:
  case VERBS_CLOSE:
    letter->serial = take_number(rest, 8);
    letter->bytes = take_number(rest, 8);
    return letter->kind == VERBS_NEWS || letter->serial == 0;
  }
  return FALSE;
}

gboolean verbs_letter_parse(const uint8_t *data, size_t size, struct verbs_letter *letter)
{
  struct rest rest = {.at = data, .size = size};
  const uint8_t *head = take(&rest, HEAD_BYTES);
  if (rest.is_short || size > LETTER_BYTES_MAX || memcmp(head, magic, sizeof magic) != 0 ||
      number(head + 5, 3) != 0)
    return FALSE;
  letter->kind = (enum verbs_letter_kind)head[4];
  letter->attempt = number(head + 8, 8);
  return letter->attempt != 0 && take_body(&rest, letter) && !rest.is_short && rest.size == 0;
}

/* --- writing
 * -------------------------------------------------------------------------------------------------------*/

static void append_number(GByteArray *to, uint64_t value, unsigned bytes)
{
  for (unsigned i = 0; i < bytes; i++)
    g_byte_array_append(to, &(uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}

static GByteArray *begin(enum verbs_letter_kind kind, uint64_t attempt)
{
  GByteArray *letter = g_byte_array_new();
  g_byte_array_append(letter, magic, sizeof magic);
  append_number(letter, kind, 4);
  append_number(letter, attempt, 8);
  return letter;
}

static void append_offers(GByteArray *to, const struct verbs_offers *offers)
{
  append_number(to, offers->lines, 1);
  for (uint32_t i = 0; i < offers->lines; i++) {
    append_number(to, offers->size[i], 1);
    g_byte_array_append(to, offers->bytes[i], offers->size[i]);
  }
}

GByteArray *verbs_letter_pack(const struct verbs_letter *letter)
{
  GByteArray *to = begin(letter->kind, letter->attempt);
  if (letter->kind == VERBS_OPEN) {
    g_byte_array_append(to, letter->ticket, TICKET_BYTES);
    append_offers(to, &letter->offers);
  } else if (letter->kind == VERBS_ACCEPT) {
    append_number(to, letter->rails, 1);
    append_offers(to, &letter->offers);
    g_byte_array_append(to, letter->rail, letter->offers.lines);
  } else if (letter->kind == VERBS_REFUSE) {
    size_t size = strlen(letter->why);
    append_number(to, size, 1);
    g_byte_array_append(to, (const uint8_t *)letter->why, (guint)size);
  } else {
    append_number(to, letter->kind == VERBS_CLOSE ? 0 : letter->serial, 8);
    append_number(to, letter->bytes, 8);
  }
  return to;
}

GByteArray *verbs_regions_begin(uint64_t attempt, uint64_t serial, uint32_t rails)
{
  GByteArray *to = begin(VERBS_REGIONS, attempt);
  append_number(to, serial, 8);
  append_number(to, rails, 2);
  append_number(to, 0, 2);
  return to;
}

void verbs_regions_set_serial(GByteArray *letter, uint64_t serial)
{
  for (unsigned i = 0; i < 8; i++)
    letter->data[HEAD_BYTES + i] = (uint8_t)(serial >> 8 * i);
}

gboolean verbs_regions_add(GByteArray *letter, const struct verbs_region *region)
{
  uint32_t rails = letter->data[HEAD_BYTES + 8];
  uint32_t count = (uint32_t)number(letter->data + ENTRIES_PLACE, 2);
  if (letter->len + entry_bytes(rails) > LETTER_BYTES_MAX || count == ENTRIES_MAX)
    return FALSE;
  append_number(letter, region->model, 4);
  append_number(letter, region->add, 4);
  append_number(letter, region->offset, 8);
  append_number(letter, region->bytes, 8);
  for (uint32_t r = 0; r < rails; r++) {
    append_number(letter, region->add ? region->rail[r].address : 0, 8);
    append_number(letter, region->add ? region->rail[r].key : 0, 4);
  }
  count++;
  letter->data[ENTRIES_PLACE] = (uint8_t)count;
  letter->data[ENTRIES_PLACE + 1] = (uint8_t)(count >> 8);
  return TRUE;
}
