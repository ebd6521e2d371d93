/* load = 0.6 is 60% of what ideal can do, whichever way a trace's rows get their models and their times. */
#include "lab.h"

#include <criterion/criterion.h>

#define LOAD 0.6
/* Whole copies come within half a copy (0.5%) of it; which models are drawn makes the rest. */
#define TOLERANCE 0.02

#define ROWS 2000 /* one every 50 ms */

/* Functions f0, f1, … each with half the rows of the one before (map = hash, zipf), or names of the models.
 */
static void write_trace(const struct lab *lab, gboolean models)
{
  static const char *const names[] = {"a", "b-4", "b", "c-1", "a-0"};
  g_autoptr(GString) text = g_string_new("arrival_s,model,input_tokens,output_tokens,service_s\n");
  for (int i = 0; i < ROWS; i++) {
    int function = __builtin_ctz((unsigned)i + 1);
    g_string_append_printf(text, "%d.%02d,", i / 20, i % 20 * 5);
    if (models)
      g_string_append(text, names[i % 5]);
    else
      g_string_append_printf(text, "f%d", function);
    g_string_append_printf(text, ",%d,%d,%s\n", i % 11 * 100, i % 7 * 10, i % 3 == 0 ? "" : "0.012");
  }
  lab_write(lab, "t.csv", text->str);
}

/* 10 ms, and tokens that cost: on average 5 ms and 3 ms more for a request of the trace. */
static void write_token_profile(const struct lab *lab)
{
  lab_write(lab, "c.csv",
            "# model: lab\n# warm_latency_ms: 10\n# input_us_per_token: 10\n# output_us_per_token: 100\n"
            "layer,kind,param_bytes,compute_us\nl0,Linear,10000000,2000\nl1,Linear,10000000,3000\n"
            "l2,Linear,10000000,5000\n");
}

static void expect_load(struct lab *lab, const char *what, const char *set, const char *more)
{
  g_autoptr(LabResult) result = lab_run(
      lab, "ideal", "models.a=3", "models.b=6", "models.c=2", "workload.kind=trace", "workload.trace=t.csv",
      "workload.duration_s=0", "workload.load=0.6", "cluster.gpus_per_server=32", set, more, NULL);
  cr_expect_float_eq(result->figures.gpu_utilization, LOAD, LOAD * TOLERANCE, "%s: %g", what,
                     result->figures.gpu_utilization);
}

Test(load, is_part_of_ideals_capacity_for_every_mapping)
{
  g_autoptr(Lab) lab = lab_new();
  write_token_profile(lab);
  write_trace(lab, FALSE);
  expect_load(lab, "zipf", "workload.map=zipf", "workload.zipf=0.9");
  expect_load(lab, "steep zipf", "workload.map=zipf", "workload.zipf=2");
  expect_load(lab, "in turn", "workload.map=zipf", "workload.select=loop");
  expect_load(lab, "hash", "workload.map=hash", "workload.zipf=0.9");
  expect_load(lab, "service times as traced", "workload.map=hash", "workload.service=trace");
  expect_load(lab, "first rows", "workload.map=hash", "workload.limit=500");
  expect_load(lab, "faster", "workload.map=hash", "workload.speedup=3");
  expect_load(lab, "two servers", "workload.map=zipf", "cluster.gpu_servers=2");
  write_trace(lab, TRUE);
  expect_load(lab, "names", "workload.map=name", "workload.zipf=0.9");
  expect_load(lab, "names and service times", "workload.map=name", "workload.service=trace");
}

/* A GPU twice as slow has half the capacity: ideal keeps both busy, so a load near 1 is served in the time
 * that it takes, and one above it is not. */
Test(load, counts_slow_gpus_for_less)
{
  g_autoptr(Lab) lab = lab_new();
  static const char slow[] = "[hardware]\ngpu = lab\ngpu_memory_gb = 16\nhost_memory_gb = 256\n"
                             "nic_gbit_s = 80\npcie_gbyte_s = 12\ncompute_scale = 3\n";
  lab_write(lab, "slow.ini", slow);
  write_trace(lab, FALSE);
  const char *loads[] = {"workload.load=0.95", "workload.load=1.1"};
  for (int i = 0; i < 2; i++) {
    g_autoptr(LabResult) result = lab_run(
        lab, "ideal", "models.a=3", "workload.kind=trace", "workload.trace=t.csv", "workload.duration_s=0",
        "cluster.gpus_per_server=4", "cluster.gpu_servers=1*hw.ini;1*slow.ini", loads[i], NULL);
    double late_s = result->figures.duration_s - result->figures.window_s;
    cr_expect(i == 0 ? late_s < 1 : late_s > 5, "%s: the last answer came %g s late", loads[i], late_s);
  }
}
