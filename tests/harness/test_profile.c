/* Profile files, timings of several GPUs, the catalog, and the profiles that ship. */
#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

#include "core/error.h"
#include "harness/experiment_parts.h"
#include "harness/profile_file.h"

#define COLUMNS "layer,kind,param_bytes,compute_us\n"

typedef struct profile Profile; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Profile, profile_free)
typedef struct catalog Catalog;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Catalog, catalog_free)

static struct profile *parse(const char *text, GError **error)
{
  return profile_parse("p.csv", "p", text, strlen(text), error);
}

Test(profile, rows_are_scaled_to_the_warm_latency)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(Profile) profile =
      parse("# model: p\n# warm_latency_ms: 12\n# batch: 8\n# tensors: 9\n# unpickle_ms: 3\n"
            "# first_inference_ms: 20\n# swap_extra_ms: 4\n# estimated: true\n# input_us_per_token: 2\n"
            "# output_us_per_token: 0.5\n" COLUMNS "a,Conv,100,1000\r\nb,ReLU,0,2000\nc,Linear,300,3000",
            &error);
  cr_assert_not_null(profile, "%s", error ? error->message : "");
  cr_expect_eq(profile->layers, 3);
  cr_expect_eq(profile->param_bytes, 400);
  cr_expect_eq(profile->tensors, 9);
  cr_expect_eq(profile->batch, 8);
  cr_expect_eq(profile->input_token_ns, 2000);
  cr_expect_eq(profile->output_token_ns, 500);
  cr_expect_str_eq(profile->layer_names[2], "c");
  const struct profile_timing *timing = &profile->timing[0];
  for (int i = 0; i < 3; i++)
    cr_expect_float_eq(timing->layer_ns[i], 2e6 * (i + 1), 1e-3);
  cr_expect_eq(timing->warm_ns, 12e6);
  cr_expect_eq(timing->unpickle_ns, 3e6);
  cr_expect_eq(timing->first_inference_ns, 20e6);
  cr_expect_eq(timing->swap_extra_ns, 4e6);
  cr_expect(timing->estimated);
}

Test(profile, left_out_values_come_from_the_rows)
{
  g_autoptr(Profile) profile =
      parse("# a note without a key\n" COLUMNS "a,Conv,100,1000\nb,ReLU,0,2000\n", NULL);
  cr_assert_not_null(profile);
  cr_expect_eq(profile->timing[0].warm_ns, 3e6);
  cr_expect_eq(profile->tensors, 1);
  cr_expect_eq(profile->batch, 1);
  cr_expect_not(profile->timing[0].estimated);
}

