/* The verbs transport with peers that lie, letters that are late or nonsense, memory that moves; over the
 * first RDMA device, where there is one (see tests/rxe). */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend_real/transport_verbs.h"
#include "backend_real/transport_verbs_shelf.h"
#include "backend_real/verbs_memory.h"
#include "core/error.h"
#include "verbs_liar.h"

#define MIB (1U << 20)

/* A test that needs RDMA devices, at least so many. */
#define VERBS_TEST(NAME, DEVICES)                                                                            \
  static void NAME(const struct transport_ops *ops);                                                         \
  Test(transport_verbs, NAME)                                                                                \
  {                                                                                                          \
    if (transport_verbs.missing())                                                                           \
      cr_skip_test("%s", transport_verbs.missing());                                                         \
    g_autoptr(GPtrArray) nics = nics_list();                                                                 \
    if (nics->len < (DEVICES))                                                                               \
      cr_skip_test("there are %u RDMA ports, and it takes %u", nics->len, (unsigned)(DEVICES));              \
    NAME(&transport_verbs);                                                                                  \
  }                                                                                                          \
  static void NAME(const struct transport_ops *ops)

/* The honest reader of the lab reads well. */
static void cr_assert_honest_reads(struct lab *lab, uint64_t tag)
{
  memset(lab->to.base, LAB_BLANK, 100000);
  lab_read(lab, 1, 0, 0, 100000, tag);
  lab_wait(lab, lab_ended(lab) + (lab_end(lab, tag) == LAB_PENDING));
  cr_assert_eq(lab_end(lab, tag), LAB_GOOD);
  cr_assert(lab_has(lab, 1, 0, 0, 100000));
}

static struct lab *lab_with_model(const struct transport_ops *ops, const struct transport_options *options)
{
  struct lab *lab = transport_lab_new(ops, 8 * MIB, 8 * MIB, options);
  struct ranges place = lab_serve(lab, 1, 0, 100000, 128 * 1024);
  g_free(place.range);
  return lab;
}

/* One range, at the end of what the lab uses. */
static void serve_in_one(struct lab *lab, uint32_t model, uint64_t bytes)
{
  struct range range = {lab->used, bytes};
  lab->used += (bytes / ARENA_ALIGN + 1) * ARENA_ALIGN;
  cr_assert(lab->used <= lab->from.bytes);
  for (uint64_t i = 0; i < bytes; i++)
    lab->from.base[range.offset + i] = lab_byte(model, i);
  lab->ops->shelf_serve(lab->shelf, model, 0, bytes, &(struct ranges){.range = &range, .count = 1});
  lab_pump(lab);
}

/* That the lab's reader is at. */
static uint64_t attempt_of(const struct lab *lab)
{
  const struct visitor *visitor = g_hash_table_lookup(lab->shelf->visitors, GUINT_TO_POINTER(LAB_READER));
  cr_assert(visitor && visitor->attempt);
  return visitor->attempt;
}

/* --- liars
 * ---------------------------------------------------------------------------------------------------------*/

VERBS_TEST(liars_break_their_own_line_alone, 1)
{
  struct lab *lab = lab_with_model(ops, NULL);
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
    cr_assert_honest_reads(lab, lie);
  }
  cr_assert_eq(memcmp(before, lab->from.base, lab->from.bytes), 0);
  liar_free(liar);
  transport_lab_free(lab);
}

/* Who is expelled reads nothing by the line that it has, and gets no other. */
VERBS_TEST(expelled_readers_lose_their_lines, 1)
{
  struct lab *lab = lab_with_model(ops, NULL);
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
  cr_assert_honest_reads(lab, 0);
  liar_free(liar);
  transport_lab_free(lab);
}

