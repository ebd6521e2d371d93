/* Servers that fail, leave and join, and links and caches that change, in mid-run: the run ends, every
 * request is answered, and the effect shows. */
#include "lab.h"

#include <criterion/criterion.h>
#include <string.h>

#include "core/units.h"

static const char *const all_systems[] = {"ideal", "ideal-shared", "distmind",     "pipeswitch",
                                          "mps",   "ray",          "serverlessllm"};

#define BUSY                                                                                                 \
  "models.a=8", "models.b=8", "cluster.gpu_servers=3", "cluster.gpus_per_server=2",                          \
      "cluster.gpu_models_max=2", "cluster.host_cache_gb=0.2", "cluster.memory_servers=3",                   \
      "cluster.control_us=25", "cluster.ssd_copies=2", "workload.rate_rps=500", "workload.duration_s=10"

/* Completions that ended between two times, in seconds. */
static guint completions(const struct lab_result *result, double from, double to)
{
  guint count = 0;
  for (guint i = 0; i < result->rows->len; i++) {
    const struct request_row *row = &g_array_index(result->rows, struct request_row, i);
    double end = (double)row->end_ns / 1e9;
    count += row->outcome == OUTCOME_COMPLETED && end >= from && end < to;
  }
  return count;
}

Test(members, gpu_servers_come_and_go)
{
  g_autoptr(Lab) lab = lab_new();
  lab->rows = TRUE;
  for (size_t i = 0; i < G_N_ELEMENTS(all_systems); i++) {
    g_autoptr(LabResult) fail = lab_run(lab, all_systems[i], BUSY, "events.x=at 3 fail gpu_server 1", NULL);
    lab_check_conserved(fail, all_systems[i]);
    lab_check_parts(fail, all_systems[i]);
    g_autoptr(LabResult) leave =
        lab_run(lab, all_systems[i], BUSY, "events.x=at 3 remove gpu_server 0", NULL);
    lab_check_conserved(leave, all_systems[i]);
    if (strcmp(all_systems[i], "serverlessllm") != 0) { /* there a model may have lost its last local copy */
      cr_expect_eq(fail->figures.failed, 0, "%s: %lu failed", all_systems[i], fail->figures.failed);
      cr_expect_eq(leave->figures.failed, 0, "%s: %lu failed", all_systems[i], leave->figures.failed);
    }
    for (guint k = 0; k < leave->rows->len; k++) {
      const struct request_row *row = &g_array_index(leave->rows, struct request_row, k);
      cr_assert(row->gpu > 1 || row->dispatch_ns <= 3 * NS_PER_S + 100000, "%s: sent to a server that leaves",
                all_systems[i]);
    }
  }
}

Test(members, the_last_gpu_server_leaves_nobody_waiting)
{
  g_autoptr(Lab) lab = lab_new();
  const char *const events[] = {"events.x=at 2 fail gpu_server 0", "events.x=at 2 remove gpu_server 0"};
  const char *const kinds[] = {"workload.kind=poisson", "workload.kind=closed"};
  for (size_t i = 0; i < G_N_ELEMENTS(all_systems); i++)
    for (int k = 0; k < 4; k++) {
      g_autoptr(LabResult) result =
          lab_run(lab, all_systems[i], "models.a=8", "cluster.gpu_models_max=2", events[k % 2], kinds[k / 2],
                  "workload.rate_rps=200", "workload.outstanding=8", "workload.duration_s=4", NULL);
      lab_check_conserved(result, all_systems[i]);
      cr_expect_gt(result->figures.failed, 0, "%s", all_systems[i]);
    }
}

Test(members, a_model_without_a_copy_fails_and_holds_up_nobody)
{
  g_autoptr(Lab) lab = lab_new();
  lab->rows = TRUE;
  g_autoptr(LabResult) result = lab_run(lab, "serverlessllm", BUSY, "cluster.ssd_copies=1",
                                        "events.x=at 3 fail gpu_server 1", "workload.rate_rps=100", NULL);
  lab_check_conserved(result, "serverlessllm");
  cr_expect_gt(result->figures.failed, 0);
  cr_expect_gt(completions(result, 4, 10), 300);
}