Test(profile, malformed_files_name_file_and_line)
{
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"", "p.csv: expected the line \"layer,kind,param_bytes,compute_us\", found the end of the file"},
      {"a,Conv,1,1\n",
       "p.csv:1: expected the line \"layer,kind,param_bytes,compute_us\", found \"a,Conv,1,1\""},
      {"# x: y\nlayer,kind,bytes,us\n", "p.csv:2: expected the line"},
      {COLUMNS, "p.csv:1: expected a layer, found none"},
      {COLUMNS "a,Conv,0,1\n", "p.csv:2: expected a layer with parameters, found none"},
      {COLUMNS "a,Conv,1\n", "p.csv:2: expected 4 fields"},
      {COLUMNS "a,Conv,1,1,1\n", "p.csv:2: expected 4 fields"},
      {COLUMNS "a,,1,1\n", "p.csv:2: expected layer,kind,param_bytes,compute_us, found an empty field 2"},
      {COLUMNS "\na,Conv,-1,1\n", "p.csv:3: param_bytes: expected a whole number"},
      {COLUMNS "a,Conv,1.5,1\n", "p.csv:2: param_bytes: expected a whole number"},
      {COLUMNS "a,Conv,99999999999999999999,1\n", "p.csv:2: param_bytes: expected a whole number"},
      {COLUMNS "a,Conv,600000000000000,1\na,Conv,600000000000000,1\n",
       "p.csv:3: expected at most 1e+15 bytes"},
      {COLUMNS "a,Conv,1,600000000000\na,Conv,1,600000000000\n", "p.csv:3: expected at most 1e+12 us"},
      {COLUMNS "a,Conv,1,-1\n", "p.csv:2: compute_us: expected a number"},
      {COLUMNS "a,Conv,1,nan\n", "p.csv:2: compute_us: expected a number"},
      {COLUMNS "a,Conv,1,inf\n", "p.csv:2: compute_us: expected a number"},
      {COLUMNS "a,Conv,1,1e999\n", "p.csv:2: compute_us: expected a number"},
      {"# warm_latency_ms: soon\n" COLUMNS "a,C,1,1\n", "p.csv:1: warm_latency_ms: expected a number"},
      {"# warm_latency_ms: -3\n" COLUMNS "a,C,1,1\n", "p.csv:1: warm_latency_ms: expected a number"},
      {"# batch: 8\n# batch: 8\n" COLUMNS "a,C,1,1\n", "p.csv:2: key \"batch\" was given before"},
      {"# batch: 0\n" COLUMNS "a,C,1,1\n", "p.csv:1: batch: expected a whole number from 1"},
      {"# tensors: many\n" COLUMNS "a,C,1,1\n", "p.csv:1: tensors: expected a whole number"},
      {"# estimated: maybe\n" COLUMNS "a,C,1,1\n", "p.csv:1: estimated: expected false | true"},
      {"# unpickle_ms: x\n" COLUMNS "a,C,1,1\n", "p.csv:1: unpickle_ms: expected a number"},
      {COLUMNS "a\xff,C,1,1\n", "p.csv:2: expected UTF-8 text, found byte 0xff"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Profile) profile = parse(cases[i].text, &error);
    cr_assert_null(profile, "case %zu was accepted", i);
    cr_expect(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
    cr_expect(g_str_has_prefix(error->message, cases[i].message), "case %zu: %s", i, error->message);
  }
}

Test(profile, byte_order_mark_and_carriage_returns_are_no_text)
{
  g_autoptr(Profile) profile = parse("\xef\xbb\xbf# warm_latency_ms: 7\r\n" COLUMNS "a,C,1,1\r\n", NULL);
  cr_assert_not_null(profile);
  cr_expect_eq(profile->timing[0].warm_ns, 7.0 * NS_PER_MS);
}

Test(profile, other_timing_must_be_of_the_same_layers)
{
  g_autofree char *folder = g_dir_make_tmp("profile-XXXXXX", NULL);
  g_autofree char *path = g_build_filename(folder, "p.csv", NULL);
  g_autoptr(Profile) profile = parse(COLUMNS "a,Conv,100,1000\nb,ReLU,0,2000\n", NULL);
  g_autoptr(GError) fewer = NULL, other = NULL;
  g_file_set_contents(path, COLUMNS "a,Conv,100,10\n", -1, NULL);
  cr_expect_not(profile_load_timing(profile, folder, 1, &fewer));
  cr_expect(strstr(fewer->message, "expected the 2 layers"), "%s", fewer->message);
  g_file_set_contents(path, COLUMNS "a,Conv,101,10\nb,ReLU,0,20\n", -1, NULL);
  cr_expect_not(profile_load_timing(profile, folder, 1, &other));
  cr_expect(strstr(other->message, "layer \"a\": expected 100 bytes"), "%s", other->message);
  g_file_set_contents(path, "# estimated: true\n" COLUMNS "a,Conv,100,10\nb,ReLU,0,20\n", -1, NULL);
  cr_assert(profile_load_timing(profile, folder, 1, NULL));
  cr_expect_eq(profile->timing[1].warm_ns, 30e3);
  cr_expect(profile->timing[1].estimated);
  cr_expect_eq(profile->timing[0].warm_ns, 3e6, "the first timing changed");
  g_unlink(path);
  g_rmdir(folder);
}

