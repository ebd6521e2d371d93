/* The verbs transport with peers that lie, letters that are late or nonsense, memory that moves; over the
 * first RDMA device, where there is one (see tests/rxe). */
#include <string.h>

#include "backend_real/transport_verbs_shelf.h"
#include "verbs_lab.h"
#include "verbs_liar.h"

#define MIB (1U << 20)

/* That the lab's reader is at. */
static uint64_t attempt_of(const struct lab *lab)
{
  const struct visitor *visitor = g_hash_table_lookup(lab->shelf->visitors, GUINT_TO_POINTER(LAB_READER));
  cr_assert(visitor && visitor->attempt);
  return visitor->attempt;
}

/* --- liars
 * ---------------------------------------------------------------------------------------------------------*/

VERBS_TEST(transport_verbs, liars_break_their_own_line_alone, 1)
{
  struct lab *lab = verbs_lab_new();
  struct liar *liar = liar_new(lab);
  g_autofree uint8_t *before = g_memdup2(lab->from.base, lab->from.bytes);
  for (uint32_t lie = 0; lie < 6; lie++) {
    cr_assert(liar_open(liar, lie + 1));
    const struct verbs_region *region = liar_region(liar, 1, 0);
    uint64_t address = region->rail[0].address, end = address + region->bytes;
    uint32_t key = region->rail[0].key, bytes = 4096;
    cr_assert(liar_read(liar, address, key, bytes));
    cr_assert_eq(liar->memory.base[0], lab_byte(1, 0));
    memset(liar->memory.base, LAB_BLANK, bytes);
    gboolean done = lie == 0   ? liar_read(liar, address, key ^ 0x55, bytes)
                    : lie == 1 ? liar_read(liar, address, key + 0x100, bytes)
                    : lie == 2 ? liar_read(liar, end - bytes + 1, key, bytes)
                    : lie == 3 ? liar_read(liar, address - 1, key, bytes)
                    : lie == 4 ? liar_read(liar, (uint64_t)(uintptr_t)lab->to.base, key, bytes)
                               : liar_write(liar, address, key, bytes);
    cr_assert_not(done, "lie %u", lie);
    for (uint32_t i = 0; i < bytes; i++)
      cr_assert_eq(liar->memory.base[i], LAB_BLANK);
    verbs_lab_honest(lab, lie);
  }
  cr_assert_eq(memcmp(before, lab->from.base, lab->from.bytes), 0);
  liar_free(liar);
  transport_lab_free(lab);
}

/* Who is expelled reads nothing by the line that it has, and gets no other. */
VERBS_TEST(transport_verbs, expelled_readers_lose_their_lines, 1)
{
  struct lab *lab = verbs_lab_new();
  struct liar *liar = liar_new(lab);
  struct transport_state before, state;
  ops->shelf_state(lab->shelf, &before);
  cr_assert(liar_open(liar, 1));
  struct verbs_region region = *liar_region(liar, 1, 0);
  cr_assert(liar_read(liar, region.rail[0].address, region.rail[0].key, 100));
  ops->shelf_expel(lab->shelf, LIAR);
  cr_assert_not(liar_read(liar, region.rail[0].address, region.rail[0].key, 100));
  cr_assert_not(liar_open(liar, 2));
  cr_assert_eq(liar->answer.kind, VERBS_REFUSE);
  cr_assert_str_eq(liar->answer.why, "it is not admitted");
  ops->shelf_state(lab->shelf, &state);
  cr_assert_eq(state.refused, 1);
  cr_assert_eq(state.connections, before.connections);
  ops->shelf_admit(lab->shelf, LIAR, &liar->secret);
  cr_assert(liar_open(liar, 3));
  cr_assert(liar_read(liar, region.rail[0].address, region.rail[0].key, 100));
  verbs_lab_honest(lab, 0);
  liar_free(liar);
  transport_lab_free(lab);
}

