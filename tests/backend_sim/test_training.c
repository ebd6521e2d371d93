/* Training: how long it keeps a request waiting, to the nanosecond; what it may hold; and runs whose jobs can
 * never be done. */
#include "lab.h"
#include "small_world.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#define MB      1000000ULL
#define AT      NS_PER_S
#define STEP_NS 7000000
#define LAYERS  5

static const uint64_t layer_bytes[LAYERS] = {1000, 1000, 1000, 1000, 1000};
static const double layer_ns[LAYERS] = {500000, 100000, 900000, 0, 250000};

/* One GPU that trains from the start; the model that is asked for is the one that is trained. */
static struct small_world *trainer_new(const char *system, uint64_t state_mb, gboolean yield_layer)
{
  struct small_world *w = small_world_new(system);
  small_world_model(w, LAYERS, layer_bytes, layer_ns, 1);
  w->config.train_profile = 0;
  w->config.train_step_ns = STEP_NS;
  w->config.train_state_bytes = state_mb * MB;
  w->config.train_endless = TRUE;
  w->config.yield_layer = yield_layer;
  w->config.train_burst = 10;
  w->config.warm = TRUE;
  return w;
}

static double sum_ns(void)
{
  double sum = 0;
  for (int i = 0; i < LAYERS; i++)
    sum += layer_ns[i];
  return sum;
}

/* From a time within a step to the next point at which the trainer gives way. */
static double to_next_yield(double within, gboolean yield_layer)
{
  double at = 0;
  for (int i = 0; yield_layer && i < LAYERS; i++) {
    at += layer_ns[i] * STEP_NS / sum_ns();
    if (at >= within)
      return at - within;
  }
  return STEP_NS - within;
}

/* The controller waits for as long as a switch costs, two copies of the state (8 GB/s), then the state comes.
 */
static double training_since(uint64_t state_mb)
{
  return 3 * (double)state_mb / 8e3 * 1e9;
}

static void check_yield(const char *system, uint64_t state_mb, gboolean yield_layer, int64_t offset_ns)
{
  struct small_world *w = trainer_new(system, state_mb, yield_layer);
  uint32_t request = small_world_request(w, AT + offset_ns, 0);
  small_world_run(w, 10 * AT);
  double within = fmod((double)(AT + offset_ns) - training_since(state_mb), STEP_NS);
  double waits = to_next_yield(within, yield_layer),
         found = (double)small_world_latency(w, request) - sum_ns();
  cr_expect(fabs(found - waits) <= 2,
            "%s, state of %lu MB: %ld ns after a second it waits %.0f ns, by hand %.1f", system, state_mb,
            offset_ns, found, waits);
  struct usage usage;
  sim_usage(w->sim, &usage);
  double trained = (double)(AT + offset_ns) + waits - training_since(state_mb);
  cr_expect_eq(usage.training_steps, (uint64_t)((trained + 1) / STEP_NS), "%lu steps in %.0f ns",
               usage.training_steps, trained);
  small_world_free(w);
}

/* Its state goes back while the request computes already, where both fit. */
Test(training, gives_way_at_the_next_boundary)
{
  for (int64_t offset = 11; offset < 3 * STEP_NS; offset += 523457)
    for (int yield_layer = 0; yield_layer < 2; yield_layer++) {
      check_yield("ideal", 0, yield_layer, offset);
      check_yield("pipeswitch", 800, yield_layer, offset);
    }
}

/* Where model and state do not fit together: the next boundary, 100 ms for the state, then the load. */
Test(training, state_in_the_way_goes_back_first)
{
  for (int yield_layer = 0; yield_layer < 2; yield_layer++) {
    static const uint64_t bytes[LAYERS] = {80 * MB, 80 * MB, 80 * MB, 80 * MB, 80 * MB};
    struct small_world *w = trainer_new("pipeswitch", 800, yield_layer);
    uint32_t model = small_world_model(w, LAYERS, bytes, layer_ns, 1);
    w->grouping = (struct grouping_policy){.kind = GROUPING_PER_APP};
    w->config.gpu_model_bytes = 1000 * MB;
    uint32_t request = small_world_request(w, AT + 1234567, model);
    small_world_run(w, 10 * AT);
    double waits = to_next_yield(fmod(AT + 1234567 - training_since(800), STEP_NS), yield_layer);
    double expected = waits + 100e6 + 50e6 + sum_ns(), found = (double)small_world_latency(w, request);
    cr_expect(fabs(found - expected) <= 2, "took %.0f ns, by hand %.1f", found, expected);
    small_world_free(w);
  }
}

