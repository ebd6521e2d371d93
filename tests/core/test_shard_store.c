/* The shard store against a memory of real bytes: random plans come and go; every byte that is held keeps its
 * value where its place says, and nothing is kept or let go that should not be. */
#include <criterion/criterion.h>

#include "core/shard_store.h"

#define MODELS 3
#define IMAGE  40000 /* bytes of each */
#define PAGES  60

struct world {
  struct shard_store *store;
  uint8_t memory[PAGES * ARENA_ALIGN];
  gboolean here[MODELS][IMAGE]; /* as told by what was added and let go */
};

static uint8_t value(uint32_t model, uint64_t offset)
{
  return (uint8_t)(offset * 31 + (offset >> 8) * 17 + model * 101);
}

/* Ordered pieces without overlap, at times only bytes apart. */
static GArray *draw_pieces(GRand *rand)
{
  static const int gaps[] = {3, 5000, 20000}, lengths[] = {10, 6000, 30000};
  GArray *pieces = g_array_new(FALSE, FALSE, sizeof(struct piece));
  int gap = gaps[g_rand_int_range(rand, 0, 3)], length = lengths[g_rand_int_range(rand, 0, 3)];
  uint64_t at = 0;
  while (pieces->len < 12) {
    at += (uint64_t)g_rand_int_range(rand, pieces->len ? 1 : 0, gap);
    struct piece piece = {.offset = at, .length = (uint64_t)g_rand_int_range(rand, 1, length)};
    if (piece.offset + piece.length > IMAGE)
      break;
    g_array_append_val(pieces, piece);
    at += piece.length;
  }
  return pieces;
}

static gboolean within(const GArray *pieces, uint64_t offset)
{
  for (guint i = 0; i < pieces->len; i++) {
    const struct piece *p = &g_array_index(pieces, struct piece, i);
    if (offset >= p->offset && offset - p->offset < p->length)
      return TRUE;
  }
  return FALSE;
}

static const struct piece *data(const GArray *pieces)
{
  return (const struct piece *)(const void *)pieces->data;
}

static void on_gone(void *context, uint32_t model, struct piece piece)
{
  struct world *w = context;
  for (uint64_t i = 0; i < piece.length; i++) {
    cr_assert(w->here[model][piece.offset + i]);
    w->here[model][piece.offset + i] = FALSE;
  }
}

/* All shards of all models: what is here reads right, no page is two shards', the sum is what is held. */
static void expect_sound(struct world *w)
{
  gboolean taken[PAGES] = {FALSE};
  uint64_t held = 0;
  for (uint32_t m = 0; m < MODELS; m++) {
    uint32_t count;
    uint64_t end = 0, here = 0;
    const struct shard *shard = shard_store_shards(w->store, m, &count);
    for (uint32_t i = 0; i < count; end = shard[i].piece.offset + shard[i].piece.length, i++) {
      cr_assert(shard[i].piece.length > 0 && shard[i].piece.offset >= end && shard[i].skip < ARENA_ALIGN);
      cr_assert_geq(ranges_bytes(&shard[i].place), shard[i].skip + shard[i].piece.length);
      cr_assert_lt(ranges_bytes(&shard[i].place), shard[i].skip + shard[i].piece.length + ARENA_ALIGN);
      held += shard[i].piece.length;
      for (uint32_t k = 0; k < shard[i].place.count; k++)
        for (uint64_t at = 0; at < shard[i].place.range[k].length; at += ARENA_ALIGN) {
          uint64_t page = (shard[i].place.range[k].offset + at) / ARENA_ALIGN;
          cr_assert(page < PAGES && !taken[page]);
          taken[page] = TRUE;
        }
      for (uint64_t k = 0, length; shard[i].here && k < shard[i].piece.length; k += length) {
        uint64_t at = ranges_piece(&shard[i].place, shard[i].skip + k, 7, &length);
        length = MIN(length, shard[i].piece.length - k);
        for (uint64_t b = 0; b < length; b++, here++) {
          cr_assert_eq(w->memory[at + b], value(m, shard[i].piece.offset + k + b));
          cr_assert(w->here[m][shard[i].piece.offset + k + b]);
        }
      }
    }
    for (uint64_t b = 0; b < IMAGE; b++)
      here -= w->here[m][b];
    cr_assert_eq(here, 0);
  }
  cr_assert_eq(held, shard_store_held(w->store));
}

