/* Letters of the verbs transport and offers of its lines: what is written is read again, what is malformed is
 * refused. No RDMA device is needed. */
#include <criterion/criterion.h>
#include <string.h>

#include "backend_real/transport_verbs_letter.h"
#include "backend_real/verbs_rc_offer.h"
#include "core/units.h"

static void fill(GRand *random, void *to, size_t size)
{
  for (size_t i = 0; i < size; i++)
    ((uint8_t *)to)[i] = (uint8_t)g_rand_int(random);
}

static void fill_offers(GRand *random, struct verbs_offers *offers, uint32_t lines)
{
  offers->lines = lines;
  for (uint32_t i = 0; i < lines; i++) {
    offers->size[i] = (uint8_t)g_rand_int_range(random, 0, VERBS_OFFER_BYTES + 1);
    fill(random, offers->bytes[i], offers->size[i]);
  }
}

static void expect_same_offers(const struct verbs_offers *a, const struct verbs_offers *b)
{
  cr_assert_eq(a->lines, b->lines);
  for (uint32_t i = 0; i < a->lines; i++) {
    cr_assert_eq(a->size[i], b->size[i]);
    cr_assert_eq(memcmp(a->bytes[i], b->bytes[i], a->size[i]), 0);
  }
}

static struct verbs_letter some_letter(GRand *random, enum verbs_letter_kind kind)
{
  struct verbs_letter letter = {.kind = kind, .attempt = 1 + g_rand_int(random)};
  if (kind == VERBS_OPEN)
    fill(random, letter.ticket, TICKET_BYTES);
  if (kind == VERBS_OPEN || kind == VERBS_ACCEPT)
    fill_offers(random, &letter.offers, (uint32_t)g_rand_int_range(random, 1, VERBS_LINES_MAX + 1));
  if (kind == VERBS_ACCEPT)
    letter.rails = (uint32_t)g_rand_int_range(random, 1, VERBS_RAILS_MAX + 1);
  for (uint32_t i = 0; kind == VERBS_ACCEPT && i < letter.offers.lines; i++)
    letter.rail[i] = (uint8_t)g_rand_int_range(random, 0, (gint32)letter.rails);
  if (kind == VERBS_REFUSE)
    memset(letter.why, 'w', (size_t)g_rand_int_range(random, 0, VERBS_WHY_BYTES + 1));
  if (kind == VERBS_NEWS)
    letter.serial = g_rand_int(random);
  if (kind == VERBS_NEWS || kind == VERBS_CLOSE)
    letter.bytes = (uint64_t)g_rand_int(random) << 32 | g_rand_int(random);
  return letter;
}

Test(verbs_letter, what_is_written_is_read)
{
  static const enum verbs_letter_kind kinds[] = {VERBS_OPEN, VERBS_ACCEPT, VERBS_REFUSE, VERBS_NEWS,
                                                 VERBS_CLOSE};
  g_autoptr(GRand) random = g_rand_new_with_seed(11);
  for (uint32_t i = 0; i < 500; i++) {
    struct verbs_letter letter = some_letter(random, kinds[i % G_N_ELEMENTS(kinds)]), read;
    g_autoptr(GByteArray) wire = verbs_letter_pack(&letter);
    cr_assert_leq(wire->len, LETTER_BYTES_MAX);
    cr_assert(verbs_letter_parse(wire->data, wire->len, &read));
    cr_assert_eq(read.kind, letter.kind);
    cr_assert_eq(read.attempt, letter.attempt);
    if (letter.kind == VERBS_OPEN)
      cr_assert_eq(memcmp(read.ticket, letter.ticket, TICKET_BYTES), 0);
    if (letter.kind == VERBS_OPEN || letter.kind == VERBS_ACCEPT)
      expect_same_offers(&read.offers, &letter.offers);
    if (letter.kind == VERBS_ACCEPT) {
      cr_assert_eq(read.rails, letter.rails);
      cr_assert_eq(memcmp(read.rail, letter.rail, letter.offers.lines), 0);
    }
    if (letter.kind == VERBS_REFUSE)
      cr_assert_str_eq(read.why, letter.why);
    if (letter.kind == VERBS_NEWS || letter.kind == VERBS_CLOSE) {
      cr_assert_eq(read.serial, letter.serial);
      cr_assert_eq(read.bytes, letter.bytes);
    }
    for (guint size = 0; size < wire->len; size++)
      cr_assert_not(verbs_letter_parse(wire->data, size, &read), "%u of %u bytes", size, wire->len);
    g_byte_array_append(wire, (const uint8_t *)"", 1);
    cr_assert_not(verbs_letter_parse(wire->data, wire->len, &read));
  }
}

