/* What holds for every run, on 200 clusters and experiments drawn at random: every system, sharding, cache,
 * balancer, with servers that come and go and training beside. */
#include "lab.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/units.h"

#define RUNS 200

static const char *const all_systems[] = {"ideal", "ideal-shared", "distmind",     "pipeswitch",
                                          "mps",   "ray",          "serverlessllm"};

/* One drawn experiment: its --set texts, and what the checks must know of it. */
struct draw {
  GRand *rand;
  GPtrArray *sets;
  const char *system;
  uint32_t servers, gpus, memory, replicas, seconds_ms;
  int64_t control_ns;
  gboolean changes; /* members or time limits end requests early */
};

static void set(struct draw *d, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void set(struct draw *d, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  g_ptr_array_add(d->sets, g_strdup_vprintf(format, list));
  va_end(list);
}

static int up_to(struct draw *d, int most)
{
  return g_rand_int_range(d->rand, 0, most + 1);
}

static gboolean chance(struct draw *d, int percent)
{
  return up_to(d, 99) < percent;
}

#define PICK(d, ...)                                                                                         \
  ((const char *const[]){__VA_ARGS__}[up_to(d, (int)G_N_ELEMENTS(((const char *const[]){__VA_ARGS__})) - 1)])

static void draw_cluster(struct draw *d)
{
  d->servers = 1 + (uint32_t)up_to(d, 2);
  d->gpus = 1 + (uint32_t)up_to(d, 2);
  d->memory = 1 + (uint32_t)up_to(d, 3);
  d->replicas = 1 + (uint32_t)up_to(d, (int)MIN(d->memory, 2) - 1);
  d->control_ns = 1000LL * up_to(d, 3) * up_to(d, 100);
  set(d, "models.a=%d", 1 + up_to(d, 7));
  set(d, "models.b=%d", 1 + up_to(d, 7));
  set(d, "cluster.gpu_servers=%u", d->servers);
  set(d, "cluster.gpus_per_server=%u", d->gpus);
  set(d, "cluster.memory_servers=%u", d->memory);
  set(d, "pipeline.replicas=%u", d->replicas);
  set(d, "cluster.ssd_copies=%d", 1 + up_to(d, 1));
  set(d, "cluster.control_us=%g", (double)d->control_ns / 1e3);
  set(d, "cluster.gpu_memory_gb=%s", PICK(d, "0.5", "1", "16"));
  set(d, "cluster.gpu_models_max=%d", up_to(d, 3));
  set(d, "cluster.host_cache_gb=%s", PICK(d, "0", "0.1", "0.3", "5"));
  set(d, "cluster.staging_gb=%s", PICK(d, "largest", "0.08", "0.3"));
  set(d, "cluster.heartbeat_ms=%d", 2 + up_to(d, 30));
  set(d, "cluster.report_ms=%d", up_to(d, 2) * 5);
  set(d, "cluster.gpus_per_pcie_switch=%d", 1 + up_to(d, 2));
  set(d, "cluster.spine_oversubscription=%d", 1 + up_to(d, 2));
  set(d, "cluster.nic_gbit_s=%s", PICK(d, "10", "80", "400"));
  set(d, "cluster.mps_speedup=%s", PICK(d, "1", "1;1.6;1.9"));
  set(d, "cluster.mps_max_processes=%d", 1 + up_to(d, 4));
  set(d, "cluster.mps_queue_max=%d", up_to(d, 3));
  set(d, "cluster.ray_proxy_us=%d", up_to(d, 1) * 700);
}

static void draw_costs(struct draw *d)
{
  set(d, "cluster.net_stream_us=%d", up_to(d, 40));
  set(d, "cluster.net_group_us=%d", up_to(d, 9));
  set(d, "cluster.pcie_transfer_us=%d", up_to(d, 9));
  set(d, "cluster.group_sync_us=%d", up_to(d, 9));
  set(d, "cluster.launch_us=%g", up_to(d, 3) / 7.0);
}

static void draw_policies(struct draw *d)
{
  set(d, "pipeline.sharding=%s", PICK(d, "per-app", "horizontal", "vertical", "hybrid"));
  set(d, "pipeline.grouping=%s", PICK(d, "per-layer", "fixed:20000000", "count:3", "optimal"));
  set(d, "pipeline.order=%s", PICK(d, "parallel", "parallel", "sequential"));
  set(d, "pipeline.window_mb=%d", up_to(d, 2) * up_to(d, 40));
  set(d, "pipeline.path=%s", PICK(d, "host", "gpudirect"));
  set(d, "cache.policy=%s", PICK(d, "default", "lru", "weighted"));
  if (strcmp(d->system, "mps") != 0 && strcmp(d->system, "serverlessllm") != 0)
    set(d, "balancing.policy=%s",
        PICK(d, "default", "default", "cache_aware", "least_loaded", "round_robin"));
}

static void draw_workload(struct draw *d)
{
  d->seconds_ms = 300 + (uint32_t)up_to(d, 700);
  set(d, "experiment.seed=%d", 1 + up_to(d, 1000));
  set(d, "experiment.initial=%s", PICK(d, "warm", "cold"));
  set(d, "workload.kind=%s", PICK(d, "poisson", "gamma", "closed", "shifting"));
  set(d, "workload.cv=3");
  set(d, "workload.rate_rps=%d", 20 + up_to(d, 400));
  set(d, "workload.outstanding=%d", 1 + up_to(d, 30));
  set(d, "workload.shift_period_s=0.03");
  set(d, "workload.duration_s=%g", d->seconds_ms / 1e3);
  set(d, "experiment.warmup_s=%g", up_to(d, 1) * 0.1);
  if (chance(d, 25)) {
    set(d, "workload.timeout_s=%g", 0.01 + 0.005 * up_to(d, 40));
    d->changes = TRUE;
  }
  if (chance(d, 25))
    set(d, "workload.max_queue=%d", 1 + up_to(d, 20));
  if (chance(d, 40)) {
    set(d, "training.model=%s", PICK(d, "a", "b"));
    set(d, "training.batch_ms=%d", 1 + up_to(d, 30));
    set(d, "training.state_gb=%s", PICK(d, "0", "0.1", "0.3"));
    set(d, "training.yield=%s", PICK(d, "default", "layer", "step"));
  }
}

/* Servers leave at most once each, whichever way. */
static void draw_events(struct draw *d)
{
  gboolean gone[2][4] = {{FALSE}};
  int events = chance(d, 50) ? 1 + up_to(d, 4) : 0;
  d->changes |= events > 0;
  for (int i = 0; i < events; i++) {
    int memory = up_to(d, 1), index = up_to(d, (int)(memory ? d->memory : d->servers) - 1);
    const char *kind = memory ? "memory_server" : "gpu_server";
    double at = up_to(d, (int)d->seconds_ms) / 1e3;
    if (chance(d, 30))
      set(d, "events.e%d=at %g add %s %d", i, at, kind, 1 + up_to(d, 1));
    else if (chance(d, 30))
      set(d, "events.e%d=at %g set cluster.%s", i, at,
          PICK(d, "nic_gbit_s 7", "pcie_gbyte_s 3", "memory_nic_gbit_s 300", "host_cache_gb 0.2"));
    else if (!gone[memory][index])
      set(d, "events.e%d=at %g %s %s %d", i, at, chance(d, 50) ? "fail" : "remove", kind, index);
    gone[memory][index] = TRUE;
  }
}

/* L = lambda W by two meters that know nothing of each other: the GPU servers' of time held, and the
 * clients'. */
static gboolean check_littles_law(const struct draw *d, const struct lab_result *r, const char *what)
{
  double from = (double)d->seconds_ms * 1e6 - r->figures.window_s * 1e9, to = (double)d->seconds_ms * 1e6,
         sum = 0;
  gboolean shared = g_str_equal(d->system, "ideal-shared") || g_str_equal(d->system, "mps");
  if (d->changes || shared)
    return FALSE;
  for (guint i = 0; i < r->rows->len; i++) {
    const struct request_row *row = &g_array_index(r->rows, struct request_row, i);
    double start = (double)row->start_ns, end = (double)(row->end_ns - 2 * d->control_ns);
    if (row->outcome == OUTCOME_COMPLETED)
      sum += MAX(0, MIN(end, to) - MAX(start, from));
  }
  double held = r->figures.gpu_held * d->servers * d->gpus * r->figures.window_s * 1e9;
  cr_expect(fabs(held - sum) <= 4.0 * r->rows->len + 1e-9 * sum,
            "%s: GPUs were held %.0f ns, by the clients %.0f", what, held, sum);
  return sum > 0;
}

/* Of the completed: mean and extreme as the figures say. */
static void check_latencies(const struct lab_result *r, const char *what)
{
  double sum = 0, most = 0;
  uint64_t count = 0;
  if (r->figures.requests < r->rows->len) /* some came before the window */
    return;
  for (guint i = 0; i < r->rows->len; i++) {
    const struct request_row *row = &g_array_index(r->rows, struct request_row, i);
    double ms = (double)(row->end_ns - row->arrival_ns) / 1e6;
    if (row->outcome != OUTCOME_COMPLETED)
      continue;
    sum += ms;
    most = MAX(most, ms);
    count++;
  }
  cr_expect_eq(count, r->figures.completed, "%s", what);
  cr_expect_float_eq(r->figures.latency_ms.mean * (double)count, sum, 1e-9 * sum, "%s", what);
  cr_expect_float_eq(r->figures.latency_ms.max, most, 1e-9 * most, "%s", what);
}

static void check_bounds(const struct draw *d, const struct lab_result *r, const char *what)
{
  const struct figures *f = &r->figures;
  const double parts[] = {f->gpu_utilization, f->gpu_inference, f->gpu_training, f->gpu_held,
                          f->slo_attainment};
  lab_check_conserved(r, what);
  for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
    cr_expect(parts[i] >= 0 && parts[i] <= 1 + 1e-9, "%s: part %zu is %.12f", what, i, parts[i]);
  cr_expect_leq(f->gpu_utilization, f->gpu_inference + f->gpu_training + 1e-9, "%s", what);
  cr_expect_leq(f->gpu_inference, f->gpu_held + 1e-6 /* of whole nanoseconds */, "%s", what);
  uint64_t requests = r->rows->len;
  cr_expect_leq(f->loads_host + f->loads_ssd + f->loads_remote + f->loads_process_start, 2 * requests, "%s",
                what);
  if (!d->changes)
    cr_expect_eq(f->failed, 0, "%s: %lu failed", what, f->failed);
}

/* TRUE: Little's law was among what was checked. */
static gboolean check_run(struct lab *lab, const struct draw *d, const char *what)
{
  lab->rows = TRUE;
  lab->clock_offset_ns = 0;
  g_autoptr(LabResult) first = lab_run_sets(lab, d->system, d->sets);
  check_bounds(d, first, what);
  gboolean little = check_littles_law(d, first, what);
  check_latencies(first, what);
  lab->rows = FALSE; /* nor does it matter whether anybody looks on */
  g_autoptr(LabResult) again = lab_run_sets(lab, d->system, d->sets);
  lab->clock_offset_ns = 987654321;
  g_autoptr(LabResult) shifted = lab_run_sets(lab, d->system, d->sets);
  cr_expect_str_eq(first->json, again->json, "%s: %s\n%s", what, first->json, again->json);
  cr_expect_str_eq(first->json, shifted->json, "%s: %s\n%s", what, first->json, shifted->json);
  return little;
}

static void check_runs(int from, int to)
{
  g_autoptr(Lab) lab = lab_new();
  int little = 0;
  for (int i = from; i < to; i++) {
    struct draw d = {.rand = g_rand_new_with_seed((guint32)(4711 + i)),
                     .sets = g_ptr_array_new_with_free_func(g_free),
                     .system = all_systems[i % (int)G_N_ELEMENTS(all_systems)]};
    set(&d, "experiment.systems=%s", d.system);
    draw_cluster(&d);
    draw_costs(&d);
    draw_policies(&d);
    draw_workload(&d);
    draw_events(&d);
    g_ptr_array_add(d.sets, NULL);
    g_autofree char *what = g_strdup_printf("draw %d, %s", i, d.system);
    little += check_run(lab, &d, what);
    g_ptr_array_unref(d.sets);
    g_rand_free(d.rand);
  }
  cr_expect_gt(little, (to - from) / 6, "Little's law was checked %d times only", little);
}

/* In two halves, as tests run side by side. */
Test(random_runs, first_half)
{
  check_runs(0, RUNS / 2);
}

Test(random_runs, second_half)
{
  check_runs(RUNS / 2, RUNS);
}
