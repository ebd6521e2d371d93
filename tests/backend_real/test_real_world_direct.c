/* Loads straight into GPU memory: no copy, and a computation once its group and those before it are there. */
#include <criterion/criterion.h>

#include "world_lab.h"

static const struct world_lab_options direct = {.direct = TRUE};

Test(real_world_direct, loads_that_land_in_gpu_memory_bring_the_right_bytes_in_any_order)
{
  for (uint32_t seed = 1; seed <= ROUNDS / 2; seed++) {
    struct world_lab lab;
    struct real_usage usage;
    world_lab_open(&lab, seed, &direct);
    world_lab_load(&lab);
    cr_expect(lab.status[TAG_FETCH] == OP_DONE && lab.landed == lab.plan->groups, "seed %u", seed);
    for (uint32_t g = 0; g < lab.plan->groups; g++)
      cr_expect_eq(lab.status[TAG_COMPUTE + g], OP_DONE, "seed %u, group %u", seed, g);
    cr_expect_null(real_world_error(lab.rw), "seed %u: a wrong byte", seed);
    real_world_usage(lab.rw, &usage);
    cr_expect_eq(usage.pcie_bytes, lab.plan->total_bytes, "seed %u", seed);
    world_lab_close(&lab);
  }
}

/* The groups that are told to be there were computed, and no other was. */
static void expect_landed(const struct world_lab *lab, uint32_t seed)
{
  gboolean whole = lab->status[TAG_FETCH] == OP_DONE;
  cr_expect_eq(whole, lab->landed == lab->plan->groups, "seed %u", seed);
  for (uint32_t g = 0; g < lab->plan->groups; g++)
    cr_expect_eq(lab->status[TAG_COMPUTE + g], g < lab->landed ? OP_DONE : OP_FAILED,
                 "seed %u: group %u of %u", seed, g, lab->landed);
  cr_expect_null(real_world_error(lab->rw), "seed %u: a wrong byte", seed);
}

Test(real_world_direct, failed_reads_into_gpu_memory_leave_the_groups_before_them)
{
  guint failed = 0, partly = 0;
  for (uint32_t seed = 1; seed <= ROUNDS / 2; seed++) {
    struct world_lab lab;
    world_lab_open(&lab, seed, &direct);
    lab.fails = TRUE;
    world_lab_load(&lab);
    failed += lab.status[TAG_FETCH] != OP_DONE;
    partly += lab.landed > 0 && lab.landed < lab.plan->groups;
    cr_expect_eq(lab.lost > 0, lab.status[TAG_FETCH] != OP_DONE, "seed %u", seed);
    expect_landed(&lab, seed);
    world_lab_close(&lab);
  }
  cr_expect(failed > ROUNDS / 8 && partly > 3, "%u failed, %u of them in the middle", failed, partly);
}

Test(real_world_direct, a_cancelled_fetch_into_gpu_memory_ends_when_its_reads_have)
{
  for (uint32_t seed = 1; seed <= ROUNDS / 2; seed++) {
    struct world_lab lab;
    world_lab_open(&lab, seed, &direct);
    loop_timer(lab.loop, loop_now(lab.loop) + 100000 + g_rand_int(lab.rand) % 500000, world_lab_cancel, &lab,
               0);
    world_lab_load(&lab);
    cr_expect_neq(lab.status[TAG_FETCH], OP_FAILED, "seed %u", seed);
    cr_expect_eq(the_reader->asked->len, 0, "seed %u: reads are still under way", seed);
    expect_landed(&lab, seed);
    world_lab_close(&lab);
  }
}

/* The transport's threads write what the device's then read. */
Test(real_world_direct, tcp_writes_into_the_host_device)
{
  static const struct world_lab_options over_tcp = {.direct = TRUE, .tcp = TRUE};
  for (uint32_t seed = 1; seed <= 10; seed++) {
    struct world_lab lab;
    world_lab_open(&lab, seed, &over_tcp);
    world_lab_load(&lab);
    expect_landed(&lab, seed);
    cr_expect_eq(lab.status[TAG_FETCH], OP_DONE, "seed %u", seed);
    world_lab_close(&lab);
  }
}