static struct verbs_region some_region(GRand *random, uint32_t rails)
{
  struct verbs_region region = {.model = g_rand_int(random),
                                .add = g_rand_boolean(random),
                                .offset = (uint64_t)g_rand_int(random) << 16,
                                .bytes = 1 + (uint64_t)g_rand_int(random)};
  for (uint32_t r = 0; r < rails && region.add; r++) {
    region.rail[r].address = (uint64_t)g_rand_int(random) << 31;
    region.rail[r].key = g_rand_int(random);
  }
  return region;
}

/* A letter takes entries until it is full, and gives them back in order. */
Test(verbs_letter, regions)
{
  g_autoptr(GRand) random = g_rand_new_with_seed(12);
  for (uint32_t rails = 1; rails <= VERBS_RAILS_MAX; rails++) {
    g_autoptr(GArray) regions = g_array_new(FALSE, FALSE, sizeof(struct verbs_region));
    g_autoptr(GByteArray) wire = verbs_regions_begin(77, 5, rails);
    struct verbs_region region = some_region(random, rails);
    for (; verbs_regions_add(wire, &region); region = some_region(random, rails))
      g_array_append_val(regions, region);
    cr_assert_leq(wire->len, LETTER_BYTES_MAX);
    cr_assert_gt(wire->len + 24 + rails * 12, LETTER_BYTES_MAX);
    verbs_regions_set_serial(wire, 6);
    struct verbs_letter read;
    cr_assert(verbs_letter_parse(wire->data, wire->len, &read));
    cr_assert_eq(read.kind, VERBS_REGIONS);
    cr_assert(read.attempt == 77 && read.serial == 6 && read.rails == rails && read.entries == regions->len);
    for (guint i = 0; i < regions->len; i++) {
      struct verbs_region got, *put = &g_array_index(regions, struct verbs_region, i);
      verbs_letter_region(&read, i, &got);
      cr_assert_eq(memcmp(&got, put, sizeof got), 0, "entry %u", i);
    }
    for (guint size = wire->len - 100; size < wire->len; size++)
      cr_assert_not(verbs_letter_parse(wire->data, size, &read));
  }
}

Test(verbs_letter, malformed_ones_are_refused)
{
  static const struct {
    guint at;
    uint8_t value;
  } wrong[] = {{0, 'X'},     {3, '2'},    {4, 0},       {4, 7},
               {5, 1},       {7, 1},      {16 + 8, 0},  {16 + 8, VERBS_RAILS_MAX + 1},
               {16 + 8, 2},  {16 + 9, 1}, {16 + 10, 2}, {16 + 10, 0},
               {16 + 16, 2}, {16 + 17, 1}};
  struct verbs_letter read;
  struct verbs_region region = {.model = 1, .add = TRUE, .offset = 4096, .bytes = 100};
  g_autoptr(GByteArray) good = verbs_regions_begin(1, 1, 1);
  cr_assert(verbs_regions_add(good, &region));
  cr_assert(verbs_letter_parse(good->data, good->len, &read));
  for (guint i = 0; i < G_N_ELEMENTS(wrong); i++) {
    g_autofree uint8_t *data = g_memdup2(good->data, good->len);
    data[wrong[i].at] = wrong[i].value;
    cr_expect_not(verbs_letter_parse(data, good->len, &read), "%u", i);
  }
  static const struct verbs_region impossible[] = {
      {.add = TRUE, .bytes = 0},
      {.add = TRUE, .offset = 10, .bytes = UINT64_MAX - 9},
      {.add = TRUE, .bytes = 4096, .rail = {{UINT64_MAX - 4095, 1}}},
      {.add = FALSE, .offset = UINT64_MAX, .bytes = 1}};
  for (guint i = 0; i < G_N_ELEMENTS(impossible); i++) {
    g_autoptr(GByteArray) wire = verbs_regions_begin(1, 1, 1);
    cr_assert(verbs_regions_add(wire, &impossible[i]));
    cr_expect_not(verbs_letter_parse(wire->data, wire->len, &read), "region %u", i);
  }
  struct verbs_letter accept = {
      .kind = VERBS_ACCEPT, .attempt = 1, .rails = 2, .offers = {.lines = 2}, .rail = {0, 1}};
  g_autoptr(GByteArray) rails = verbs_letter_pack(&accept);
  cr_expect(verbs_letter_parse(rails->data, rails->len, &read));
  rails->data[rails->len - 1] = 2;
  cr_expect_not(verbs_letter_parse(rails->data, rails->len, &read), "a rail that is none");
  g_autoptr(GByteArray) none = verbs_letter_pack(&(struct verbs_letter){.kind = VERBS_NEWS, .attempt = 0});
  cr_expect_not(verbs_letter_parse(none->data, none->len, &read));
}

