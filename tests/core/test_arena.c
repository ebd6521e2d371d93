/* Arenas: random takes and gives against a map of who has which page, and the contract by hand. */
#include <criterion/criterion.h>
#include <malloc.h>

#include "core/arena.h"

typedef struct arena Arena;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Arena, arena_free)

#define PAGES   256
#define HOLDERS 40
#define BASE    (3 * (uint64_t)ARENA_ALIGN)

struct pair {
  Arena *arena;
  uint32_t pages;       /* of the arena now */
  uint8_t owner[PAGES]; /* by page: 0 = free, else holder + 1 */
  struct ranges ranges[HOLDERS];
};

static uint32_t pages_of(uint64_t bytes)
{
  return (uint32_t)((bytes + ARENA_ALIGN - 1) / ARENA_ALIGN);
}

static uint32_t pages_free(const struct pair *p)
{
  uint32_t free = 0;
  for (uint32_t i = 0; i < p->pages; i++)
    free += p->owner[i] == 0;
  return free;
}

/* The least number of pieces: one where a free run is long enough, else the longest runs. */
static uint32_t fewest_pieces(const struct pair *p, uint32_t wanted)
{
  uint32_t runs[PAGES] = {0}, count = 0, pieces = 0;
  for (uint32_t i = 0; i < p->pages; i++)
    if (p->owner[i] == 0) {
      count += i == 0 || p->owner[i - 1] != 0;
      runs[count - 1]++;
    }
  for (; wanted > 0; pieces++) {
    uint32_t longest = 0;
    for (uint32_t i = 1; i < count; i++)
      longest = runs[i] > runs[longest] ? i : longest;
    wanted -= MIN(wanted, runs[longest]);
    runs[longest] = 0;
  }
  return pieces;
}

/* Notes the ranges as holder's; none of their pages may be anybody's. */
static void note_taken(struct pair *p, uint32_t holder, uint64_t bytes)
{
  const struct ranges *ranges = &p->ranges[holder];
  uint64_t sum = 0;
  for (uint32_t i = 0; i < ranges->count; i++) {
    const struct range *range = &ranges->range[i];
    cr_assert(range->length > 0 && range->offset % ARENA_ALIGN == 0 && range->offset >= BASE);
    cr_assert(i + 1 == ranges->count || range->length % ARENA_ALIGN == 0);
    sum += range->length;
    for (uint32_t k = 0; k < pages_of(range->length); k++) {
      uint64_t page = (range->offset - BASE) / ARENA_ALIGN + k;
      cr_assert_lt(page, p->pages);
      cr_assert_eq(p->owner[page], 0);
      p->owner[page] = (uint8_t)(holder + 1);
    }
  }
  cr_assert_eq(sum, bytes);
  cr_assert_eq(ranges_bytes(ranges), bytes);
}

static void take(struct pair *p, GRand *rand, uint32_t holder)
{
  static const uint32_t most[] = {1, 3, 30, PAGES};
  uint32_t limit = most[g_rand_int_range(rand, 0, 4)] * ARENA_ALIGN;
  uint64_t bytes = g_rand_int_range(rand, 0, 4) == 0 ? (uint64_t)g_rand_int_range(rand, 0, 5)
                                                     : (uint64_t)g_rand_int_range(rand, 0, (int)limit + 1);
  uint32_t free = pages_free(p), wanted = pages_of(bytes);
  gboolean taken = arena_take(p->arena, bytes, &p->ranges[holder]);
  cr_assert_eq(taken, wanted <= free, "%u pages of %u", wanted, free);
  if (!taken) {
    cr_assert_eq(p->ranges[holder].count, 0);
    return;
  }
  cr_assert_eq(p->ranges[holder].count, fewest_pieces(p, wanted));
  note_taken(p, holder, bytes);
}

static void give(struct pair *p, uint32_t holder)
{
  arena_give(p->arena, &p->ranges[holder]);
  cr_assert_eq(p->ranges[holder].count, 0);
  for (uint32_t i = 0; i < p->pages; i++)
    if (p->owner[i] == holder + 1)
      p->owner[i] = 0;
}

Test(arena, equals_a_map_of_pages)
{
  for (guint32 seed = 1; seed <= 20; seed++) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    struct pair p = {.pages = seed % 2 ? PAGES : PAGES / 4};
    struct ranges beyond = {0};
    p.arena = arena_new(BASE, p.pages * (uint64_t)ARENA_ALIGN + seed % ARENA_ALIGN);
    for (int step = 0; step < 4000; step++) {
      uint32_t holder = (uint32_t)g_rand_int_range(rand, 0, HOLDERS);
      if (p.ranges[holder].count > 0)
        give(&p, holder);
      else
        take(&p, rand, holder);
      if (p.pages < PAGES && g_rand_int_range(rand, 0, 100) == 0) {
        arena_grow(p.arena, ARENA_ALIGN);
        p.pages++;
      }
      cr_assert_not(arena_take(p.arena, pages_free(&p) * (uint64_t)ARENA_ALIGN + 1, &beyond));
      cr_assert_eq(arena_size(p.arena), p.pages * (uint64_t)ARENA_ALIGN);
    }
    for (uint32_t i = 0; i < HOLDERS; i++) {
      arena_give(p.arena, &p.ranges[i]);
      ranges_clear(&p.ranges[i]);
    }
    struct ranges all = {0};
    cr_assert(arena_take(p.arena, arena_size(p.arena), &all));
    cr_assert_eq(all.count, 1); /* neighbours were joined */
    ranges_clear(&all);
    arena_free(p.arena);
  }
}

