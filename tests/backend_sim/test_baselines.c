/* No baseline is slow by construction: with its costs at zero it equals the bound. And what holds for every
 * system: the same input gives the same bytes, and no request is lost however many there are. */
#include "lab.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *const all_systems[] = {"ideal", "ideal-shared", "distmind",     "pipeswitch",
                                          "mps",   "ray",          "serverlessllm"};

#define FREE_RAY                                                                                             \
  "cluster.ray_proxy_us=0", "cluster.ray_tensor_us=0", "cluster.pageable_gbyte_s=0",                         \
      "cluster.pageable_to_host_gbyte_s=0", "balancing.policy=least_loaded"

static void check_same_rows(const struct lab_result *one, const struct lab_result *other)
{
  cr_assert_eq(one->rows->len, other->rows->len);
  for (guint i = 0; i < one->rows->len; i++) {
    const struct request_row *a = &g_array_index(one->rows, struct request_row, i);
    const struct request_row *b = &g_array_index(other->rows, struct request_row, i);
    cr_assert(a->arrival_ns == b->arrival_ns && a->start_ns == b->start_ns && a->end_ns == b->end_ns &&
                  a->gpu == b->gpu,
              "request %u: starts %ld, ends %ld on GPU %u; %ld, %ld, %u", i, a->start_ns, a->end_ns, a->gpu,
              b->start_ns, b->end_ns, b->gpu);
  }
}

static void check_same_figures(const struct figures *a, const struct figures *b)
{
  cr_expect_eq(a->completed, b->completed);
  cr_expect_eq(a->throughput_rps, b->throughput_rps);
  cr_expect_eq(memcmp(&a->latency_ms, &b->latency_ms, sizeof a->latency_ms), 0,
               "latencies: mean %g and %g ms", a->latency_ms.mean, b->latency_ms.mean);
}

Test(baselines, ray_without_costs_is_ideal)
{
  g_autoptr(Lab) lab = lab_new();
  lab->rows = TRUE;
  const char *const limit[] = {"cluster.gpu_models_max=0", "cluster.gpu_models_max=1",
                               "cluster.gpu_models_max=1"};
  const char *const initial[] = {"experiment.initial=warm", "experiment.initial=warm",
                                 "experiment.initial=cold"};
  const char *const control[] = {"cluster.control_us=0", "cluster.control_us=0", "cluster.control_us=25"};
  for (int i = 0; i < 3; i++) {
    g_autoptr(LabResult) ideal =
        lab_run(lab, "ideal", FREE_RAY, limit[i], initial[i], control[i], "models.a=6", "models.b=6",
                "cluster.gpu_servers=3", "workload.rate_rps=390", "workload.duration_s=40", NULL);
    g_autoptr(LabResult) ray =
        lab_run(lab, "ray", FREE_RAY, limit[i], initial[i], control[i], "models.a=6", "models.b=6",
                "cluster.gpu_servers=3", "workload.rate_rps=390", "workload.duration_s=40", NULL);
    lab_check_conserved(ray, "ray");
    check_same_rows(ideal, ray);
    check_same_figures(&ideal->figures, &ray->figures);
    cr_expect(i == 0 || ray->figures.loads_host > 1000, "ray swapped %lu times only",
              ray->figures.loads_host);
  }
}

#define FREE_MPS                                                                                             \
  "cluster.mps_max_processes=0", "cluster.mps_queue_max=0", "cluster.mps_process_gb=0",                      \
      "cluster.mps_process_start_s=0", "cluster.gpu_memory_gb=1000"

static double saturated(struct lab *lab, const char *system, const char *speedup)
{
  g_autoptr(LabResult) result =
      lab_run(lab, system, FREE_MPS, speedup, "models.a=3", "models.b=3", "cluster.gpu_servers=2",
              "workload.kind=closed", "workload.outstanding=64", "workload.duration_s=60", NULL);
  lab_check_conserved(result, system);
  return result->figures.throughput_rps;
}

Test(baselines, mps_without_costs_reaches_ideal)
{
  g_autoptr(Lab) lab = lab_new();
  double ideal = saturated(lab, "ideal", "cluster.mps_speedup=1"),
         mps = saturated(lab, "mps", "cluster.mps_speedup=1;1;1");
  cr_expect_float_eq(mps, ideal, 0.01 * ideal, "mps %g/s, ideal %g/s", mps, ideal);
  double bound = saturated(lab, "ideal-shared", "cluster.mps_speedup=1;1.5"),
         shared = saturated(lab, "mps", "cluster.mps_speedup=1;1.5");
  cr_expect_float_eq(bound, 1.5 * ideal, 0.01 * bound, "ideal-shared %g/s, ideal %g/s", bound, ideal);
  /* A process runs one request at a time, so that two of one model cannot share: below the bound, and not
   * far. */
  cr_expect(shared <= 1.001 * bound && shared > 0.9 * bound, "mps %g/s, ideal-shared %g/s", shared, bound);
}