/* Under MPS the request does not wait: the rest of the step runs beside it, at its share of the GPU. */
static void check_beside(uint64_t state_mb, double share, int64_t offset_ns)
{
  struct small_world *w = trainer_new("mps", state_mb, FALSE);
  w->config.hardware[0].mps_train_share = share;
  uint32_t request = small_world_request(w, AT + offset_ns, 0);
  small_world_run(w, 10 * AT);
  double rest = STEP_NS - fmod((double)(AT + offset_ns) - training_since(state_mb), STEP_NS);
  double slow = sum_ns() / (1 - share); /* all of it beside the trainer; else until the step ends */
  gboolean whole = slow <= rest / share;
  double expected = whole ? slow : sum_ns() + rest, found = (double)small_world_latency(w, request);
  cr_expect(fabs(found - expected) <= 3, "share %g, state of %lu MB: took %.0f ns, by hand %.1f", share,
            state_mb, found, expected);
  struct usage before, after;
  small_world_until(w, AT + offset_ns + (int64_t)(whole ? slow + rest - slow * share : expected) + 3);
  sim_usage(w->sim, &before);
  uint64_t steps = (uint64_t)(((double)(AT + offset_ns) - training_since(state_mb) + rest + 1) / STEP_NS);
  cr_expect_eq(before.training_steps, steps, "%lu steps, by hand %lu", before.training_steps, steps);
  small_world_until(w, AT + offset_ns + AT);
  sim_usage(w->sim, &after);
  cr_expect_gt(after.training_steps, before.training_steps, "idle again, it trains again");
  small_world_free(w);
}

Test(training, beside_processes_ends_with_its_step)
{
  static const double shares[] = {0.2, 0.45, 0.9};
  for (int64_t offset = 11; offset < 3 * STEP_NS; offset += 523457)
    for (size_t i = 0; i < G_N_ELEMENTS(shares); i++) {
      check_beside(0, shares[i], offset);
      check_beside(800, shares[i], offset);
    }
}

/* Idle again, it trains again, after as long as a switch costs; and never holds more than one timer for it.
 */
Test(training, comes_back_after_the_cost_of_a_switch)
{
  struct small_world *w = trainer_new("pipeswitch", 8, TRUE);
  for (uint32_t i = 0; i < 100; i++)
    small_world_request(w, AT + 2 * i * NS_PER_MS, 0); /* the GPU is never idle for 2 ms */
  small_world_run(w, 10 * AT);
  struct usage first, then;
  sim_usage(w->sim, &first);
  double trained = (double)AT - training_since(8);
  cr_expect_eq(first.training_steps, (uint64_t)(trained / STEP_NS), "%lu steps", first.training_steps);
  int64_t over = AT + 198 * NS_PER_MS + small_world_latency(w, 99);
  small_world_until(w, over + (int64_t)training_since(8) + 5 * STEP_NS - 10);
  sim_usage(w->sim, &then);
  cr_expect_float_eq(then.gpu_training_ns - first.gpu_training_ns, 5.0 * STEP_NS - 10, 4);
  small_world_free(w);
}

/* --- what it may hold
 * ---------------------------------------------------------------------------------------------------------*/

static const char *const all_systems[] = {"ideal", "ideal-shared", "distmind",     "pipeswitch",
                                          "mps",   "ray",          "serverlessllm"};

#define TRAINS "training.model=a", "training.batch_ms=20", "models.a=6", "models.b=6", "cluster.ssd_copies=1"

Test(training, state_that_never_fits_is_refused)
{
  g_autoptr(Lab) lab = lab_new();
  for (size_t i = 2; i < G_N_ELEMENTS(all_systems); i++) {
    g_autofree char *refused = lab_refusal(lab, all_systems[i], TRAINS, "cluster.gpu_memory_gb=1",
                                           "training.state_gb=1.000001", NULL);
    cr_expect(strstr(refused, "training.state_gb") && strstr(refused, "1.000 GB"), "%s", refused);
  }
}