/* A reason that a shelf gives goes into a log. */
Test(verbs_letter, reasons_are_printable)
{
  struct verbs_letter letter = {.kind = VERBS_REFUSE, .attempt = 1, .why = "a\nb\x1b[31m\xff"}, read;
  g_autoptr(GByteArray) wire = verbs_letter_pack(&letter);
  cr_assert(verbs_letter_parse(wire->data, wire->len, &read));
  cr_assert_str_eq(read.why, "a?b?[31m?");
}

/* --- offers of RC lines
 * --------------------------------------------------------------------------------------------*/

static struct rc_offer some_offer(GRand *random)
{
  struct rc_offer offer = {.qp = (uint32_t)g_rand_int_range(random, 1, 1 << 24),
                           .psn = (uint32_t)g_rand_int_range(random, 0, 1 << 24),
                           .mtu = 256U << g_rand_int_range(random, 0, 5),
                           .reads_asked = (uint32_t)g_rand_int_range(random, 1, RC_READS_MAX + 1),
                           .reads_served = (uint32_t)g_rand_int_range(random, 1, RC_READS_MAX + 1),
                           .gbit_s = g_rand_int(random),
                           .lid = (uint16_t)g_rand_int_range(random, 1, 65536),
                           .ethernet = g_rand_boolean(random)};
  fill(random, offer.gid, sizeof offer.gid);
  offer.gid[0] |= 1;
  return offer;
}

static gboolean is_taken(const struct rc_offer *offer, struct rc_offer *read)
{
  uint8_t wire[RC_OFFER_BYTES];
  rc_offer_put(offer, wire);
  return rc_offer_parse(wire, sizeof wire, read);
}

Test(verbs_letter, offers_of_queue_pairs)
{
  g_autoptr(GRand) random = g_rand_new_with_seed(13);
  for (uint32_t i = 0; i < 1000; i++) {
    struct rc_offer offer = some_offer(random), read;
    uint8_t wire[RC_OFFER_BYTES], again[RC_OFFER_BYTES];
    rc_offer_put(&offer, wire);
    cr_assert(rc_offer_parse(wire, sizeof wire, &read));
    rc_offer_put(&read, again);
    cr_assert_eq(memcmp(wire, again, sizeof wire), 0);
    cr_assert(read.qp == offer.qp && read.psn == offer.psn && read.mtu == offer.mtu &&
              read.lid == offer.lid && read.ethernet == offer.ethernet &&
              memcmp(read.gid, offer.gid, 16) == 0);
    cr_assert_not(rc_offer_parse(wire, sizeof wire - 1, &read));
  }
  struct rc_offer good = some_offer(random), read;
  struct rc_offer wrong[12];
  for (guint i = 0; i < G_N_ELEMENTS(wrong); i++)
    wrong[i] = good;
  wrong[0].qp = 0;
  wrong[1].qp = 1 << 24;
  wrong[2].psn = 1 << 24;
  wrong[3].mtu = 128;
  wrong[4].mtu = 8192;
  wrong[5].mtu = 1500;
  wrong[6].reads_asked = 0;
  wrong[7].reads_asked = RC_READS_MAX + 1;
  wrong[8].reads_served = 0;
  wrong[9].reads_served = UINT32_MAX;
  wrong[10].ethernet = TRUE;
  memset(wrong[10].gid, 0, 16);
  wrong[11].ethernet = FALSE;
  wrong[11].lid = 0;
  for (guint i = 0; i < G_N_ELEMENTS(wrong); i++)
    cr_expect_not(is_taken(&wrong[i], &read), "offer %u", i);
}

/* Within what both ports can and the queue holds; bytes of the slower rate in a round trip, within bounds. */
Test(verbs_letter, windows)
{
  static const struct {
    struct rc_offer reader, shelf;
    struct verbs_window window;
    uint32_t reads;
  } is[] = {
      {{.reads_asked = 16, .reads_served = 1, .gbit_s = 400},
       {.reads_asked = 1, .reads_served = 16, .gbit_s = 400},
       {32, 5000000},
       16},
      {{.reads_asked = 16, .gbit_s = 400}, {.reads_served = 4, .gbit_s = 200}, {8, 2500000}, 4},
      {{.reads_asked = 128, .gbit_s = 10}, {.reads_served = 128}, {64, 2 << 20}, 128},
      {{.reads_asked = 1, .gbit_s = 1000000}, {.reads_served = 255, .gbit_s = 1000000}, {2, 16 << 20}, 1}};
  for (guint i = 0; i < G_N_ELEMENTS(is); i++) {
    struct verbs_window window;
    rc_window(&is[i].reader, &is[i].shelf, &window);
    cr_expect_eq(window.reads, is[i].window.reads, "%u", i);
    cr_expect_eq(window.bytes, is[i].window.bytes, "%u: %u", i, (unsigned)window.bytes);
    cr_expect_eq(rc_reads(&is[i].reader, &is[i].shelf), is[i].reads, "%u", i);
  }
}
