/* `calibrate`: the files that are written, a tiny run end to end with `validate` after it, and what is
 * refused. */
#include "backend_real/calibrate.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

#include "core/hardware.h"
#include "harness/experiment.h"
#include "harness/hardware_file.h"
#include "harness/profile_file.h"
#include "site.h"

/* --- files
 * ----------------------------------------------------------------------------------------------------*/

static struct calibration calibration_of(const char *folder)
{
  struct calibration c = {.device = device_by_name("host", NULL),
                          .transport = transport_by_name("tcp", NULL),
                          .compute_scale = 0.5,
                          .machine = g_strdup("a machine"),
                          .busy = g_strdup("idle"),
                          .profiles = g_array_new(FALSE, TRUE, sizeof(struct calibrated_profile))};
  g_autofree char *profiles = g_build_filename(folder, "profiles/tiny_gpu", NULL);
  struct calibrated_profile of = {.profile = profile_load(profiles, "tiny", NULL)};
  cr_assert_not_null(of.profile);
  profile_scale(of.profile, 0, of.profile->timing[0].warm_ns * c.compute_scale);
  of.warm_ns = 560e3;
  of.verify_ns = 350e3;
  g_array_append_val(c.profiles, of);
  return c;
}

Test(calibrate, a_hardware_file_has_the_bases_keys_and_the_measured_ones)
{
  g_autoptr(Site) site = site_new();
  struct calibration c = calibration_of(site);
  struct hardware hw;
  g_autofree char *base = g_build_filename(site, "hardware/base.ini", NULL);
  calibration_set(&c, KEY_NIC, 12.34567, "measured: so");
  calibration_set(&c, KEY_NET_STREAM, 0, "measured: nothing");
  g_autofree char *text = calibration_hardware_text(&c, base, NULL);
  cr_assert_not_null(text);
  cr_assert(hardware_parse("here.ini", text, strlen(text), &hw, NULL), "%s", text);
  cr_assert_str_eq(hw.gpu, "tiny_gpu");
  cr_assert_eq(hw.host_memory_bytes, 2 * BYTES_PER_GB);
  cr_assert_float_eq(hw.nic_bytes_s, 12.35e9 / 8, 1);
  cr_assert_eq(hw.control_ns, 3000, "not measured: the base's");
  cr_assert(strstr(text, "# measured: so\nnic_gbit_s = 12.35\n"));
  calibration_clear(&c);
}

Test(calibrate, a_profile_has_the_measured_latency_and_no_layer_faster_than_its_bytes_are_checked)
{
  g_autoptr(Site) site = site_new();
  struct calibration c = calibration_of(site);
  const struct calibrated_profile *of = &g_array_index(c.profiles, struct calibrated_profile, 0);
  g_autofree char *base = g_build_filename(site, "profiles/tiny_gpu/tiny.csv", NULL);
  g_autofree char *text = calibration_profile_text(&c, of, base, NULL);
  struct profile *p = profile_parse("tiny.csv", "tiny", text, strlen(text), NULL);
  cr_assert_not_null(p, "%s", text);
  cr_assert_float_eq(p->timing[0].warm_ns, 560e3 / 0.5, 1, "as it ran at compute_scale 0.5");
  cr_assert_eq(p->layers, 4);
  cr_assert_eq(p->param_bytes, of->profile->param_bytes);
  /* a, b and c as they were (150, 50, 200 us); d's bytes take 4/7 of 350 us to check, more than its 100. */
  cr_assert_float_eq(p->timing[0].layer_ns[3] / p->timing[0].layer_ns[2], 1.0, 1e-3);
  cr_assert_float_eq(p->timing[0].layer_ns[0] / p->timing[0].layer_ns[1], 3.0, 1e-3);
  cr_assert(strstr(text, "# note: stays\n"));
  cr_assert_gt(of->profile->timing[0].swap_extra_ns, 0);
  cr_assert_eq(p->timing[0].swap_extra_ns, 0, "real moves are no framework's");
  g_autofree char *again_path = g_build_filename(site, "again.csv", NULL);
  cr_assert(g_file_set_contents(again_path, text, -1, NULL));
  g_autofree char *again = calibration_profile_text(&c, of, again_path, NULL);
  cr_assert_eq(strstr(strstr(again, "# warm_latency_ms") + 1, "# warm_latency_ms"), NULL, "given twice: %s",
               again);
  profile_free(p);
  calibration_clear(&c);
}

