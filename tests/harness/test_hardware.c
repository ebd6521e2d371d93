/* Hardware files: every key, units, defaults, malformed files, and the files that ship. */
#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

#include "core/error.h"
#include "harness/experiment.h"
#include "harness/hardware_file.h"

/* Reads text as a hardware file named mine.ini. */
static gboolean read_text(const char *text, struct hardware *hardware, GError **error)
{
  g_autofree char *folder = g_dir_make_tmp("hardware-XXXXXX", NULL);
  g_autofree char *path = g_build_filename(folder, "mine.ini", NULL);
  cr_assert(g_file_set_contents(path, text, -1, NULL));
  gboolean ok = hardware_load(path, NULL, hardware, error);
  g_unlink(path);
  g_rmdir(folder);
  return ok;
}

Test(hardware, units_are_base_units)
{
  struct hardware hw;
  g_autoptr(GError) error = NULL;
  cr_assert(
      read_text(
          "[hardware]\ngpu = v100\ngpu_memory_gb = 32\nnic_gbit_s = 80\npcie_gbyte_s = 12.5\nssd_gb = 1.5\n"
          "mps_process_start_s = 0.5\nray_proxy_us = 1500\nnet_stream_us = 0.5\ncompute_scale = 2\n"
          "gpus_per_server = 8\nmps_train_share = 0.25\n",
          &hw, &error),
      "%s", error ? error->message : "");
  cr_expect_str_eq(hw.name, "mine");
  cr_expect_str_eq(hw.gpu, "v100");
  cr_expect_eq(hw.gpu_memory_bytes, 32000000000ull);
  cr_expect_eq(hw.nic_bytes_s, 1e10);
  cr_expect_eq(hw.pcie_bytes_s, 12.5e9);
  cr_expect_eq(hw.ssd_bytes, 1500000000ull);
  cr_expect_eq(hw.mps_process_start_ns, 5e8);
  cr_expect_eq(hw.ray_proxy_ns, 1.5e6);
  cr_expect_eq(hw.net_stream_ns, 500);
  cr_expect_eq(hw.compute_scale, 2);
  cr_expect_eq(hw.gpus_per_server, 8);
  cr_expect_eq(hw.mps_train_share, 0.25);
}

Test(hardware, keys_left_out_have_defaults)
{
  struct hardware hw;
  cr_assert(read_text("[hardware]\n", &hw, NULL));
  cr_expect_eq(hw.spine_oversubscription, 1);
  cr_expect_eq(hw.compute_scale, 1);
  cr_expect_eq(hw.gpus_per_pcie_switch, 1);
  cr_expect_eq(hw.nic_bytes_s, 12.5e9);
  cr_expect_eq(hardware_speedup(&hw, 1), 1);
  cr_expect_eq(hardware_speedup(&hw, 50), 1);
  const double overheads[] = {hw.control_ns,       hw.net_stream_ns, hw.net_group_ns,
                              hw.pcie_transfer_ns, hw.group_sync_ns, hw.launch_ns};
  for (gsize i = 0; i < G_N_ELEMENTS(overheads); i++)
    cr_expect_eq(overheads[i], 0);
}

/* Every row must move the value of some field, and each a different one: the table has no row that is read
 * and dropped. */
Test(hardware, every_key_fills_a_field_of_its_own)
{
  struct hardware base;
  cr_assert(read_text("[hardware]\n", &base, NULL));
  guint8 used[sizeof base] = {0};
  for (const struct setting *row = hardware_settings; row->key; row++) {
    struct hardware changed;
    g_autofree char *text = g_strdup_printf("[hardware]\n%s = %s\n", row->key,
                                            g_str_equal(row->key, "gpu")               ? "other"
                                            : g_str_equal(row->key, "mps_train_share") ? "0.123"
                                                                                       : "29");
    cr_assert(read_text(text, &changed, NULL), "%s", row->key);
    const guint8 *a = (const guint8 *)&base, *b = (const guint8 *)&changed;
    int differing = 0;
    for (gsize i = 0; i < sizeof base; i++)
      if (a[i] != b[i]) {
        differing++;
        cr_expect_eq(used[i], 0, "%s shares a byte with another key", row->key);
        used[i] = 1;
      }
    cr_expect_gt(differing, 0, "%s changed nothing", row->key);
  }
}