Test(members, more_gpu_servers_serve_more)
{
  g_autoptr(Lab) lab = lab_new();
  lab->rows = TRUE;
  for (size_t i = 0; i < G_N_ELEMENTS(all_systems) - 1; i++) { /* an added server's SSD is empty */
    g_autoptr(LabResult) result =
        lab_run(lab, all_systems[i], BUSY, "workload.kind=closed", "workload.outstanding=64",
                "cluster.gpu_servers=1", "events.x=at 5 add gpu_server 3", NULL);
    lab_check_conserved(result, all_systems[i]);
    guint before = completions(result, 3, 5), after = completions(result, 8, 10);
    cr_expect_gt(after, 2 * before, "%s: %u before, %u after", all_systems[i], before, after);
  }
}

#define COLD_POOL BUSY, "cluster.gpu_models_max=1", "cluster.host_cache_gb=0", "workload.rate_rps=150"

Test(members, memory_servers_fail)
{
  g_autoptr(Lab) lab = lab_new();
  lab->rows = TRUE;
  g_autoptr(LabResult) alone =
      lab_run(lab, "distmind", COLD_POOL, "events.x=at 3 fail memory_server 1", NULL);
  lab_check_conserved(alone, "one copy");
  cr_expect_gt(alone->figures.failed, 0);
  g_autoptr(LabResult) two =
      lab_run(lab, "distmind", COLD_POOL, "pipeline.replicas=2", "events.x=at 3 fail memory_server 1", NULL);
  lab_check_conserved(two, "two copies");
  cr_expect_eq(two->figures.failed, 0, "%lu failed", two->figures.failed);
  cr_expect_gt(two->figures.loads_remote, 300);
  /* The second failure comes when the first one is mended. */
  g_autoptr(LabResult) twice =
      lab_run(lab, "distmind", COLD_POOL, "pipeline.replicas=2", "events.x=at 3 fail memory_server 1",
              "events.y=at 7 fail memory_server 2", NULL);
  lab_check_conserved(twice, "two failures");
  cr_expect_eq(twice->figures.failed, 0, "%lu failed", twice->figures.failed);
}

/* Failures at odd moments, each while loads, computations and moves of shards are under way. */
Test(members, memory_servers_fail_at_any_moment)
{
  g_autoptr(Lab) lab = lab_new();
  lab->rows = TRUE;
  for (int i = 0; i < 24; i++) {
    g_autofree char *fail = g_strdup_printf("events.x=at %.4f fail memory_server %d", 1 + 0.0137 * i, i % 3),
                    *again = g_strdup_printf("events.y=at %.4f %s memory_server %d",
                                             1 + 0.0137 * i + 0.01 * (i % 11), i % 2 ? "remove" : "fail",
                                             (i + 1) % 3),
                    *add = g_strdup_printf("events.z=at %.4f add %s 1", 1.05 + 0.02 * i,
                                           i % 2 ? "memory_server" : "gpu_server"),
                    *replicas = g_strdup_printf("pipeline.replicas=%d", 1 + i % 3),
                    *beat = g_strdup_printf("cluster.heartbeat_ms=%d", 1 + 7 * (i % 4));
    g_autoptr(LabResult) result =
        lab_run(lab, "distmind", COLD_POOL, fail, again, add, replicas, beat, "workload.rate_rps=400",
                "workload.duration_s=3", "cluster.nic_gbit_s=20", NULL);
    lab_check_conserved(result, fail);
  }
}

Test(members, memory_servers_join_and_leave)
{
  g_autoptr(Lab) lab = lab_new();
  lab->rows = TRUE;
  g_autoptr(LabResult) result =
      lab_run(lab, "distmind", COLD_POOL, "events.x=at 2 add memory_server 2",
              "events.y=at 4 remove memory_server 0", "events.z=at 6 remove memory_server 1", NULL);
  lab_check_conserved(result, "join and leave");
  cr_expect_eq(result->figures.failed, 0, "%lu failed", result->figures.failed);
  cr_expect_gt(result->figures.loads_remote, 300);
}