/* Pieces and splits name the same bytes as a list of every byte's address does. */
Test(arena, pieces_and_splits_keep_every_byte)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(5);
  for (int round = 0; round < 300; round++) {
    struct range range[6];
    uint64_t address[6 * 3 * ARENA_ALIGN / 512], bytes = 0; /* of every 512th byte */
    struct ranges ranges = {0}, tail = {0};
    uint32_t count = (uint32_t)g_rand_int_range(rand, 1, 7);
    for (uint32_t i = 0; i < count; i++) {
      uint64_t length = ARENA_ALIGN * (uint64_t)g_rand_int_range(rand, 1, 4);
      if (i + 1 == count)
        length -= 512 * (uint64_t)g_rand_int_range(rand, 0, 8);
      range[i] = (struct range){.offset = (10 - i) * 16 * (uint64_t)ARENA_ALIGN, .length = length};
      for (uint64_t k = 0; k < length; k += 512)
        address[(bytes + k) / 512] = range[i].offset + k;
      bytes += length;
    }
    ranges = (struct ranges){.range = g_memdup2(range, sizeof range), .count = count, .room = 6};
    uint64_t at = ARENA_ALIGN * (uint64_t)g_rand_int_range(rand, 0, 20);
    ranges_split(&ranges, at, &tail);
    cr_assert_eq(ranges_bytes(&ranges), MIN(at, bytes));
    cr_assert_eq(ranges_bytes(&ranges) + ranges_bytes(&tail), bytes);
    for (uint64_t k = 0; k < bytes; k += 512) {
      uint64_t piece, found = k < at ? ranges_piece(&ranges, k, bytes, &piece)
                                     : ranges_piece(&tail, k - at, bytes, &piece);
      cr_assert_eq(found, address[k / 512]);
      cr_assert(piece > 0 && address[(k + piece - 1) / 512] == found + (piece - 1) / 512 * 512);
    }
    uint64_t piece = 1;
    ranges_piece(&tail, ranges_bytes(&tail), 1, &piece);
    cr_assert_eq(piece, 0);
    ranges_clear(&ranges);
    ranges_clear(&tail);
  }
}

Test(arena, bytes_suffice_for_any_entries_of_a_capacity)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(7);
  for (int round = 0; round < 500; round++) {
    uint64_t capacity = (uint64_t)g_rand_int_range(rand, 0, 200000), left = capacity;
    uint32_t entries = (uint32_t)g_rand_int_range(rand, 1, 12);
    g_autoptr(Arena) arena = arena_new(0, arena_bytes(capacity, entries));
    for (uint32_t i = 0; i < entries; i++) {
      struct ranges place = {0};
      uint64_t bytes =
          i + 1 == entries ? left : (uint64_t)g_rand_int_range(rand, 0, (int)MIN(left, 50000) + 1);
      cr_assert(arena_take(arena, bytes, &place));
      left -= bytes;
      ranges_clear(&place);
    }
  }
  cr_assert_eq(arena_bytes(0, 0), 0);
  cr_assert_eq(arena_bytes(1, 0), ARENA_ALIGN);
  cr_assert_eq(arena_bytes(ARENA_ALIGN, 1), 2 * ARENA_ALIGN);
  cr_assert_eq(arena_bytes(UINT64_MAX, 0), UINT64_MAX - ARENA_ALIGN + 1);
  cr_assert_eq(arena_bytes(5, UINT64_MAX), UINT64_MAX - ARENA_ALIGN + 1);
}

Test(arena, of_the_largest_sizes_does_not_overflow)
{
  g_autoptr(Arena) arena = arena_new(ARENA_ALIGN, UINT64_MAX - 2 * ARENA_ALIGN);
  struct ranges all = {0};
  uint64_t size = arena_size(arena);
  cr_assert_not(arena_take(arena, UINT64_MAX, &all));
  cr_assert_not(arena_take(arena, size + 1, &all));
  cr_assert(arena_take(arena, size, &all));
  cr_assert(all.count == 1 && all.range[0].offset == ARENA_ALIGN && all.range[0].length == size);
  arena_give(arena, &all);
  cr_assert(arena_take(arena, size, &all), "all came back");
  ranges_clear(&all);
}

/* The same things go round: what they need is there after one round. */
Test(arena, in_steady_use_allocates_nothing)
{
#ifndef __SANITIZE_ADDRESS__
  g_autoptr(Arena) arena = arena_new(0, 100 * ARENA_ALIGN);
  struct ranges place[8] = {{0}};
  size_t after_first = 0;
  for (int round = 0; round < 1000; round++) {
    for (uint32_t i = 0; i < 8; i += 2)
      arena_give(arena, &place[i]);
    for (uint32_t i = 0; i < 8; i++)
      if (place[i].count == 0)
        cr_assert(arena_take(arena, (7 + 3 * i) * 1000, &place[i]));
    for (uint32_t i = 1; i < 8; i += 3)
      arena_give(arena, &place[i]);
    if (round == 10)
      after_first = mallinfo2().uordblks;
    cr_assert(round <= 10 || mallinfo2().uordblks == after_first);
  }
  for (uint32_t i = 0; i < 8; i++)
    ranges_clear(&place[i]);
#endif
}