/* What is no longer served is not read, by a key that was good before. */
VERBS_TEST(transport_verbs, old_keys_are_worth_nothing, 1)
{
  struct lab *lab = verbs_lab_new();
  struct liar *liar = liar_new(lab);
  verbs_lab_serve(lab, 2, 8192);
  cr_assert(liar_open(liar, 1));
  struct verbs_region region = *liar_region(liar, 2, 0);
  cr_assert(liar_read(liar, region.rail[0].address, region.rail[0].key, 4096));
  ops->shelf_serve(lab->shelf, 2, 0, 8192, NULL);
  cr_assert_not(liar_read(liar, region.rail[0].address, region.rail[0].key, 4096));
  /* Of a part: the whole's key is good until readers have gone over, and this one never says so. */
  verbs_lab_serve(lab, 2, 8192);
  cr_assert(liar_open(liar, 2));
  region = *liar_region(liar, 2, 0);
  ops->shelf_serve(lab->shelf, 2, 0, 4096, NULL);
  cr_assert(liar_read(liar, region.rail[0].address, region.rail[0].key, 4096));
  gint64 until = g_get_monotonic_time() + 2 * LEAVE_NS / 1000 + 5 * G_USEC_PER_SEC;
  while (liar_read(liar, region.rail[0].address, region.rail[0].key, 4096)) {
    cr_assert_lt(g_get_monotonic_time(), until, "the old registration is never taken back");
    g_usleep(50000);
  }
  verbs_lab_honest(lab, 0);
  liar_free(liar);
  transport_lab_free(lab);
}

/* --- letters
 * -------------------------------------------------------------------------------------------------------*/

static void change_byte(GByteArray *letter, guint at)
{
  letter->data[at] ^= 0x10;
}

/* None of them costs those that read anything. */
VERBS_TEST(transport_verbs, letters_that_are_refused, 1)
{
  struct lab *lab = verbs_lab_new();
  struct liar *liar = liar_new(lab);
  cr_assert(liar_open(liar, 5));
  struct verbs_region region = *liar_region(liar, 1, 0);
  g_autoptr(GByteArray) again = liar_letter(liar, 5), late = liar_letter(liar, 4),
                        next = liar_letter(liar, 6);
  const GByteArray *passed_over[] = {again, late};
  for (guint i = 0; i < G_N_ELEMENTS(passed_over); i++) {
    liar_post(liar, passed_over[i]);
    cr_assert_eq(liar->answer.kind, 0, "letter %u was answered", i);
  }
  change_byte(next, 16 + TICKET_BYTES - 1); /* the ticket's tag */
  liar_post(liar, next);
  cr_assert_eq(liar->answer.kind, VERBS_REFUSE);
  change_byte(next, 16 + TICKET_BYTES - 1);
  change_byte(next, 16 + TICKET_BYTES + 2); /* the offer's first */
  liar_post(liar, next);
  cr_assert_eq(liar->answer.kind, VERBS_REFUSE);
  cr_assert_not(liar_read(liar, region.rail[0].address, region.rail[0].key, 100),
                "its line was given up for it");
  for (guint size = 0; size < next->len; size++)
    ops->shelf_letter(lab->shelf, LIAR, next->data, size);
  ops->shelf_letter(lab->shelf, LIAR + 1, next->data, next->len);
  liar_post(liar, next);
  cr_assert(liar_open(liar, 8));
  verbs_lab_honest(lab, 0);
  liar_free(liar);
  transport_lab_free(lab);
}

static void to_reader(struct lab *lab, GByteArray *letter)
{
  lab->ops->reader_letter(lab->reader, LAB_SHELF, letter->data, letter->len);
  g_byte_array_unref(letter);
}

static GByteArray *forged_regions(uint64_t attempt)
{
  GByteArray *letter = verbs_regions_begin(attempt, 99, 1);
  struct verbs_region region = {.model = 1, .add = TRUE, .bytes = 100000};
  region.rail[0].address = 4096;
  region.rail[0].key = 0x1234;
  verbs_regions_add(letter, &region);
  return letter;
}

/* Letters of others than the present are late; a forged one of the present
 * costs that attempt, and the next one begins with what the shelf says. */
