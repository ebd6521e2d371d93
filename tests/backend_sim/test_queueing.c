/* The simulator as a queue: M/D/1 and M/D/c in the mean, first come first served to the nanosecond, Little's
 * law. */
#include "lab.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/units.h"

#define BATCHES 20
/* Two-sided 99.9% quantile of Student's t with BATCHES - 1 degrees of freedom. */
#define T_QUANTILE 3.883

static double poisson_term(double mean, int k)
{
  return exp(k * log(mean) - mean - lgamma(k + 1.0));
}

/* Mean wait of M/D/c in units of the service time, by Crommelin's argument: who is in service now is gone one
 * service time later, so N(t + D) = max(N(t) - c, 0) + Poisson(lambda D). The stationary law of that chain by
 * iteration; the queue's mean by N - busy servers; the wait by Little's law. */
static double crommelin_wait(double load, int servers)
{
  enum { STATES = 400, TERMS = 80, STEPS = 3000 };
  double law[STATES] = {1}, next[STATES], term[TERMS], rate = load * servers, mean = 0;
  for (int k = 0; k < TERMS; k++)
    term[k] = poisson_term(rate, k);
  for (int step = 0; step < STEPS; step++) {
    for (int n = 0; n < STATES; n++)
      next[n] = 0;
    for (int n = 0; n < STATES; n++)
      for (int k = 0; k < TERMS && law[n] > 1e-18; k++)
        next[MIN(STATES - 1, MAX(n - servers, 0) + k)] += law[n] * term[k];
    memcpy(law, next, sizeof law);
  }
  for (int n = 0; n < STATES; n++)
    mean += n * law[n];
  return (mean - rate) / rate;
}

struct estimate {
  double mean, half; /* half width of the confidence interval */
};

/* Mean wait in units of the service time; batch means, so that the correlation of neighbours does no harm. */
static struct estimate mean_wait(const GArray *rows, double service_ns)
{
  guint size = rows->len / BATCHES;
  double batch[BATCHES] = {0}, mean = 0, squares = 0;
  for (guint i = 0; i < size * BATCHES; i++) {
    const struct request_row *row = &g_array_index(rows, struct request_row, i);
    batch[i / size] += ((double)(row->end_ns - row->arrival_ns) - service_ns) / service_ns / size;
  }
  for (int i = 0; i < BATCHES; i++)
    mean += batch[i] / BATCHES;
  for (int i = 0; i < BATCHES; i++)
    squares += (batch[i] - mean) * (batch[i] - mean);
  return (struct estimate){mean, T_QUANTILE * sqrt(squares / (BATCHES - 1) / BATCHES)};
}

static void check_wait(double load, int servers, int requests, double expected)
{
  g_autoptr(Lab) lab = lab_new();
  lab->rows = TRUE;
  double rate = load * servers * 1e9 / LAB_A_NS;
  g_autofree char *rps = g_strdup_printf("workload.rate_rps=%.9g", rate),
                  *duration = g_strdup_printf("workload.duration_s=%.9g", requests / rate),
                  *gpus = g_strdup_printf("cluster.gpu_servers=%d", servers);
  g_autoptr(LabResult) result = lab_run(lab, "ideal", "models.a=1", rps, duration, gpus, NULL);
  lab_check_conserved(result, "M/D/c");
  struct estimate wait = mean_wait(result->rows, LAB_A_NS);
  cr_expect_leq(fabs(wait.mean - expected), wait.half, "load %g, %d servers: mean wait %g +- %g, expected %g",
                load, servers, wait.mean, wait.half, expected);
  cr_expect_leq(wait.half, 0.15 * expected,
                "load %g, %d servers: the interval +- %g says too little about %g", load, servers, wait.half,
                expected);
  cr_expect_float_eq(result->figures.gpu_utilization, load, 0.02 * load, "utilization %g",
                     result->figures.gpu_utilization);
}

Test(queueing, one_server_waits_as_pollaczek_and_khinchine_say)
{
  const double loads[] = {0.3, 0.7, 0.9};
  for (size_t i = 0; i < G_N_ELEMENTS(loads); i++)
    check_wait(loads[i], 1, 150000, loads[i] / (2 * (1 - loads[i])));
}

Test(queueing, many_servers_wait_as_crommelin_says)
{
  cr_assert_float_eq(crommelin_wait(0.7, 1), 0.7 / 0.6, 1e-6, "the yardstick itself is wrong");
  check_wait(0.7, 2, 100000, crommelin_wait(0.7, 2));
  check_wait(0.9, 4, 150000, crommelin_wait(0.9, 4));
}