Test(hardware, speedup_is_given_for_powers_of_two)
{
  struct hardware hw;
  cr_assert(read_text("[hardware]\nmps_speedup = 1; 1.5 ;2.5;3\n", &hw, NULL));
  const double expected[] = {1, 1.5, 2, 2.5, 2.625, 2.75, 2.875, 3, 3};
  for (uint32_t n = 1; n <= G_N_ELEMENTS(expected); n++)
    cr_expect_float_eq(hardware_speedup(&hw, n), expected[n - 1], 1e-12, "%u", n);
}

Test(hardware, malformed_files_name_file_and_line)
{
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"", ":1: expected section [hardware], found none"},
      {"# comment only\n", ":1: expected section [hardware], found none"},
      {"[hardwar]\ngpu = v100\n", ":1: unknown section [hardwar]; nearest is [hardware]"},
      {"[hardware]\n[more]\n", ":2: unknown section [more]"},
      {"[hardware]\ngpu_memory = 3\n", ":2: unknown key \"gpu_memory\"; nearest is \"gpu_memory_gb\""},
      {"[hardware]\nnic_gbit = 3\n", ":2: unknown key \"nic_gbit\"; nearest is \"nic_gbit_s\""},
      {"[hardware]\n\nnic_gbit_s = fast\n",
       ":3: nic_gbit_s: expected a number from 0 to 1e+06, found \"fast\""},
      {"[hardware]\nnic_gbit_s = -1\n", ":2: nic_gbit_s: expected a number"},
      {"[hardware]\nnic_gbit_s = nan\n", ":2: nic_gbit_s: expected a number"},
      {"[hardware]\nnic_gbit_s = inf\n", ":2: nic_gbit_s: expected a number"},
      {"[hardware]\nnic_gbit_s = 1e400\n", ":2: nic_gbit_s: expected a number"},
      {"[hardware]\nnic_gbit_s = 0x10\n", ":2: nic_gbit_s: expected a number"},
      {"[hardware]\nnic_gbit_s = 1,5\n", ":2: nic_gbit_s: expected a number"},
      {"[hardware]\nnic_gbit_s = 10 Gbit\n", ":2: nic_gbit_s: expected a number"},
      {"[hardware]\nnic_gbit_s = 1e\n", ":2: nic_gbit_s: expected a number"},
      {"[hardware]\nnic_gbit_s = 1\nnic_gbit_s = 2\n",
       ":3: key \"nic_gbit_s\" of [hardware] was given before, in line 2"},
      {"[hardware]\ngpus_per_server = 2.5\n",
       ":2: gpus_per_server: expected a whole number from 0 to 64, found \"2.5\""},
      {"[hardware]\ngpus_per_server = 65\n", ":2: gpus_per_server: expected a whole number"},
      {"[hardware]\ngpus_per_server = -1\n", ":2: gpus_per_server: expected a whole number"},
      {"[hardware]\ngpus_per_server = 99999999999999999999\n",
       ":2: gpus_per_server: expected a whole number"},
      {"[hardware]\ngpus_per_pcie_switch = 0\n", ":2: gpus_per_pcie_switch: expected a whole number from 1"},
      {"[hardware]\ncompute_scale = 0\n", ":2: compute_scale: expected a number"},
      {"[hardware]\nspine_oversubscription = 0.5\n", ":2: spine_oversubscription: expected a number from 1"},
      {"[hardware]\nmps_train_share = 1.1\n", ":2: mps_train_share: expected a number from 0 to 1"},
      {"[hardware]\nmps_speedup = 1;;2\n", ":2: mps_speedup: expected a number"},
      {"[hardware]\nmps_speedup = 1;x\n", ":2: mps_speedup: expected a number"},
      {"[hardware]\nmps_speedup = 0\n", ":2: mps_speedup: expected a number"},
      {"[hardware]\nmps_speedup = 1;1;1;1;1;1;1;1\n", ":2: mps_speedup: expected at most 7 numbers"},
      {"[hardware]\ngpu = ../../etc\n", ":2: gpu: expected a name"},
      {"[hardware]\ngpu = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
       ":2: gpu: expected a name"},
      {"[hardware]\nlaunch_us = 1e10\n", ":2: launch_us: expected a number"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    struct hardware hw;
    g_autoptr(GError) error = NULL;
    cr_assert_not(read_text(cases[i].text, &hw, &error), "case %zu was accepted", i);
    cr_expect(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
    g_autofree char *expected = g_strconcat("mine.ini", cases[i].message, NULL);
    cr_expect(strstr(error->message, expected), "case %zu: %s", i, error->message);
  }
}