static struct experiment *experiment_of(const char *text, char **sets)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(Keyfile) keyfile = keyfile_parse("c.ini", text, strlen(text), NULL);
  struct experiment *experiment = experiment_parse(keyfile, "distmind", sets, &error);
  cr_assert_not_null(experiment, "%s", error ? error->message : "");
  return experiment;
}

static const char mixed[] = "[cluster]\ngpu_servers = 2*h200;1*g6;1*p3dn\n[models]\nresnet152 = 3\ngpt2 = 2\n"
                            "[workload]\nrate_rps = 1\n[training]\nmodel = bert_base\nbatch_ms = 10\n";

Test(catalog, has_every_hardware_and_variant)
{
  g_autoptr(Experiment) experiment = experiment_of(mixed, NULL);
  g_autoptr(GError) error = NULL;
  g_autoptr(Catalog) catalog = catalog_load(experiment, &error);
  cr_assert_not_null(catalog, "%s", error ? error->message : "");
  cr_expect_eq(catalog_models(catalog), 5);
  cr_expect_eq(catalog->profiles->len, 3, "two served, one trained");
  int64_t trained;
  cr_expect_eq(catalog_find(catalog, "bert_base", &trained), -1);
  cr_expect_eq(trained, 2);
  const struct profile *resnet = catalog_profile(catalog, 0);
  const double warm_ms[] = {9.5, 46.26, 37.1};
  for (int hw = 0; hw < 3; hw++) {
    double sum = 0;
    for (uint32_t i = 0; i < resnet->layers; i++)
      sum += resnet->timing[hw].layer_ns[i];
    cr_expect_float_eq(resnet->timing[hw].warm_ns / 1e6, warm_ms[hw], 0.01);
    cr_expect_float_eq(sum, resnet->timing[hw].warm_ns, 1);
  }
  cr_expect_not(resnet->timing[0].estimated);
  cr_expect(resnet->timing[1].estimated);
  cr_expect_not(resnet->timing[2].estimated);
  cr_expect(catalog_profile(catalog, 3)->timing[2].estimated, "GPT-2 on a V100 is estimated");
}

Test(catalog, compute_scale_acts_on_every_time)
{
  char *sets[] = {(char *)"cluster.compute_scale=100", NULL};
  g_autoptr(Experiment) experiment = experiment_of(mixed, sets);
  g_autoptr(Catalog) catalog = catalog_load(experiment, NULL);
  cr_assert_not_null(catalog);
  const struct profile_timing *timing = &catalog_profile(catalog, 0)->timing[0];
  cr_expect_float_eq(timing->warm_ns, 950e6, 1);
  cr_expect_eq(timing->first_inference_ns, timing->warm_ns, "a first inference was faster than a warm one");
}

Test(catalog, unknown_profile_is_an_error_at_its_line)
{
  g_autoptr(Experiment) experiment = experiment_of("[models]\nresnet = 3\n[workload]\nrate_rps = 1\n", NULL);
  g_autoptr(GError) error = NULL;
  cr_assert_null(catalog_load(experiment, &error));
  cr_expect(g_str_has_prefix(error->message, "c.ini:2: no profile \"resnet\" in "), "%s", error->message);
  cr_expect(strstr(error->message, "nearest is \"gpt2\"") ||
                strstr(error->message, "nearest is \"resnet152\""),
            "%s", error->message);
}