/* State that leaves room for one model, or for none: every system serves all, and trains where it pauses. */
Test(training, nobody_waits_for_ever_beside_training)
{
  g_autoptr(Lab) lab = lab_new();
  for (size_t i = 0; i < G_N_ELEMENTS(all_systems); i++)
    for (int full = 0; full < 2; full++) {
      g_autoptr(LabResult) result =
          lab_run(lab, all_systems[i], TRAINS, "cluster.gpu_memory_gb=1",
                  full ? "training.state_gb=1" : "training.state_gb=0.82",
                  full ? "experiment.initial=cold" : "experiment.initial=warm", "cluster.gpus_per_server=2",
                  "cluster.staging_gb=0.1", "workload.rate_rps=3", "workload.duration_s=60",
                  "cluster.control_us=30", NULL);
      lab_check_conserved(result, all_systems[i]);
      lab_check_parts(result, all_systems[i]);
      cr_expect_eq(result->figures.completed, result->figures.requests, "%s", result->json);
      cr_expect_gt(result->figures.training_steps, 100, "%s: %lu steps", all_systems[i],
                   result->figures.training_steps);
    }
}

/* Two GPUs with a process of the only model each, a job for one: requests go to the other, unless they
 * overlap (a gap of under 10 ms of 500: one in fifty). */
Test(training, is_left_alone_where_another_process_is_free)
{
  g_autoptr(Lab) lab = lab_new();
  lab_write(lab, "one.csv", "job_id,submission_time,duration,num_gpu\nx,0,1000,1\n");
  g_autofree char *job = g_strdup_printf("training.trace=%s/one.csv", lab->folder);
  g_autoptr(LabResult) result =
      lab_run(lab, "mps", "training.model=a", "training.batch_ms=20", job, "training.state_gb=0.5",
              "models.a=1", "cluster.gpu_servers=1", "cluster.gpus_per_server=2", "workload.rate_rps=2",
              "workload.duration_s=60", NULL);
  lab_check_conserved(result, "mps");
  cr_expect_eq(result->figures.training_jobs, 1);
  cr_expect(result->figures.latency_ms.p90 < 10.01, "p90 %g ms", result->figures.latency_ms.p90);
}

/* --- jobs that can never be done
 * ---------------------------------------------------------------------------------------------------------*/

static struct lab_result *run_jobs(struct lab *lab, const char *system, const char *event, const char *more)
{
  lab_write(lab, "jobs.csv", "job_id,submission_time,duration,num_gpu\nx,0,1,1\ny,0.5,60,2\nz,3,60,1\n");
  g_autofree char *jobs = g_strdup_printf("training.trace=%s/jobs.csv", lab->folder);
  return lab_run(lab, system, TRAINS, jobs, "workload.rate_rps=5", "workload.duration_s=6", event, more,
                 NULL);
}

Test(training, jobs_end_with_the_last_gpu_server)
{
  static const char *const events[] = {"events.x=at 2 fail gpu_server 0",
                                       "events.x=at 2 remove gpu_server 0"};
  g_autoptr(Lab) lab = lab_new();
  for (size_t i = 0; i < G_N_ELEMENTS(all_systems); i++)
    for (int k = 0; k < 2; k++) {
      g_autoptr(LabResult) result = run_jobs(lab, all_systems[i], events[k], NULL);
      lab_check_conserved(result, all_systems[i]);
      lab_check_parts(result, all_systems[i]);
      cr_expect_eq(result->figures.training_jobs, 1, "%s: %lu jobs", all_systems[i],
                   result->figures.training_jobs);
      cr_expect(strstr(result->notices, "2 training jobs were not finished: no GPU server was left"),
                "%s: %s", all_systems[i], result->notices);
    }
}

Test(training, jobs_wait_for_a_server_that_will_join)
{
  g_autoptr(Lab) lab = lab_new();
  g_autoptr(LabResult) result =
      run_jobs(lab, "pipeswitch", "events.x=at 2 fail gpu_server 0", "events.y=at 500 add gpu_server 1");
  cr_expect_eq(result->figures.training_jobs, 3);
  cr_expect(!strstr(result->notices, "not finished"), "%s", result->notices);
}