Test(hardware, unknown_name_is_an_error)
{
  struct hardware hw;
  g_autoptr(GError) error = NULL;
  cr_assert_not(hardware_load("nosuch", NULL, &hw, &error));
  cr_expect(strstr(error->message, "cannot find hardware \"nosuch\""), "%s", error->message);
}

Test(hardware, shipped_files_are_what_they_say)
{
  static const struct {
    const char *name, *gpu;
    uint32_t gpus;
    double gpu_gb, nic_gbit, memory_nic_gbit;
    uint32_t switch_gpus;
  } shipped[] = {{"p3dn", "v100", 8, 32, 100, 100, 2},
                 {"h200", "h200", 8, 141, 3200, 100, 1},
                 {"g6", "l4", 4, 24, 40, 200, 1},
                 {"c5n", "none", 0, 16, 100, 100, 1},
                 {"c6in", "none", 0, 16, 200, 200, 1}};
  for (gsize i = 0; i < G_N_ELEMENTS(shipped); i++) {
    struct hardware hw;
    g_autoptr(GError) error = NULL;
    cr_assert(hardware_load(shipped[i].name, NULL, &hw, &error), "%s", error ? error->message : "");
    cr_expect_str_eq(hw.name, shipped[i].name);
    cr_expect_str_eq(hw.gpu, shipped[i].gpu);
    cr_expect_eq(hw.gpus_per_server, shipped[i].gpus);
    cr_expect_eq(hw.gpu_memory_bytes, (uint64_t)(shipped[i].gpu_gb * 1e9));
    cr_expect_float_eq(hw.nic_bytes_s, shipped[i].nic_gbit * 1.25e8, 1);
    cr_expect_float_eq(hw.memory_nic_bytes_s, shipped[i].memory_nic_gbit * 1.25e8, 1);
    cr_expect_eq(hw.gpus_per_pcie_switch, shipped[i].switch_gpus);
    cr_expect_gt(hw.control_ns, 0);
  }
}

Test(hardware, h200_transfers_follow_the_measured_table)
{
  struct hardware hw;
  cr_assert(hardware_load("h200", NULL, &hw, NULL));
  /* Copies back to back, measured: bytes, microseconds. */
  static const double measured[][2] = {{4096, 2.67},        {65536, 3.89},       {262144, 7.49},
                                       {1048576, 21.76},    {4194304, 78.73},    {16777216, 306.70},
                                       {67108864, 1221.55}, {268435456, 4867.51}};
  for (gsize i = 0; i < G_N_ELEMENTS(measured); i++) {
    double predicted_us =
        (hw.pcie_transfer_ns + transfer_ns((uint64_t)measured[i][0], hw.pcie_bytes_s)) / 1000;
    cr_expect_float_eq(predicted_us / measured[i][1], 1, 0.03, "%g bytes: %g us", measured[i][0],
                       predicted_us);
  }
  cr_expect_float_eq(hardware_speedup(&hw, 2) * 97.8, 186, 1);
  cr_expect_float_eq(hardware_speedup(&hw, 4) * 97.8, 304, 1);
}