Test(members, a_server_that_joins_learns_who_is_dead)
{
  g_autoptr(Lab) lab = lab_new();
  lab->rows = TRUE;
  g_autoptr(LabResult) result = lab_run(lab, "distmind", COLD_POOL, "events.x=at 2 fail memory_server 1",
                                        "events.y=at 4 add gpu_server 3", NULL);
  lab_check_conserved(result, "joined after a failure");
}

Test(members, links_and_caches_change)
{
  g_autoptr(Lab) lab = lab_new();
  lab->rows = TRUE;
  const char *const links[] = {
      "events.x=at 5 set cluster.nic_gbit_s 1", "events.x=at 5 set cluster.memory_nic_gbit_s 1",
      "events.x=at 5 set cluster.pcie_gbyte_s 0.1", "events.x=at 5 set cluster.host_cache_gb 0"};
  for (int i = 0; i < 4; i++) {
    g_autoptr(LabResult) result = lab_run(
        lab, "distmind", BUSY, "cluster.gpu_models_max=1", "cluster.host_cache_gb=1", "workload.kind=closed",
        "workload.outstanding=32", links[i], i < 2 ? "cluster.host_cache_gb=0" : "cluster.host_cache_gb=1",
        i == 3 ? "cluster.nic_gbit_s=2" : "cluster.nic_gbit_s=80", NULL);
    lab_check_conserved(result, links[i]);
    guint before = completions(result, 2, 5), after = completions(result, 7, 10);
    cr_expect_lt(after, 0.8 * before, "%s: %u before, %u after", links[i], before, after);
    cr_expect_gt(after, 0, "%s", links[i]);
  }
}

/* Training beside inference (MPS) goes on although requests never cease; elsewhere it fills idle GPUs. */
Test(members, training_goes_on)
{
  g_autoptr(Lab) lab = lab_new();
  g_autoptr(LabResult) mps =
      lab_run(lab, "mps", "models.a=2", "workload.rate_rps=50", "workload.duration_s=20", "training.model=a",
              "training.batch_ms=100", NULL);
  lab_check_conserved(mps, "mps");
  cr_expect_gt(mps->figures.training_steps, 80, "%lu steps", mps->figures.training_steps);
}

Test(members, a_job_that_comes_just_after_inference_starts)
{
  g_autoptr(Lab) lab = lab_new();
  lab_write(lab, "jobs.csv", "job_id,submission_time,duration,num_gpu\nx,1.015,2,1\n");
  lab_write(lab, "requests.csv", "arrival_s\n1.0\n");
  g_autofree char *trace = g_build_filename(lab->folder, "requests.csv", NULL);
  g_autofree char *jobs = g_build_filename(lab->folder, "jobs.csv", NULL);
  g_autofree char *requests_set = g_strdup_printf("workload.trace=%s", trace),
                  *jobs_set = g_strdup_printf("training.trace=%s", jobs);
  g_autoptr(LabResult) result =
      lab_run(lab, "ideal", "models.a=1", "workload.kind=trace", requests_set, jobs_set, "training.model=a",
              "training.batch_ms=100", "training.state_gb=1", "workload.duration_s=0", NULL);
  cr_expect_eq(result->figures.training_jobs, 1);
}

Test(members, silence_that_nobody_would_notice_is_refused)
{
  g_autoptr(Lab) lab = lab_new();
  g_autofree char *message = lab_refusal(lab, "ideal", "models.a=1", "cluster.heartbeat_ms=0",
                                         "events.x=at 3 fail gpu_server 0", NULL);
  cr_expect(strstr(message, "heartbeat_ms"), "%s", message);
}