Test(baselines, sharing_that_gains_nothing_is_ideal)
{
  g_autoptr(Lab) lab = lab_new();
  lab->rows = TRUE;
  const char *const speedup[] = {"cluster.mps_speedup=1", "cluster.mps_speedup=1;1;1",
                                 "cluster.mps_speedup=1;0.9"};
  g_autoptr(LabResult) ideal = lab_run(lab, "ideal", "models.a=2", "models.b=2", "cluster.gpu_servers=2",
                                       "workload.rate_rps=240", "workload.duration_s=40", NULL);
  for (int i = 0; i < 3; i++) {
    g_autoptr(LabResult) shared =
        lab_run(lab, "ideal-shared", speedup[i], "models.a=2", "models.b=2", "cluster.gpu_servers=2",
                "workload.rate_rps=240", "workload.duration_s=40", NULL);
    check_same_rows(ideal, shared);
    check_same_figures(&ideal->figures, &shared->figures);
  }
}

#define BUSY                                                                                                 \
  "models.a=8", "models.b=8", "cluster.gpu_servers=2", "cluster.gpus_per_server=2",                          \
      "cluster.gpu_models_max=2", "cluster.host_cache_gb=0.3", "cluster.control_us=25",                      \
      "cluster.ssd_copies=2"

Test(baselines, same_input_and_seed_give_the_same_bytes)
{
  g_autoptr(Lab) lab = lab_new();
  for (size_t i = 0; i < G_N_ELEMENTS(all_systems); i++) {
    lab->clock_offset_ns = 0;
    g_autoptr(LabResult) first = lab_run(lab, all_systems[i], BUSY, "workload.rate_rps=300", NULL);
    g_autoptr(LabResult) again = lab_run(lab, all_systems[i], BUSY, "workload.rate_rps=300", NULL);
    g_autoptr(LabResult) other =
        lab_run(lab, all_systems[i], BUSY, "workload.rate_rps=300", "experiment.seed=2", NULL);
    lab->clock_offset_ns = 123456789;
    g_autoptr(LabResult) later = lab_run(lab, all_systems[i], BUSY, "workload.rate_rps=300", NULL);
    lab_check_conserved(first, all_systems[i]);
    lab_check_parts(first, all_systems[i]);
    cr_expect_str_eq(first->json, again->json);
    cr_expect_str_eq(first->json, later->json, "%s depends on its actors' clocks", all_systems[i]);
    cr_expect_str_neq(first->json, other->json, "%s: another seed, the same result", all_systems[i]);
  }
}

Test(baselines, overload_loses_no_request)
{
  g_autoptr(Lab) lab = lab_new();
  lab->rows = TRUE;
  for (size_t i = 0; i < G_N_ELEMENTS(all_systems); i++) {
    g_autoptr(LabResult) both =
        lab_run(lab, all_systems[i], BUSY, "workload.rate_rps=3000", "workload.timeout_s=0.08",
                "workload.max_queue=40", "experiment.initial=cold", "workload.duration_s=8", NULL);
    lab_check_conserved(both, all_systems[i]);
    cr_expect_gt(both->figures.rejected, 0, "%s", all_systems[i]);
    cr_expect_gt(both->figures.completed, 0, "%s", all_systems[i]);
    g_autoptr(LabResult) late = lab_run(lab, all_systems[i], BUSY, "workload.rate_rps=3000",
                                        "workload.timeout_s=0.2", "workload.duration_s=8", NULL);
    lab_check_conserved(late, all_systems[i]);
    cr_expect_gt(late->figures.failed, 0, "%s", all_systems[i]);
    cr_expect_eq(late->figures.rejected, 0, "%s", all_systems[i]);
  }
}

/* A client that is refused at once must not ask again at the very same instant, for ever. */
Test(baselines, refused_clients_let_time_pass)
{
  g_autoptr(Lab) lab = lab_new();
  g_autoptr(LabResult) result =
      lab_run(lab, "ideal", "models.a=1", "workload.kind=closed", "workload.outstanding=10",
              "workload.max_queue=3", "workload.duration_s=2", NULL);
  lab_check_conserved(result, "refused clients");
  cr_expect_gt(result->figures.rejected, 0);
  cr_expect_float_eq(result->figures.throughput_rps, 100, 1);
}