Test(catalog, shipped_profiles_hold_the_measured_figures)
{
  static const struct {
    const char *name;
    uint64_t bytes;
    uint32_t layers, tensors;
    double h200_ms, v100_ms;
    gboolean v100_estimated;
  } shipped[] = {{"resnet152", 241378168, 364, 932, 9.5, 37.1, FALSE},
                 {"inception_v3", 95476752, 193, 580, 6.2, 40.5, FALSE},
                 {"densenet201", 80973544, 606, 1207, 14.0, 73.06, TRUE},
                 {"bert_base", 437928960, 139, 201, 21.1, 39.3, FALSE},
                 {"gpt2", 497759232, 112, 148, 22.3, 41.54, TRUE}};
  for (gsize i = 0; i < G_N_ELEMENTS(shipped); i++) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Profile) profile =
        profile_load(DM_SOURCE_DIR "/experiments/profiles/h200", shipped[i].name, &error);
    cr_assert_not_null(profile, "%s", error ? error->message : "");
    cr_assert(profile_load_timing(profile, DM_SOURCE_DIR "/experiments/profiles/v100", 1, &error));
    cr_assert(profile_load_timing(profile, DM_SOURCE_DIR "/experiments/profiles/l4", 2, &error));
    cr_expect_eq(profile->param_bytes, shipped[i].bytes, "%s: %" G_GUINT64_FORMAT, shipped[i].name,
                 profile->param_bytes);
    cr_expect_eq(profile->layers, shipped[i].layers, "%s: %u layers", shipped[i].name, profile->layers);
    cr_expect_eq(profile->tensors, shipped[i].tensors);
    cr_expect_eq(profile->batch, 8);
    cr_expect_float_eq(profile->timing[0].warm_ns / 1e6, shipped[i].h200_ms, 1e-9);
    cr_expect_float_eq(profile->timing[1].warm_ns / 1e6, shipped[i].v100_ms, 1e-9);
    cr_expect_not(profile->timing[0].estimated);
    cr_expect_eq(profile->timing[1].estimated, shipped[i].v100_estimated);
    cr_expect(profile->timing[2].estimated);
    for (int hw = 0; hw < 3; hw++) {
      cr_expect_gt(profile->timing[hw].unpickle_ns, 0);
      cr_expect_gt(profile->timing[hw].first_inference_ns, 0);
      cr_expect_gt(profile->timing[hw].swap_extra_ns, 0);
    }
  }
}

Test(catalog, stop_and_go_switches_take_what_was_measured)
{
  /* module.cpu() and module.cuda() on an H200, ms; whole milliseconds, as they were read. */
  static const struct {
    const char *name;
    double cpu_ms, cuda_ms;
  } measured[] = {{"resnet152", 119, 58},
                  {"inception_v3", 102, 35},
                  {"densenet201", 85, 36},
                  {"bert_base", 46, 65},
                  {"gpt2", 50, 83}};
  struct hardware hw;
  cr_assert(hardware_load("h200", NULL, &hw, NULL));
  for (gsize i = 0; i < G_N_ELEMENTS(measured); i++) {
    g_autoptr(Profile) p = profile_load(DM_SOURCE_DIR "/experiments/profiles/h200", measured[i].name, NULL);
    cr_assert_not_null(p);
    double ns = transfer_ns(p->param_bytes, hw.pageable_to_host_bytes_s) +
                transfer_ns(p->param_bytes, hw.pageable_bytes_s) + 2 * p->tensors * hw.ray_tensor_ns +
                p->timing[0].swap_extra_ns;
    cr_expect_float_eq(ns / 1e6, measured[i].cpu_ms + measured[i].cuda_ms, 0.1, "%s: %g ms", measured[i].name,
                       ns / 1e6);
  }
}

Test(catalog, generated_profiles_are_what_the_script_makes)
{
  g_autofree char *python = g_find_program_in_path("python3");
  if (!python)
    cr_skip_test("python3 is not installed");
  char *command[] = {python, (char *)DM_SOURCE_DIR "/scripts/make_profiles.py", (char *)"--check", NULL};
  g_autofree char *complaint = NULL;
  int status = 0;
  cr_assert(g_spawn_sync(NULL, command, NULL, G_SPAWN_DEFAULT, NULL, NULL, NULL, &complaint, &status, NULL));
  cr_expect_eq(status, 0, "%s", complaint);
}
