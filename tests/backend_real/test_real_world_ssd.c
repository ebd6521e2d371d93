/* Loads from files of an SSD: right bytes, and one end for everything where a file is broken. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "safetensors_file.h"
#include "world_lab.h"

#define SSD_ROUNDS 12

static void open_ssd(struct world_lab *lab, uint32_t seed, const char *folder)
{
  static const struct world_lab_options to_host = {.direct = FALSE};
  g_autoptr(GError) error = NULL;
  world_lab_open(lab, seed, &to_host);
  fetch_plan_free(lab->plan);
  placement_free(lab->placement);
  lab->placement = placement_new(SHARDING_PER_APP, lab->grouping, 1, 0);
  lab->plan = fetch_plan_new(lab->placement, lab->grouping);
  lab->config.servers_at_start = lab->config.ssd_copies = 1;
  lab->store = ssd_store_open(folder, &lab->config, 0, lab->images, &error);
  cr_assert_not_null(lab->store, "%s", error ? error->message : "");
  real_world_open_ssd(lab->rw, lab->store);
}

Test(real_world_ssd, loads_bring_the_right_bytes)
{
  g_autoptr(Scratch) folder = scratch_new();
  for (uint32_t seed = 1; seed <= SSD_ROUNDS; seed++) {
    struct world_lab lab;
    struct real_usage usage;
    open_ssd(&lab, seed, folder);
    world_lab_load(&lab);
    cr_expect_eq(lab.status[TAG_FETCH], OP_DONE, "seed %u", seed);
    for (uint32_t g = 0; g < lab.plan->groups; g++)
      cr_expect(lab.status[TAG_COPY + g] == OP_DONE && lab.status[TAG_COMPUTE + g] == OP_DONE,
                "seed %u, group %u", seed, g);
    cr_expect_null(real_world_error(lab.rw), "seed %u: a wrong byte", seed);
    real_world_usage(lab.rw, &usage);
    cr_expect_eq(usage.ssd_bytes, lab.plan->total_bytes, "seed %u", seed);
    cr_expect_eq(usage.net_bytes, 0, "seed %u", seed);
    world_lab_close(&lab);
  }
}

/* The file loses its second half; the fetch is cancelled now and then. */
Test(real_world_ssd, a_broken_file_ends_everything_once)
{
  g_autoptr(Scratch) folder = scratch_new();
  g_autofree char *path = g_build_filename(folder, "gpu-server-0", "drawn-0.dmi", NULL);
  for (uint32_t seed = 1; seed <= SSD_ROUNDS; seed++) {
    struct world_lab lab;
    open_ssd(&lab, seed, folder);
    cr_assert_eq(truncate(path, (off_t)((2 << 20) + catalog_bytes(lab.catalog, 0) / 2)), 0);
    if (seed % 3 == 0)
      loop_timer(lab.loop, loop_now(lab.loop) + 100000, world_lab_cancel, &lab, 0);
    world_lab_load(&lab);
    cr_expect_neq(lab.status[TAG_FETCH], OP_DONE, "seed %u", seed);
    cr_expect(seed % 3 == 0 || lab.status[TAG_FETCH] == OP_FAILED, "seed %u", seed);
    cr_expect_neq(lab.status[TAG_COMPUTE + lab.plan->groups - 1], OP_DONE, "seed %u", seed);
    cr_expect_eq(lab.lost, 0, "seed %u: a memory server was blamed", seed);
    cr_expect_null(real_world_error(lab.rw), "seed %u: a wrong byte", seed);
    world_lab_close(&lab);
  }
}
