/* Bisection: against a search of all, and the same whatever is known beforehand. */
#include "backend_sim/bisect.h"

#include <criterion/criterion.h>
#include <string.h>

#define MOST 64

struct world {
  gboolean holds[MOST];
  gboolean known[MOST]; /* found out already, or all */
  gboolean asked[MOST];
  guint questions; /* different indexes asked for */
};

static enum verdict answer(void *context, uint32_t index)
{
  struct world *world = context;
  cr_assert_lt(index, MOST);
  world->questions += !world->asked[index];
  world->asked[index] = TRUE;
  if (!world->known[index])
    return VERDICT_UNKNOWN;
  return world->holds[index] ? VERDICT_YES : VERDICT_NO;
}

static void know_all(struct world *world)
{
  for (guint i = 0; i < MOST; i++)
    world->known[i] = TRUE;
}

static guint halvings(uint32_t count)
{
  guint steps = 0;
  for (; count > 0; count /= 2)
    steps++;
  return steps;
}

/* Every threshold of every length: the answer, and no more questions than halvings and neighbours. */
Test(bisect, finds_every_threshold)
{
  for (uint32_t count = 1; count <= MOST; count++)
    for (uint32_t threshold = 0; threshold <= count; threshold++) {
      struct world world = {0};
      know_all(&world);
      for (uint32_t i = threshold; i < count; i++)
        world.holds[i] = TRUE;
      struct bisection b = bisect(count, answer, &world);
      cr_assert(b.done && b.monotone, "%u of %u", threshold, count);
      cr_assert_eq(b.found, threshold < count, "%u of %u", threshold, count);
      if (b.found)
        cr_assert_eq(b.answer, threshold, "%u of %u: %u", threshold, count, b.answer);
      cr_assert_leq(world.questions, halvings(count) + 4, "%u of %u: %u questions", threshold, count,
                    world.questions);
    }
}

static void draw(struct world *world, GRand *random, uint32_t count)
{
  *world = (struct world){0};
  uint32_t threshold = (uint32_t)g_rand_int_range(random, 0, (gint)count + 1);
  for (uint32_t i = 0; i < count; i++)
    world->holds[i] = (i >= threshold) ^ (g_rand_int_range(random, 0, 6) == 0);
}

/* Where a value that holds is followed by one that does not, the answer still holds, its two neighbours below
 * do not, and it is called monotone only if nothing that was asked for says otherwise. */
Test(bisect, is_honest_where_it_is_not_monotone)
{
  GRand *random = g_rand_new_with_seed(20240701);
  guint not_monotone = 0;
  for (guint round = 0; round < 20000; round++) {
    struct world world;
    uint32_t count = (uint32_t)g_rand_int_range(random, 1, MOST + 1);
    draw(&world, random, count);
    know_all(&world);
    struct bisection b = bisect(count, answer, &world);
    cr_assert(b.done);
    gboolean seen_yes = FALSE, inversion = FALSE;
    uint32_t least = count;
    for (uint32_t i = 0; i < count; i++) {
      if (!world.asked[i])
        continue;
      inversion = inversion || (seen_yes && !world.holds[i]);
      seen_yes = seen_yes || world.holds[i];
      least = MIN(least, world.holds[i] ? i : count);
    }
    cr_assert_eq(b.found, least < count);
    cr_assert_eq(b.monotone, !inversion, "round %u", round);
    not_monotone += inversion;
    if (!b.found)
      continue;
    cr_assert_eq(b.answer, least, "round %u: not the least that it met", round);
    for (uint32_t below = 1; below <= 2 && below <= b.answer; below++)
      cr_assert(world.asked[b.answer - below] && !world.holds[b.answer - below]);
    for (uint32_t above = 1; above <= 2 && b.answer + above < count; above++)
      cr_assert(world.asked[b.answer + above]);
  }
  cr_assert_gt(not_monotone, 1000);
  g_rand_free(random);
}

/* Told one value at a time, and with others known beforehand, it comes to the same and asks for the same. */
Test(bisect, does_not_depend_on_what_is_known_beforehand)
{
  GRand *random = g_rand_new_with_seed(7);
  for (guint round = 0; round < 3000; round++) {
    struct world world, whole;
    uint32_t count = (uint32_t)g_rand_int_range(random, 1, MOST + 1);
    draw(&world, random, count);
    whole = world;
    know_all(&whole);
    struct bisection expected = bisect(count, answer, &whole), b;
    for (uint32_t i = 0; i < count; i++)
      world.known[i] = g_rand_int_range(random, 0, 3) == 0;
    while (!(b = bisect(count, answer, &world)).done) {
      cr_assert_not(world.known[b.needed], "it needs what it knows");
      world.known[b.needed] = TRUE;
    }
    cr_assert(b.found == expected.found && b.monotone == expected.monotone);
    cr_assert(!b.found || b.answer == expected.answer);
    cr_assert_eq(memcmp(world.asked, whole.asked, sizeof whole.asked), 0, "round %u: asked for others",
                 round);
  }
  g_rand_free(random);
}

/* Looking ahead: the needed one first, nothing twice, nothing known, and each may really be needed. */
Test(bisect, looks_ahead_at_what_may_be_needed)
{
  GRand *random = g_rand_new_with_seed(8);
  for (guint round = 0; round < 2000; round++) {
    struct world world;
    uint32_t count = (uint32_t)g_rand_int_range(random, 1, MOST + 1), ahead[16];
    draw(&world, random, count);
    for (uint32_t i = 0; i < count; i++)
      world.known[i] = g_rand_int_range(random, 0, 4) == 0;
    struct bisection b = bisect(count, answer, &world);
    uint32_t found = bisect_ahead(count, answer, &world, ahead, G_N_ELEMENTS(ahead));
    cr_assert_eq(found == 0, b.done);
    for (uint32_t i = 0; i < found; i++) {
      cr_assert_lt(ahead[i], count);
      cr_assert_not(world.known[ahead[i]]);
      for (uint32_t other = 0; other < i; other++)
        cr_assert_neq(ahead[other], ahead[i], "twice");
    }
    if (found > 0)
      cr_assert_eq(ahead[0], b.needed);
    if (found > 1) { /* the second is needed if the first holds, or if it does not */
      gboolean needed = FALSE;
      world.known[b.needed] = TRUE;
      for (int holds = 0; holds <= 1; holds++) {
        world.holds[b.needed] = holds;
        struct bisection next = bisect(count, answer, &world);
        needed = needed || (!next.done && next.needed == ahead[1]);
      }
      cr_assert(needed);
    }
  }
  g_rand_free(random);
}

/* With nothing known, seven processes are kept busy by one search of 64: 32, then 16 and 48, then the four
 * quarters. */
Test(bisect, ahead_is_breadth_first)
{
  struct world world = {0};
  uint32_t ahead[7];
  cr_assert_eq(bisect_ahead(63, answer, &world, ahead, 7), 7);
  const uint32_t expected[7] = {31, 47, 15, 55, 39, 23, 7};
  cr_assert_arr_eq(ahead, expected, sizeof expected);
}