/* --- end to end
 * -------------------------------------------------------------------------------------------------*/

static void check_hardware(const Site *site, struct hardware *hw)
{
  g_autofree char *path = g_build_filename(site, "here.ini", NULL);
  g_autoptr(GError) error = NULL;
  cr_assert(hardware_read(path, hw, &error), "%s", error ? error->message : "");
  cr_assert(hw->nic_bytes_s > 1e7 && hw->nic_bytes_s < 0.4e9, "paced to 2 Gbit/s: %g bytes/s",
            hw->nic_bytes_s);
  cr_assert(hw->pcie_bytes_s > 1e7 && hw->pcie_bytes_s < 1e12, "%g", hw->pcie_bytes_s);
  cr_assert(hw->control_ns > 1e3 && hw->control_ns < 100e6, "%g", hw->control_ns);
  cr_assert(hw->net_stream_ns >= 0 && hw->net_group_ns >= 0 && hw->group_sync_ns >= 0);
}

/* The network alone was measured again. */
static struct hardware check_renewed(const Site *site, const struct hardware *first)
{
  g_autofree char *path = g_build_filename(site, "again.ini", NULL);
  struct hardware again;
  cr_assert(hardware_read(path, &again, NULL));
  cr_expect_eq(again.pcie_bytes_s, first->pcie_bytes_s);
  cr_expect_eq(again.control_ns, first->control_ns);
  cr_expect_eq(again.ssd_bytes_s, first->ssd_bytes_s);
  return again;
}

/* One tiny cluster, calibrated, run and laid beside its simulation: values that make sense, nothing lost; how
 * far they agree is the machine's, and not judged here. */
Test(calibrate, a_tiny_run_end_to_end)
{
  g_autoptr(Site) site = site_new();
  struct hardware hw;
  g_autofree char *ssd = g_build_filename(site, "ssd", NULL);
  cr_assert_eq(g_mkdir(ssd, 0700), 0);
  site_run_good(
      site, "distmind-real",
      "calibrate -o @/here.ini --profiles @/measured --base @/hardware/base.ini --device host --pace 2 "
      "--ssd-folder @/ssd --quiet");
  check_hardware(site, &hw);
  cr_assert(hw.ssd_bytes_s > 1e6 && hw.ssd_bytes_s < 1e12 && hw.ssd_bytes > 1e6, "%g", hw.ssd_bytes_s);
  cr_assert_eq(g_rmdir(ssd), 0, "the file that was measured stays");
  g_autofree char *folder = g_build_filename(site, "measured", NULL);
  struct profile *p = profile_load(folder, "tiny", NULL);
  cr_assert_not_null(p);
  cr_assert_geq(p->timing[0].warm_ns, 1e6, "an inference is never faster than its profile");
  profile_free(p);
  site_refused(site, "distmind-real", "calibrate -o @/here.ini --base @/hardware/base.ini",
               "here.ini: exists already");
  site_run_good(site, "distmind-real",
                "calibrate -o @/again.ini --base @/here.ini --only network --device host --pace 4 --quiet");
  struct hardware again = check_renewed(site, &hw);
  cr_expect_gt(again.nic_bytes_s, 1.5 * hw.nic_bytes_s, "paced to twice as much: %g", again.nic_bytes_s);
  site_run_good(site, "distmind-real",
                "run @/tiny.ini --local --device host --pace 2 --out @/real.db --quiet --set "
                "cluster.hardware=@/here.ini");
  g_autoptr(Spawned) v =
      site_run(site, "distmind-sim", "validate @/real.db --hardware @/here.ini --profiles @/measured --json");
  cr_assert_eq(v->status, 0, "%s", v->err);
  cr_assert(strstr(v->out, "\"load\": \"replayed\""));
  cr_assert_eq(number_after(v->out, "\"processes\": "), 4);
  const char *completed = strstr(v->out, "\"completed\": {");
  cr_assert_not_null(completed, "%s", v->out);
  cr_assert_gt(number_after(completed, "\"real\": "), 20);
  cr_assert_eq(number_after(completed, "\"real\": "), number_after(completed, "\"simulated\": "), "%s",
               v->out);
}
