/* Groups copied and computed one behind the other, against the flow shop of the rates measured just before:
 * copied(j) = copied(j-1) + P, computed(j) = max(computed(j-1), copied(j)) + K. And several GPUs at once. */
#include <stdio.h>

#include "backend_real/checksum.h"
#include "backend_real/device_kinds.h"
#include "bench.h"

#define GROUPS 16

struct stage_times {
  double copy_ns, compute_ns; /* of a group, each alone */
};

/* Issues all groups at once on a GPU, as the core does; their ends have the tags from `first` on. */
static void issue_groups(struct bench *bench, uint32_t gpu, uint64_t group, const uint64_t *sums,
                         int64_t compute_ns, uint64_t first)
{
  for (uint32_t j = 0; j < GROUPS; j++) {
    struct device_compute compute = {
        .gpu = gpu,
        .pieces = 1,
        .piece = {{j * group, group, j * group}},
        .checksum = sums[j],
        .compute_ns = compute_ns,
        .after = bench_copy(bench, gpu, FALSE, j * group, group, 0, 0),
        .tag = first + j,
    };
    bench->ops->compute(bench->device, &compute);
  }
}

static gboolean all_done(struct bench *bench, uint64_t first)
{
  gboolean done = TRUE;
  for (uint32_t j = 0; j < GROUPS; j++)
    done = bench_await(bench, first + j)->status == DEVICE_DONE && done;
  return done;
}

static struct stage_times measure(struct bench *bench, uint64_t group, const uint64_t *sums,
                                  int64_t compute_ns)
{
  struct stage_times times = {0};
  uint64_t tag = bench_tag(bench);
  int64_t begin = device_now();
  for (uint32_t j = 0; j < GROUPS; j++)
    bench_copy(bench, 0, FALSE, j * group, group, 0, j + 1 == GROUPS ? tag : 0);
  times.copy_ns = (double)(bench_await(bench, tag)->told_ns - begin) / GROUPS;
  begin = device_now();
  for (uint32_t j = 0; j < GROUPS; j++) {
    tag = bench_tag(bench);
    struct device_compute compute = {.pieces = 1,
                                     .piece = {{j * group, group, j * group}},
                                     .checksum = sums[j],
                                     .compute_ns = compute_ns,
                                     .tag = tag};
    bench->ops->compute(bench->device, &compute);
  }
  times.compute_ns = (double)(bench_await(bench, tag)->told_ns - begin) / GROUPS;
  return times;
}

static double flow_shop_ns(const struct stage_times *times)
{
  double copied = 0, computed = 0;
  for (uint32_t j = 0; j < GROUPS; j++) {
    copied += times->copy_ns;
    computed = MAX(computed, copied) + times->compute_ns;
  }
  return computed;
}

static void pipeline(struct bench *bench, uint64_t group, const uint64_t *sums, int64_t compute_ns)
{
  double taken[15];
  unsigned count = bench->quick ? 3 : 15;
  gboolean done = TRUE;
  struct stage_times times = measure(bench, group, sums, compute_ns);
  for (unsigned i = 0; i < count; i++) {
    uint64_t first = bench_tags(bench, GROUPS);
    int64_t begin = device_now();
    issue_groups(bench, 0, group, sums, compute_ns, first);
    taken[i] = (double)(bench_await(bench, first + GROUPS - 1)->told_ns - begin);
    done = all_done(bench, first) && done;
  }
  double predicted = flow_shop_ns(&times), median = bench_percentile(taken, count, 0.5);
  gboolean close = median <= 1.05 * predicted + 500000;
  printf("%14" G_GUINT64_FORMAT " %12.3f %12.3f %12.3f %12.3f %8.3f\n", group, times.copy_ns / 1e6,
         times.compute_ns / 1e6, predicted / 1e6, median / 1e6, median / predicted);
  bench_verdict(bench, done && (close || !bench->cuda), "%u groups piped%s", GROUPS,
                !done   ? ": wrong bytes"
                : close ? ": within 1.05 x the flow shop + 0.5 ms"
                        : ": not within 1.05 x the flow shop + 0.5 ms");
}

static void sum_groups(struct bench *bench, uint64_t group, uint64_t *sums)
{
  for (uint32_t j = 0; j < GROUPS; j++)
    sums[j] = checksum(bench->host + j * group, j * group, group);
}

void check_pipeline(struct bench *bench)
{
  uint64_t group = MIN(bench->bytes / GROUPS, 16u << 20), sums[GROUPS];
  printf("\n%14s %12s %12s %12s %12s %8s\n", "group (bytes)", "copy, ms", "compute, ms", "flow shop",
         "median, ms", "ratio");
  for (; group >= 1u << 18; group /= 8) {
    sum_groups(bench, group, sums);
    struct stage_times copy = measure(bench, group, sums, 0);
    pipeline(bench, group, sums, 0);
    pipeline(bench, group, sums, (int64_t)(0.7 * copy.copy_ns));
    pipeline(bench, group, sums, (int64_t)(1.5 * copy.copy_ns));
  }
}

/* All GPUs load and verify at once; each against the time that one takes alone. */
void check_gpus_at_once(struct bench *bench)
{
  uint64_t group = MIN(bench->bytes / GROUPS, 16u << 20), sums[GROUPS];
  uint32_t gpus = bench->gpus;
  double alone = 0;
  gboolean done = TRUE;
  if (gpus < 2) {
    printf("\none GPU: none to run beside it\n");
    return;
  }
  sum_groups(bench, group, sums);
  printf("\n%8s %16s %18s\n", "GPUs", "all loaded, ms", "GB/s together");
  for (uint32_t busy = 1; busy <= gpus; busy++) {
    uint64_t first = bench_tags(bench, busy * GROUPS);
    int64_t begin = device_now(), end = 0;
    for (uint32_t gpu = 0; gpu < busy; gpu++)
      issue_groups(bench, gpu, group, sums, 0, first + gpu * GROUPS);
    for (uint32_t gpu = 0; gpu < busy; gpu++) {
      done = all_done(bench, first + gpu * GROUPS) && done;
      end = MAX(end, bench_await(bench, first + gpu * GROUPS + GROUPS - 1)->told_ns);
    }
    double taken = (double)(end - begin);
    alone = busy == 1 ? taken : alone;
    printf("%8u %16.3f %18.2f\n", busy, taken / 1e6, (double)(busy * GROUPS * group) / taken);
    if (busy == gpus)
      bench_verdict(bench, done && (!bench->cuda || taken < 0.75 * busy * alone),
                    "%u GPUs at once: %.2f x the time of one alone", busy, taken / alone);
  }
}
