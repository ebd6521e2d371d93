/* What storing costs: nanoseconds of one core for each latency counted and each request stored, beside their
 * budgets. */
#include "harness/histogram.h"
#include "harness/store.h"
#include <glib/gstdio.h>
#include <stdio.h>
#include <time.h>

#define LATENCIES   20000000
#define REQUESTS    2000000
#define BUDGET_NS   1500 /* a replay at 250,000 requests a second has 4,000 ns for each on its core */
#define BUDGET_HIST 10

/* CPU time of all threads, so that the store's writer counts. */
static double cpu_s(void)
{
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void print_cost(const char *what, double seconds, double count, double budget_ns)
{
  printf("%-28s %8.1f ns each  budget %6.0f ns  %s\n", what, seconds / count * 1e9, budget_ns,
         seconds / count * 1e9 <= budget_ns ? "ok" : "OVER");
}

static void bench_histogram(void)
{
  struct histogram *histogram = histogram_new();
  double start_s = cpu_s();
  uint64_t bits = 88172645463325252ULL;
  for (int i = 0; i < LATENCIES; i++) {
    bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
    histogram_add(histogram, (int64_t)(bits >> 38) + 10000000);
  }
  print_cost("histogram_add", cpu_s() - start_s, LATENCIES, BUDGET_HIST);
  histogram_free(histogram);
}

/* Rows as a replay ends them: nearly in order of arrival. */
static void store_rows(struct store *store)
{
  for (uint64_t i = 0; i < REQUESTS; i++) {
    uint64_t id = (i & ~7ULL) | ((i * 5 + 3) & 7);
    int64_t arrival_ns = (int64_t)id * 1000;
    struct request_row row = {.id = id,
                              .model = (uint32_t)(id % 128),
                              .gpu = (uint32_t)(id % 64),
                              .arrival_ns = arrival_ns,
                              .dispatch_ns = arrival_ns + 50000,
                              .start_ns = arrival_ns + 3000000,
                              .end_ns = arrival_ns + 20000000,
                              .slo_met = TRUE};
    store_request(store, &row);
  }
}

static gboolean bench_store(const char *path, GError **error)
{
  struct store *store = store_create(path, TRUE, error);
  if (!store)
    return FALSE;
  struct catalog *catalog = catalog_new(1);
  struct run_info info = {.experiment = "bench", .system = "ideal", .backend = "sim"};
  struct figures figures = {0};
  double start_s = cpu_s();
  gboolean done = store_begin_run(store, &info, catalog, error);
  if (done) {
    store_rows(store);
    done = store_end_run(store, &figures, FALSE, error);
  }
  catalog_free(catalog);
  if (!done) {
    store_abandon(store);
    return FALSE;
  }
  if (!store_finish(store, error))
    return FALSE;
  print_cost("store_request, all threads", cpu_s() - start_s, REQUESTS, BUDGET_NS);
  return TRUE;
}

int main(void)
{
  bench_histogram();
  g_autoptr(GError) error = NULL;
  g_autofree char *folder = g_dir_make_tmp("distmind-bench-XXXXXX", &error);
  g_autofree char *path = folder ? g_build_filename(folder, "run.db", NULL) : NULL;
  gboolean done = folder && bench_store(path, &error);
  if (path)
    g_unlink(path);
  if (folder)
    g_rmdir(folder);
  if (!done)
    fprintf(stderr, "bench_store: %s\n", error->message);
  return done ? 0 : 1;
}