VERBS_TEST(transport_verbs, a_reader_believes_its_present_attempt_alone, 1)
{
  struct lab *lab = verbs_lab_new();
  uint64_t first = attempt_of(lab);
  ops->reader_drop(lab->reader, LAB_SHELF);
  ops->reader_peer(lab->reader, LAB_SHELF, ops->shelf_address(lab->shelf), &lab->secret);
  lab_pump(lab);
  uint64_t now = attempt_of(lab);
  cr_assert_gt(now, first);
  to_reader(lab, forged_regions(first));
  to_reader(lab, forged_regions(now + 1));
  to_reader(lab,
            verbs_letter_pack(&(struct verbs_letter){.kind = VERBS_REFUSE, .attempt = first, .why = "late"}));
  to_reader(lab, verbs_letter_pack(&(struct verbs_letter){.kind = VERBS_CLOSE, .attempt = now}));
  verbs_lab_honest(lab, 0);
  GByteArray *cut_short = forged_regions(now);
  g_byte_array_set_size(cut_short, cut_short->len - 1);
  to_reader(lab, cut_short);
  verbs_lab_honest(lab, 1);
  to_reader(lab, forged_regions(now));
  lab_read(lab, 1, 0, 0, 100000, 2);
  lab_wait(lab, 3);
  cr_assert_eq(lab_end(lab, 2), LAB_FAILED);
  verbs_lab_honest(lab, 3);
  /* Given up after it broke, too, it leaves no line behind at the shelf. */
  to_reader(lab, forged_regions(attempt_of(lab)));
  lab_read(lab, 1, 0, 0, 100000, 4);
  lab_wait(lab, 5);
  ops->reader_drop(lab->reader, LAB_SHELF);
  lab_pump(lab);
  struct transport_state state;
  ops->shelf_state(lab->shelf, &state);
  cr_assert_eq(state.connections, 0);
  transport_lab_free(lab);
}

/* --- what is served
 * ------------------------------------------------------------------------------------------------*/

/* More regions than go into a letter, and reads that lie in hundreds of them. */
VERBS_TEST(transport_verbs, many_regions, 1)
{
  enum { PIECES = 2500 };
  struct lab *lab = transport_lab_new(ops, 2 * PIECES * 4096 + MIB, 4 * MIB, NULL);
  struct ranges place = lab_serve(lab, 7, 1ULL << 40, PIECES * 4096ULL, 4096);
  cr_assert_eq(place.count, PIECES);
  for (uint32_t i = 0; i < 4; i++)
    lab_read(lab, 7, (1ULL << 40) + i * 2900000 + i, (uint64_t)i * MIB, MIB - i, i);
  lab_wait(lab, 4);
  cr_assert_eq(lab->good, 4);
  for (uint32_t i = 0; i < 4; i++)
    cr_assert(lab_has(lab, 7, (1ULL << 40) + i * 2900000 + i, (uint64_t)i * MIB, MIB - i));
  /* To a reader that comes later they are told too. */
  ops->reader_drop(lab->reader, LAB_SHELF);
  ops->reader_peer(lab->reader, LAB_SHELF, ops->shelf_address(lab->shelf), &lab->secret);
  lab_read(lab, 7, (1ULL << 40) + (PIECES - 200) * 4096ULL, 0, 200 * 4096, 4);
  lab_wait(lab, 5);
  cr_assert_eq(lab->good, 5);
  cr_assert(lab_has(lab, 7, (1ULL << 40) + (PIECES - 200) * 4096ULL, 0, 200 * 4096));
  g_free(place.range);
  transport_lab_free(lab);
}

/* Parts of a model end, one after the other, while what is left is read: none of these reads fails, and the
 * shelf does not wait for its readers for long. */
VERBS_TEST(transport_verbs, the_rest_is_read_while_parts_end, 1)
{
  enum { PARTS = 6, PART = 256 * 1024, READS = 4 };
  struct lab *lab = transport_lab_new(ops, 8 * MIB, (PARTS + 1) * READS * PART, NULL);
  verbs_lab_serve(lab, 1, PARTS * PART);
  uint32_t asked = 0;
  for (uint32_t part = 0; part < PARTS; part++) {
    for (uint32_t i = 0; i < READS; i++, asked++)
      lab_read(lab, 1, (PARTS - 1) * PART, (uint64_t)asked * PART, PART, asked);
    if (part + 1 < PARTS)
      ops->shelf_serve(lab->shelf, 1, (uint64_t)part * PART, PART, NULL);
    lab_pump(lab);
  }
  lab_wait(lab, asked);
  cr_assert_eq(lab->good, asked);
  for (uint32_t i = 0; i < asked; i++)
    cr_assert(lab_has(lab, 1, (PARTS - 1) * PART, (uint64_t)i * PART, PART));
  lab_read(lab, 1, (PARTS - 1) * PART, 0, 1, asked); /* its news go with the next read */
  lab_wait(lab, asked + 1);
  lab_pump(lab);
  g_mutex_lock(&lab->shelf->lock);
  cr_expect_null(lab->shelf->leaving);
  cr_expect_eq(spans_count(lab->shelf->regions), 1);
  g_mutex_unlock(&lab->shelf->lock);
  transport_lab_free(lab);
}