/* What is no longer served is not read, by a key that was good before. */
VERBS_TEST(old_keys_are_worth_nothing, 1)
{
  struct lab *lab = lab_with_model(ops, NULL);
  struct liar *liar = liar_new(lab);
  serve_in_one(lab, 2, 8192);
  cr_assert(liar_open(liar, 1));
  struct verbs_region region = *liar_region(liar, 2, 0);
  cr_assert(liar_read(liar, region.rail[0].address, region.rail[0].key, 4096));
  ops->shelf_serve(lab->shelf, 2, 0, 8192, NULL);
  cr_assert_not(liar_read(liar, region.rail[0].address, region.rail[0].key, 4096));
  /* Of a part: the whole's key is good until readers have gone over, and this one never says so. */
  serve_in_one(lab, 2, 8192);
  cr_assert(liar_open(liar, 2));
  region = *liar_region(liar, 2, 0);
  ops->shelf_serve(lab->shelf, 2, 0, 4096, NULL);
  cr_assert(liar_read(liar, region.rail[0].address, region.rail[0].key, 4096));
  gint64 until = g_get_monotonic_time() + 2 * LEAVE_NS / 1000 + 5 * G_USEC_PER_SEC;
  while (liar_read(liar, region.rail[0].address, region.rail[0].key, 4096)) {
    cr_assert_lt(g_get_monotonic_time(), until, "the old registration is never taken back");
    g_usleep(50000);
  }
  cr_assert_honest_reads(lab, 0);
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
VERBS_TEST(letters_that_are_refused, 1)
{
  struct lab *lab = lab_with_model(ops, NULL);
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
  cr_assert_honest_reads(lab, 0);
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
VERBS_TEST(a_reader_believes_its_present_attempt_alone, 1)
{
  struct lab *lab = lab_with_model(ops, NULL);
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
  cr_assert_honest_reads(lab, 0);
  GByteArray *cut_short = forged_regions(now);
  g_byte_array_set_size(cut_short, cut_short->len - 1);
  to_reader(lab, cut_short);
  cr_assert_honest_reads(lab, 1);
  to_reader(lab, forged_regions(now));
  lab_read(lab, 1, 0, 0, 100000, 2);
  lab_wait(lab, 3);
  cr_assert_eq(lab_end(lab, 2), LAB_FAILED);
  cr_assert_honest_reads(lab, 3);
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
VERBS_TEST(many_regions, 1)
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
VERBS_TEST(the_rest_is_read_while_parts_end, 1)
{
  enum { PARTS = 6, PART = 256 * 1024, READS = 4 };
  struct lab *lab = transport_lab_new(ops, 8 * MIB, (PARTS + 1) * READS * PART, NULL);
  serve_in_one(lab, 1, PARTS * PART);
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
VERBS_TEST(reads_wait_for_their_region, 1)
{
  struct lab *lab = lab_with_model(ops, NULL);
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

VERBS_TEST(reads_in_a_restless_pool, 1)
{
  enum { MODELS = 6, BYTES = 40 * ARENA_ALIGN, READS = 600, READ = 32 * 1024 };
  struct lab *lab = transport_lab_new(ops, 8 * MIB, READS * READ, NULL);
  struct {
    uint32_t model, offset, bytes;
  } read[READS];
  uint64_t place[MODELS];
  for (uint32_t m = 0; m < MODELS; m++) {
    place[m] = lab->used;
    serve_in_one(lab, m, BYTES);
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

/* --- where reads land
 * ----------------------------------------------------------------------------------------------*/

VERBS_TEST(reads_cross_the_chunks_of_an_arena, 1)
{
  const uint64_t chunk = VERBS_CHUNK_BYTES;
  struct lab *lab = transport_lab_new(ops, 4 * MIB, chunk + 2 * MIB, NULL);
  serve_in_one(lab, 1, MIB);
  static const uint32_t before[] = {1, 4096, MIB / 2, MIB - 1};
  for (uint32_t i = 0; i < G_N_ELEMENTS(before); i++) {
    memset(lab->to.base + chunk - MIB, LAB_BLANK, 2 * MIB);
    lab_read(lab, 1, 0, chunk - before[i], MIB, i);
    lab_wait(lab, i + 1);
    cr_assert_eq(lab_end(lab, i), LAB_GOOD);
    cr_assert(lab_has(lab, 1, 0, chunk - before[i], MIB));
    cr_assert(lab_blank(lab, chunk - MIB, MIB - before[i]));
  }
  transport_lab_free(lab);
}

/* GPU memory that has an address is as any other; that which has none takes a driver with dma-buf. */
VERBS_TEST(reads_into_gpu_memory, 1)
{
  struct lab *lab = lab_with_model(ops, NULL);
  struct memory gpu[2] = {{g_malloc0(MIB), MIB}, {g_malloc0(MIB), MIB}};
  struct reader_config config = lab_reader_config(lab, NULL);
  config.gpu_memory = gpu;
  config.gpus = 2;
  ops->reader_free(lab->reader);
  g_autoptr(GError) error = NULL;
  lab->reader = ops->reader_new(&config, &error);
  cr_assert(lab->reader, "%s", error ? error->message : "");
  ops->reader_peer(lab->reader, LAB_SHELF, ops->shelf_address(lab->shelf), &lab->secret);
  lab_pump(lab);
  ops->reader_read(lab->reader, LAB_SHELF, 1, 10, 1, 1000, 5000, 0);
  ops->reader_read(lab->reader, LAB_SHELF, 1, 10, 0, MIB - 4999, 5000, 1);
  ops->reader_read(lab->reader, LAB_SHELF, 1, 10, 2, 0, 5000, 2);
  lab_wait(lab, 3);
  cr_assert_eq(lab_end(lab, 0), LAB_GOOD);
  cr_assert_eq(lab_end(lab, 1), LAB_FAILED);
  cr_assert_eq(lab_end(lab, 2), LAB_FAILED);
  for (uint32_t i = 0; i < 5000; i++)
    cr_assert_eq(gpu[1].base[1000 + i], lab_byte(1, 10 + i));
  cr_assert_eq(gpu[1].base[999] | gpu[1].base[6000] | gpu[0].base[MIB - 1], 0);
  struct memory none = {.base = NULL, .bytes = MIB, .dmabuf = -1};
  config.gpu_memory = &none;
  config.gpus = 1;
  cr_assert_null(ops->reader_new(&config, &error));
  cr_assert(strstr(error->message, "dma-buf"), "%s", error->message);
  transport_lab_free(lab);
  g_free(gpu[0].base);
  g_free(gpu[1].base);
}

/* --- devices
 * -------------------------------------------------------------------------------------------------------*/

/* Each end by the device of its own, and both by both: lines are spread over them. */
VERBS_TEST(several_devices, 2)
{
  g_autoptr(GPtrArray) nics = nics_list();
  const struct nic *a = g_ptr_array_index(nics, 0), *b = g_ptr_array_index(nics, 1);
  g_autofree char *both = g_strdup_printf("%s:%u,%s:%u", a->device, a->port, b->device, b->port);
  const struct transport_options first = {.rdma_device = a->device}, second = {.rdma_device = b->device},
                                 two = {.rdma_device = both, .connections = 3};
  const struct transport_options *ends[][2] = {
      {&first, &second}, {&two, &two}, {&two, &first}, {&first, &two}};
  for (uint32_t i = 0; i < G_N_ELEMENTS(ends); i++) {
    struct lab *lab = lab_new_reader(ops, 8 * MIB, 8 * MIB, ends[i][0]);
    struct transport_state state;
    lab_open_shelf(lab, "127.0.0.1:0", ends[i][1]);
    struct ranges place = lab_serve(lab, 1, 0, 4 * MIB, 128 * 1024);
    for (uint32_t r = 0; r < 4; r++)
      lab_read(lab, 1, (uint64_t)r * MIB, (uint64_t)r * MIB, MIB, r);
    lab_wait(lab, 4);
    cr_assert_eq(lab->good, 4, "ends %u", i);
    cr_assert(lab_has(lab, 1, 0, 0, 4 * MIB));
    ops->reader_state(lab->reader, &state);
    cr_assert_geq(state.connections, 2);
    g_free(place.range);
    transport_lab_free(lab);
  }
}

VERBS_TEST(devices_that_are_not_there, 1)
{
  struct lab *lab = lab_with_model(ops, NULL);
  static const struct transport_options wrong[] = {
      {.rdma_device = "no_such_device"}, {.rdma_device = ""}, {.gid_given = TRUE, .gid_index = 4000}};
  for (uint32_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
    g_autoptr(GError) error = NULL, of_shelf = NULL;
    struct reader_config reader = lab_reader_config(lab, &wrong[i]);
    struct shelf_config shelf = lab_shelf_config(lab, "127.0.0.1:0", &wrong[i]);
    cr_expect_null(ops->reader_new(&reader, &error));
    cr_expect(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT), "%u", i);
    cr_expect_null(ops->shelf_new(&shelf, &of_shelf));
    cr_expect(g_error_matches(of_shelf, DM_ERROR, DM_ERROR_INPUT), "%u", i);
  }
  transport_lab_free(lab);
}

/* --- limits
 * --------------------------------------------------------------------------------------------------------*/

static void run_limited(struct lab *lab)
{
  struct rlimit limit = {65536, 65536};
  struct reader_config reader = lab_reader_config(lab, NULL);
  g_autoptr(GError) error = NULL;
  /* Root is above the limit by a capability that its memory's owner may give up for good. */
  struct {
    uint32_t version;
    int pid;
  } header = {0x20080522, 0};
  struct {
    uint32_t effective, permitted, inheritable;
  } none[2] = {{0}};
  if (syscall(SYS_capset, &header, none) != 0 || setrlimit(RLIMIT_MEMLOCK, &limit) != 0)
    _exit(1);
  if (lab->ops->reader_new(&reader, &error) || !strstr(error->message, "ulimit -l"))
    _exit(2);
  struct shelf_config config = lab_shelf_config(lab, "127.0.0.1:0", NULL);
  struct shelf *shelf = lab->ops->shelf_new(&config, NULL);
  struct range range = {0, 4 * MIB};
  if (!shelf || lab->ops->shelf_failure(shelf))
    _exit(3);
  lab->ops->shelf_serve(shelf, 1, 0, 4 * MIB, &(struct ranges){.range = &range, .count = 1});
  const char *failure = lab->ops->shelf_failure(shelf);
  if (!failure || !strstr(failure, "LimitMEMLOCK"))
    _exit(4);
  lab->ops->shelf_free(shelf);
  _exit(0);
}

/* Where memory must not be locked, whoever opens an end is told what to do about it. */
VERBS_TEST(limits_of_locked_memory, 1)
{
  struct lab lab = {.ops = ops, .remote = -1};
  lab.from = lab.to = (struct memory){g_malloc0(8 * MIB), 8 * MIB};
  int status = 0;
  pid_t child = fork();
  if (child == 0)
    run_limited(&lab);
  cr_assert_eq(waitpid(child, &status, 0), child);
  cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", status);
  g_free(lab.from.base);
}

/* --- death
 * ---------------------------------------------------------------------------------------------------------*/

/* Reads of a process that was killed end soon after. */
VERBS_TEST(a_killed_shelf_is_noticed, 1)
{
  enum { UNDER_WAY = 16 };
  struct lab *lab = lab_new_reader(ops, ARENA_ALIGN, UNDER_WAY * MIB, NULL);
  char address[64];
  pid_t child = lab_fork_shelf(lab, &lab->secret, MIB, address);
  gint64 killed = 0;
  uint32_t asked = 0;
  ops->reader_peer(lab->reader, LAB_SHELF, address, &lab->secret);
  while (lab->failed == 0 && asked < LAB_READS - UNDER_WAY) {
    for (uint32_t until = lab_ended(lab) + UNDER_WAY; asked < until; asked++)
      lab_read(lab, 1, 0, asked % UNDER_WAY * (uint64_t)MIB, MIB, asked);
    lab_wait(lab, asked - UNDER_WAY + 1);
    if (!killed && lab->good >= UNDER_WAY) {
      kill(child, SIGKILL);
      cr_assert_eq(waitpid(child, NULL, 0), child);
      killed = g_get_monotonic_time();
    }
  }
  double seconds = (double)(g_get_monotonic_time() - killed) * 1e-6;
  cr_log_info("noticed %.2f s after, %u reads", seconds, asked);
  cr_expect_gt(lab->failed, 0);
  cr_expect_lt(seconds, 10); /* 0.5 s where nothing is emulated */
  transport_lab_free(lab);
}