/* First come, first served by `servers` equal servers: each request takes the server that is free first. */
static void check_recursion(const struct lab_result *result, int servers, int64_t hop_ns)
{
  int64_t free_at[16] = {0};
  for (guint i = 0; i < result->rows->len; i++) {
    const struct request_row *row = &g_array_index(result->rows, struct request_row, i);
    int first = 0;
    for (int s = 1; s < servers; s++)
      if (free_at[s] < free_at[first])
        first = s;
    int64_t start = MAX(row->arrival_ns + 2 * hop_ns, free_at[first]);
    free_at[first] = start + (row->model == 0 ? LAB_A_NS : LAB_B_NS);
    cr_assert_eq(row->end_ns, free_at[first] + 2 * hop_ns, "request %u ends at %ld, not at %ld", i,
                 row->end_ns, free_at[first] + 2 * hop_ns);
    cr_assert_eq(row->start_ns, start, "request %u starts at %ld, not at %ld", i, row->start_ns, start);
  }
}

Test(queueing, ideal_is_first_come_first_served_to_the_nanosecond)
{
  g_autoptr(Lab) lab = lab_new();
  lab->rows = TRUE;
  const char *const control[] = {"cluster.control_us=0", "cluster.control_us=7", "cluster.control_us=900"};
  const int64_t hops[] = {0, 7000, 900000};
  for (int i = 0; i < 3; i++) {
    g_autoptr(LabResult) one = lab_run(lab, "ideal", "models.a=1", "models.b=1", "workload.rate_rps=130",
                                       control[i], "workload.duration_s=200", NULL);
    lab_check_conserved(one, "one server");
    check_recursion(one, 1, hops[i]);
    g_autoptr(LabResult) seven =
        lab_run(lab, "ideal", "models.a=1", "models.b=1", "workload.rate_rps=920", control[i],
                "cluster.gpu_servers=1", "cluster.gpus_per_server=7", "workload.duration_s=50", NULL);
    lab_check_conserved(seven, "seven servers");
    check_recursion(seven, 7, hops[i]);
  }
}

static gint by_time(gconstpointer a, gconstpointer b)
{
  const int64_t *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

/* Instants of one column, in order. */
static GArray *instants(const GArray *rows, size_t offset)
{
  GArray *times = g_array_new(FALSE, FALSE, sizeof(int64_t));
  for (guint i = 0; i < rows->len; i++) {
    const char *row = (const char *)&g_array_index(rows, struct request_row, i);
    int64_t time = *(const int64_t *)(const void *)(row + offset);
    g_array_append_val(times, time);
  }
  g_array_sort(times, by_time);
  return times;
}

/* Integral of the number in the system: a walk over arrivals and ends, each in its own order. */
static double integral_of_number(const GArray *arrivals, const GArray *ends)
{
  double area = 0;
  int64_t last = 0;
  guint in = 0, out = 0;
  while (out < ends->len) {
    int64_t end = g_array_index(ends, int64_t, out);
    int64_t arrival = in < arrivals->len ? g_array_index(arrivals, int64_t, in) : INT64_MAX;
    int64_t now = MIN(end, arrival);
    area += (double)(in - out) * (double)(now - last);
    last = now;
    if (arrival <= end)
      in++;
    else
      out++;
  }
  return area;
}

/* L = lambda W, where L is measured by the meters (queue as the controller samples it, GPUs as the world
 * does) and W by the clients. */
Test(queueing, littles_law)
{
  g_autoptr(Lab) lab = lab_new();
  lab->rows = TRUE;
  g_autoptr(LabResult) r = lab_run(lab, "ideal", "models.a=1", "models.b=1", "workload.rate_rps=230",
                                   "cluster.gpu_servers=2", "workload.duration_s=300", NULL);
  lab_check_conserved(r, "little");
  g_autoptr(GArray) arrivals = instants(r->rows, offsetof(struct request_row, arrival_ns));
  g_autoptr(GArray) starts = instants(r->rows, offsetof(struct request_row, start_ns));
  g_autoptr(GArray) ends = instants(r->rows, offsetof(struct request_row, end_ns));
  double mean_ns = r->figures.latency_ms.mean * 1e6, n = (double)r->rows->len;
  cr_expect_float_eq(integral_of_number(arrivals, ends), n * mean_ns, 1e-6 * n * mean_ns);
  guint arrived = 0, started = 0;
  uint64_t waiting = 0;
  cr_assert_gt(r->queues->len, 900);
  for (guint i = 0; i < r->queues->len; i++) {
    const struct usage_row *sample = &g_array_index(r->queues, struct usage_row, i);
    while (arrived < arrivals->len && g_array_index(arrivals, int64_t, arrived) <= sample->time_ns)
      arrived++;
    while (started < starts->len && g_array_index(starts, int64_t, started) <= sample->time_ns)
      started++;
    cr_assert_eq(sample->queue, arrived - started, "at %ld ns %lu wait, not %u", sample->time_ns,
                 sample->queue, arrived - started);
    waiting += sample->queue;
  }
  cr_expect_gt(waiting, 100, "a queue that is always empty proves nothing");
  double busy = 0;
  for (guint i = 0; i < r->rows->len; i++) {
    const struct request_row *row = &g_array_index(r->rows, struct request_row, i);
    busy += (double)(MIN(row->end_ns, 300 * NS_PER_S) - MIN(row->start_ns, 300 * NS_PER_S));
  }
  cr_expect_float_eq(r->figures.gpu_inference, busy / (2 * 300e9), 1e-9);
}
