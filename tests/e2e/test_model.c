/* `model show`: what the program prints is the prediction of the core, and bad input is refused in one line.
 */
#include <criterion/criterion.h>
#include <yajl/yajl_tree.h>

#include "program.h"

/* latency_ms of the first source of `model show MODEL --grouping G --source S --json`. */
static double shown_latency(const char *model, const char *grouping, const char *source, double *bound_ms)
{
  g_autoptr(Folder) folder = folder_new();
  g_autoptr(ProgramOutcome) got = program_run(folder, "model", "show", model, "--hardware", "h200",
                                              "--grouping", grouping, "--source", source, "--json", NULL);
  cr_assert_eq(got->status, 0, "%s", got->err);
  yajl_val root = yajl_tree_parse(got->out, NULL, 0);
  cr_assert_not_null(root);
  yajl_val sources = yajl_tree_get(root, (const char *[]){"sources", NULL}, yajl_t_array);
  cr_assert(sources && YAJL_GET_ARRAY(sources)->len == 1);
  yajl_val first = YAJL_GET_ARRAY(sources)->values[0];
  yajl_val latency = yajl_tree_get(first, (const char *[]){"latency_ms", NULL}, yajl_t_number);
  yajl_val bound = yajl_tree_get(first, (const char *[]){"bound_ms", NULL}, yajl_t_number);
  yajl_val groups = yajl_tree_get(first, (const char *[]){"groups", NULL}, yajl_t_array);
  cr_assert(latency && bound && groups && YAJL_GET_ARRAY(groups)->len > 0);
  yajl_val last = YAJL_GET_ARRAY(groups)->values[YAJL_GET_ARRAY(groups)->len - 1];
  yajl_val end = yajl_tree_get(last, (const char *[]){"compute_ms", NULL}, yajl_t_number);
  cr_assert_eq(YAJL_GET_DOUBLE(end), YAJL_GET_DOUBLE(latency)); /* the last group's compute ends the load */
  double result = YAJL_GET_DOUBLE(latency);
  *bound_ms = YAJL_GET_DOUBLE(bound);
  yajl_tree_free(root);
  return result;
}

Test(model_show, optimal_is_between_its_bound_and_every_other_grouping)
{
  const char *const sources[] = {"host", "remote"};
  const char *const others[] = {"per-layer", "per-app", "count:8", "fixed:16777216", "fixed:1000000"};
  for (size_t s = 0; s < G_N_ELEMENTS(sources); s++) {
    double bound, any;
    double optimal = shown_latency("bert_base", "optimal", sources[s], &bound);
    cr_assert_geq(optimal, bound);
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
      cr_assert_leq(optimal, shown_latency("bert_base", others[i], sources[s], &any), "%s %s", sources[s],
                    others[i]);
  }
}

Test(model_show, table_names_both_sources_by_default)
{
  g_autoptr(Folder) folder = folder_new();
  g_autoptr(ProgramOutcome) got = program_run(folder, "model", "show", "resnet152", NULL);
  cr_assert_eq(got->status, 0, "%s", got->err);
  cr_assert(strstr(got->out, "host cache") && strstr(got->out, "memory pool") &&
            strstr(got->out, "predicted latency"));
  cr_assert_str_eq(got->err, "");
}

Test(model_show, takes_a_profile_of_ones_own)
{
  g_autoptr(Folder) folder = folder_new();
  folder_write(folder, "two.csv",
               "# warm_latency_ms: "
               "3\nlayer,kind,param_bytes,compute_us\na,Linear,1000000,1000\nb,Linear,2000000,2000\n");
  folder_write(folder, "plain.ini",
               "[hardware]\ngpu = x\nnic_gbit_s = 8\nmemory_nic_gbit_s = 8\npcie_gbyte_s = 1\n"
               "control_us = 0\nnet_stream_us = 0\nnet_group_us = 0\npcie_transfer_us = 0\n"
               "group_sync_us = 0\nlaunch_us = 0\n");
  g_autoptr(ProgramOutcome) got =
      program_run(folder, "model", "show", "two.csv", "--hardware", "plain.ini", NULL);
  cr_assert_eq(got->status, 0, "%s", got->err);
  /* At 1 GB/s everywhere: 1 + 2 ms up, then 2 ms of compute; from the pool 1 + 2 + 2 (last PCIe) + 2. */
  cr_assert(strstr(got->out, "from the host cache: 2 groups, predicted latency 5.000 ms"), "%s", got->out);
  cr_assert(strstr(got->out, "from the memory pool: 2 groups, predicted latency 7.000 ms"), "%s", got->out);
}

Test(model_show, bad_input_is_refused_in_one_line)
{
  static const struct {
    const char *argument[5];
    const char *expected;
  } cases[] = {
      {{NULL}, "PROFILE"},
      {{"resnet151", NULL}, "resnet151"},
      {{"none.csv", NULL}, "none.csv"},
      {{"resnet152", "--grouping", "count:0", NULL}, "count:"},
      {{"resnet152", "--grouping", "best", NULL}, "best"},
      {{"resnet152", "--hardware", "h300", NULL}, "h300"},
      {{"resnet152", "--memory-hardware", "h300", NULL}, "h300"},
      {{"resnet152", "--memory-servers", "0", NULL}, "--memory-servers"},
      {{"resnet152", "--memory-servers", "many", NULL}, "many"},
      {{"resnet152", "--source", "disk", NULL}, "disk"},
      {{"resnet152", "bert_base", NULL}, "PROFILE"},
  };
  g_autoptr(Folder) folder = folder_new();
  for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
    const char *const *a = cases[i].argument;
    g_autoptr(ProgramOutcome) got =
        program_run(folder, "model", "show", a[0], a[0] ? a[1] : NULL, a[0] && a[1] ? a[2] : NULL, NULL);
    expect_refused(got, cases[i].expected, NULL);
  }
  g_autoptr(ProgramOutcome) got =
      program_run(folder, "model", "show", "resnet152", "--source", "host", "--path", "gpudirect", NULL);
  expect_refused(got, "--path gpudirect", "--source host", NULL);
}