/* A server that was told to leave works off what it has: its GPU time counts until it has. */
Test(members, gpu_time_counts_until_a_server_is_gone)
{
  g_autoptr(Lab) lab = lab_new();
  g_autoptr(LabResult) one =
      lab_run(lab, "ideal", "models.a=1", "workload.kind=closed", "workload.outstanding=50",
              "workload.duration_s=2", "events.x=at 1 remove gpu_server 0", NULL);
  lab_check_conserved(one, "the only server leaves");
  cr_expect_eq(one->figures.completed, 150, "100 by then, and 50 in its queue");
  cr_expect_float_eq(one->figures.gpu_utilization, 1, 1e-9, "%.9f", one->figures.gpu_utilization);
  /* Of two, the one that stays is busy for 2 s; the other until its 25 are done, 1.25 s. */
  g_autoptr(LabResult) two =
      lab_run(lab, "ideal", "models.a=1", "workload.kind=closed", "workload.outstanding=50",
              "cluster.gpu_servers=2", "workload.duration_s=2", "events.x=at 1 remove gpu_server 0", NULL);
  cr_expect_float_eq(two->figures.gpu_utilization, 1, 1e-9, "%.9f", two->figures.gpu_utilization);
  cr_expect_float_eq(two->figures.throughput_rps, (2 + 1.25) / 0.01 / 2, 1, "%g",
                     two->figures.throughput_rps);
  /* One fails at 0.5 s; one comes at 1.5 s, and has its first request when the other's next one is done. */
  g_autoptr(LabResult) three = lab_run(
      lab, "ideal", "models.a=1", "workload.kind=closed", "workload.outstanding=50", "cluster.gpu_servers=2",
      "workload.duration_s=2", "events.x=at 0.5 fail gpu_server 0", "events.y=at 1.5 add gpu_server 1", NULL);
  cr_expect_float_eq(three->figures.gpu_utilization, (2 + 0.5 + 0.49) / (2 + 0.5 + 0.5), 1e-9, "%.9f",
                     three->figures.gpu_utilization);
}

/* The window of a trace ends with its last arrival, though nobody knew beforehand. */
Test(members, a_trace_ends_the_window_with_its_last_arrival)
{
  g_autoptr(Lab) lab = lab_new();
  lab_write(lab, "requests.csv", "arrival_s,model\n0,a-0\n0.005,a-0\n0.03,a-0\n0.042,a-0\n");
  g_autofree char *trace = g_strdup_printf("workload.trace=%s/requests.csv", lab->folder);
  g_autoptr(LabResult) result = lab_run(lab, "ideal", "models.a=1", "workload.kind=trace", trace,
                                        "workload.map=name", "workload.duration_s=0", NULL);
  lab_check_conserved(result, "trace");
  cr_expect_eq(result->figures.window_s, 0.042);
  cr_expect_float_eq(result->figures.throughput_rps, 3 / 0.042, 1e-9, "%g", result->figures.throughput_rps);
  cr_expect_float_eq(result->figures.gpu_utilization, 30.0 / 42, 1e-9, "%g", result->figures.gpu_utilization);
}

/* Set in mid-run as much as at the start: cache and staging of every server must fit its host. */
Test(members, a_cache_that_the_host_cannot_hold_is_refused)
{
  g_autoptr(Lab) lab = lab_new();
  lab_write(
      lab, "small.ini",
      "[hardware]\ngpu = lab\ngpu_memory_gb = 16\nhost_memory_gb = 10\nnic_gbit_s = 80\npcie_gbyte_s = 12\n");
  g_autofree char *little = lab_refusal(lab, "distmind", "models.a=1", "cluster.staging_gb=6",
                                        "events.x=at 3 set cluster.host_cache_gb 250.1", NULL);
  cr_expect(strstr(little, "256.100 GB") && strstr(little, "256.000 GB"), "%s", little);
  g_autofree char *later = lab_refusal(
      lab, "distmind", "models.a=1", "cluster.staging_gb=1", "cluster.host_cache_gb=1",
      "events.x=at 3 set cluster.host_cache_gb 9.1", "events.y=at 2 add gpu_server 1 of small.ini", NULL);
  cr_expect(strstr(later, "10.100 GB"), "%s", later);
  g_autoptr(LabResult) fits = lab_run(lab, "distmind", "models.a=1", "cluster.staging_gb=1",
                                      "cluster.host_cache_gb=1", "events.x=at 3 set cluster.host_cache_gb 9",
                                      "events.y=at 2 add gpu_server 1 of small.ini", NULL);
  lab_check_conserved(fits, "as large as the host");
  cr_expect_eq(fits->figures.host_memory_bytes, 2 * 10000000000);
}
