/* The real world between an actor and its parts: whatever comes in whatever order, every operation ends once,
 * bytes are right on the GPU, and no byte in host memory is overwritten before it was copied. */
#include <criterion/criterion.h>

#include "world_lab.h"

static const struct world_lab_options by_hand = {.direct = FALSE};

Test(real_world, loads_bring_the_right_bytes_in_any_order)
{
  for (uint32_t seed = 1; seed <= ROUNDS; seed++) {
    struct world_lab lab;
    world_lab_open(&lab, seed, &by_hand);
    world_lab_load(&lab);
    cr_expect_eq(lab.status[TAG_FETCH], OP_DONE, "seed %u", seed);
    for (uint32_t g = 0; g < lab.plan->groups; g++)
      cr_expect(lab.status[TAG_COPY + g] == OP_DONE && lab.status[TAG_COMPUTE + g] == OP_DONE,
                "seed %u, group %u", seed, g);
    cr_expect_null(real_world_error(lab.rw), "seed %u: a wrong byte", seed);
    world_lab_close(&lab);
  }
}

static uint32_t group_of(const struct world_lab *lab, const struct asked *read)
{
  uint32_t group = 0;
  while (read->offset >= lab->plan->group_offset[group] + lab->plan->group_bytes[group])
    group++;
  return group;
}

/* A link carries what is asked for in that order: what a load needs first comes first, whichever server has
 * it, and of a group the servers' parts come side by side. */
Test(real_world, reads_are_asked_for_in_the_order_of_need)
{
  guint turns = 0;
  for (uint32_t seed = 1; seed <= ROUNDS; seed++) {
    struct world_lab lab;
    world_lab_open(&lab, seed, &by_hand);
    world_lab_load(&lab);
    guint asked[SERVERS] = {0};
    for (guint i = 0; i < the_reader->first->len; i++) {
      const struct asked *read = &g_array_index(the_reader->first, struct asked, i);
      uint32_t group = group_of(&lab, read);
      for (guint k = i + 1; k < the_reader->first->len; k++) {
        const struct asked *later = &g_array_index(the_reader->first, struct asked, k);
        cr_assert_leq(group, group_of(&lab, later), "seed %u: read %u before read %u", seed, i, k);
        if (later->server == read->server || group_of(&lab, later) > group)
          continue;
        turns++;
        cr_assert_leq(asked[read->server], asked[later->server], "seed %u: read %u out of turn", seed, i);
      }
      asked[read->server]++;
    }
    world_lab_close(&lab);
  }
  cr_expect_gt(turns, ROUNDS, "%u pairs of reads of one group", turns);
}

/* A connection may break though its server lives. */
Test(real_world, a_read_that_failed_has_a_second_try)
{
  for (uint32_t seed = 1; seed <= ROUNDS / 3; seed++) {
    struct world_lab lab;
    world_lab_open(&lab, seed, &by_hand);
    g_autoptr(GHashTable) tried = lab.tried = g_hash_table_new(NULL, NULL);
    world_lab_load(&lab);
    cr_expect_eq(lab.status[TAG_FETCH], OP_DONE, "seed %u", seed);
    cr_expect_eq(lab.lost, 0, "seed %u: its server was given up", seed);
    cr_expect_gt(g_hash_table_size(tried), 0);
    cr_expect_null(real_world_error(lab.rw), "seed %u: a wrong byte", seed);
    world_lab_close(&lab);
  }
}

Test(real_world, failed_reads_end_everything_once_and_tell_the_peer)
{
  guint failed = 0;
  for (uint32_t seed = 1; seed <= ROUNDS; seed++) {
    struct world_lab lab;
    world_lab_open(&lab, seed, &by_hand);
    lab.fails = TRUE;
    world_lab_load(&lab);
    gboolean whole = lab.status[TAG_FETCH] == OP_DONE;
    failed += !whole;
    cr_expect_eq(lab.lost > 0, !whole, "seed %u", seed);
    for (uint32_t g = 0; g < lab.plan->groups; g++)
      if (whole || lab.status[TAG_COMPUTE + g] == OP_DONE)
        cr_expect_eq(lab.status[TAG_COPY + g], OP_DONE, "seed %u: group %u computed but not copied", seed, g);
    cr_expect_null(real_world_error(lab.rw), "seed %u: a wrong byte", seed);
    world_lab_close(&lab);
  }
  cr_expect_gt(failed, ROUNDS / 4);
}

/* Without copies all arrived bytes wait: a stream that has a window goes no further once they are more than
 * it, one without reads the whole model, if the ring has room for it. */
Test(real_world, a_window_holds_back_what_waits_for_copies)
{
  guint held = 0, whole = 0;
  for (uint32_t seed = 1; seed <= 2 * ROUNDS; seed++) {
    struct world_lab lab;
    world_lab_open(&lab, seed, &by_hand);
    uint64_t bytes = catalog_bytes(lab.catalog, 0);
    lab.copies_nothing = TRUE;
    if (lab.ring == bytes) {
      world_lab_load(&lab);
      gboolean ended = lab.ended[TAG_FETCH] > 0;
      cr_expect(ended == (the_reader->received == bytes), "seed %u", seed);
      cr_expect(ended || (lab.window > 0 && the_reader->received > lab.window), "seed %u: it stops too early",
                seed);
      held += !ended;
      whole += ended && lab.window == 0;
    }
    world_lab_close(&lab);
  }
  cr_expect(held > 3 && whole > 3, "%u held back, %u read whole", held, whole);
}

Test(real_world, a_cancelled_fetch_ends_when_its_reads_have)
{
  for (uint32_t seed = 1; seed <= ROUNDS; seed++) {
    struct world_lab lab;
    world_lab_open(&lab, seed, &by_hand);
    loop_timer(lab.loop, loop_now(lab.loop) + 100000 + g_rand_int(lab.rand) % 500000, world_lab_cancel, &lab,
               0);
    world_lab_load(&lab);
    cr_expect_neq(lab.status[TAG_FETCH], OP_FAILED, "seed %u", seed);
    cr_expect_eq(the_reader->asked->len, 0, "seed %u: reads are still under way", seed);
    world_lab_close(&lab);
  }
}

static const char *at_17(const struct device *device, uint32_t gpu)
{
  (void)device;
  cr_assert_eq(gpu, 0);
  return "0000:17:00.0";
}

Test(real_world, the_arena_belongs_to_the_first_gpu)
{
  struct device_ops near = *device_by_name("host", NULL);
  struct world_lab lab;
  near.pci = at_17;
  world_lab_open(&lab, 1, &(struct world_lab_options){.device = &near});
  cr_expect_str_eq(the_reader->config.memory.pci, "0000:17:00.0");
  world_lab_close(&lab);
  world_lab_open(&lab, 1, &(struct world_lab_options){0});
  cr_expect_null(the_reader->config.memory.pci, "the host device is not on PCI");
  world_lab_close(&lab);
}