static void arrive(struct world *w, uint32_t model, struct shard *shard)
{
  for (uint64_t k = 0, length; k < shard->piece.length; k += length) {
    uint64_t at = ranges_piece(&shard->place, k, shard->piece.length - k, &length);
    for (uint64_t b = 0; b < length; b++) {
      w->memory[at + b] = value(model, shard->piece.offset + k + b);
      w->here[model][shard->piece.offset + k + b] = TRUE;
    }
  }
  shard->here = TRUE;
}

/* Adds what is missing of pieces; some of it does not arrive. */
static void add(struct world *w, GRand *rand, uint32_t model, const GArray *pieces)
{
  g_autoptr(GArray) missing = g_array_new(FALSE, FALSE, sizeof(struct piece));
  shard_store_missing(w->store, model, data(pieces), pieces->len, missing);
  for (uint64_t b = 0; b < IMAGE; b++)
    cr_assert_eq(within(missing, b), within(pieces, b) && !w->here[model][b]);
  for (guint i = 0; i < missing->len; i++) {
    struct piece piece = g_array_index(missing, struct piece, i);
    struct shard *shard = shard_store_add(w->store, model, piece);
    if (!shard)
      continue; /* full */
    cr_assert(shard == shard_store_find(w->store, model, piece.offset) && !shard->here);
    if (g_rand_int_range(rand, 0, 4))
      arrive(w, model, shard);
  }
}

/* What is kept beside the wanted shares a page with wanted bytes before it and after it: a gap below a page.
 */
static void expect_trimmed(const struct world *w, uint32_t model, const GArray *wanted,
                           const gboolean before[IMAGE])
{
  uint64_t kept = 0;
  for (uint64_t b = 0; b < IMAGE; b++) {
    gboolean want = within(wanted, b);
    if (want)
      cr_assert_eq(w->here[model][b], before[b]);
    kept = w->here[model][b] && !want ? kept + 1 : 0;
    cr_assert_lt(kept, ARENA_ALIGN);
    if (kept > 0)
      cr_assert(b > 0 && w->here[model][b - 1] && b + 1 < IMAGE && w->here[model][b + 1]);
  }
}

Test(shard_store, keeps_every_byte_in_its_place)
{
  struct world *w = g_new(struct world, 1);
  for (guint32 seed = 1; seed <= 6; seed++) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    memset(w, 0, sizeof *w);
    w->store = shard_store_new(MODELS, sizeof w->memory / (seed % 2 ? 1 : 2));
    for (int step = 0; step < 250; step++) {
      uint32_t model = (uint32_t)g_rand_int_range(rand, 0, MODELS);
      g_autoptr(GArray) pieces = draw_pieces(rand);
      if (g_rand_boolean(rand)) {
        shard_store_drop_coming(w->store, model);
        add(w, rand, model, pieces);
      } else {
        gboolean before[IMAGE];
        memcpy(before, w->here[model], sizeof before);
        shard_store_trim(w->store, model, data(pieces), pieces->len, on_gone, w);
        expect_trimmed(w, model, pieces, before);
      }
      expect_sound(w);
    }
    for (uint32_t m = 0; m < MODELS; m++) {
      shard_store_drop_coming(w->store, m);
      shard_store_trim(w->store, m, NULL, 0, on_gone, w);
    }
    cr_assert_eq(shard_store_held(w->store), 0);
    cr_assert(shard_store_add(w->store, 0, (struct piece){.length = IMAGE})); /* all room came back whole */
    uint32_t count;
    cr_assert_eq(shard_store_shards(w->store, 0, &count)->place.count, 1);
    shard_store_free(w->store);
  }
  g_free(w);
}

Test(shard_store, pieces_are_put_in_order_and_joined)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(3);
  for (int round = 0; round < 2000; round++) {
    g_autoptr(GArray) pieces = g_array_new(FALSE, FALSE, sizeof(struct piece));
    gboolean in[64] = {FALSE};
    for (int i = g_rand_int_range(rand, 0, 8); i > 0; i--) {
      struct piece piece = {.offset = (uint64_t)g_rand_int_range(rand, 0, 50),
                            .length = (uint64_t)g_rand_int_range(rand, 1, 14)};
      g_array_append_val(pieces, piece);
      for (uint64_t b = 0; b < piece.length; b++)
        in[piece.offset + b] = TRUE;
    }
    pieces_merge(pieces);
    for (guint i = 1; i < pieces->len; i++)
      cr_assert_gt(data(pieces)[i].offset, data(pieces)[i - 1].offset + data(pieces)[i - 1].length);
    for (uint64_t b = 0; b < 64; b++)
      cr_assert_eq(within(pieces, b), in[b]);
  }
}