/* A read that came before the shelf's letter waits for it. */
VERBS_TEST(transport_verbs, reads_wait_for_their_region, 1)
{
  struct lab *lab = verbs_lab_new();
  lab_read(lab, 9, 0, 0, 5000, 0);
  struct ranges place = lab_serve(lab, 9, 0, 5000, 4096);
  lab_wait(lab, 1);
  cr_assert_eq(lab_end(lab, 0), LAB_GOOD);
  cr_assert(lab_has(lab, 9, 0, 0, 5000));
  lab_read(lab, 10, 0, 0, 5000, 1);
  lab_wait(lab, 2);
  cr_assert_eq(lab_end(lab, 1), LAB_FAILED);
  g_free(place.range);
  transport_lab_free(lab);
}

/* Reads, and meanwhile all that can happen to what they read: each ends once, and what ended well is right.
 */
static void happen(struct lab *lab, const uint64_t place[], uint32_t model, uint32_t bytes)
{
  const struct transport_ops *ops = lab->ops;
  struct range whole = {place[model], bytes};
  uint32_t part = (uint32_t)g_rand_int_range(lab->random, 1, (gint32)(bytes / ARENA_ALIGN)) * ARENA_ALIGN;
  switch (g_rand_int_range(lab->random, 0, 5)) {
  case 0:
    ops->shelf_serve(lab->shelf, model, 0, bytes, NULL);
    break;
  case 1:
    ops->shelf_serve(lab->shelf, model, part, bytes - part, NULL);
    break;
  case 2:
    ops->shelf_serve(lab->shelf, model, 0, bytes, &(struct ranges){.range = &whole, .count = 1});
    break;
  case 3:
    ops->shelf_expel(lab->shelf, LAB_READER);
    ops->shelf_admit(lab->shelf, LAB_READER, &lab->secret);
    break;
  default:
    ops->reader_drop(lab->reader, LAB_SHELF);
    ops->reader_peer(lab->reader, LAB_SHELF, ops->shelf_address(lab->shelf), &lab->secret);
  }
}

VERBS_TEST(transport_verbs, reads_in_a_restless_pool, 1)
{
  enum { MODELS = 6, BYTES = 40 * ARENA_ALIGN, READS = 600, READ = 32 * 1024 };
  struct lab *lab = transport_lab_new(ops, 8 * MIB, READS * READ, NULL);
  struct {
    uint32_t model, offset, bytes;
  } read[READS];
  uint64_t place[MODELS];
  for (uint32_t m = 0; m < MODELS; m++) {
    place[m] = lab->used;
    verbs_lab_serve(lab, m, BYTES);
  }
  for (uint32_t i = 0; i < READS; i++) {
    read[i].model = (uint32_t)g_rand_int_range(lab->random, 0, MODELS);
    read[i].bytes = (uint32_t)g_rand_int_range(lab->random, 1, READ + 1);
    read[i].offset = (uint32_t)g_rand_int_range(lab->random, 0, BYTES - (gint32)read[i].bytes + 1);
    lab_read(lab, read[i].model, read[i].offset, (uint64_t)i * READ, read[i].bytes, i);
    if (i % 12 != 11)
      continue;
    g_usleep((gulong)g_rand_int_range(lab->random, 0, 50000)); /* some of them are through */
    happen(lab, place, (uint32_t)g_rand_int_range(lab->random, 0, MODELS), BYTES);
  }
  lab_wait(lab, READS);
  for (uint32_t i = 0; i < READS; i++)
    if (lab_end(lab, i) == LAB_GOOD)
      cr_assert(lab_has(lab, read[i].model, read[i].offset, (uint64_t)i * READ, read[i].bytes), "read %u", i);
  cr_log_info("%u of %u reads ended well", lab->good, READS);
  cr_expect_gt(lab->good, 0);
  transport_lab_free(lab);
}
