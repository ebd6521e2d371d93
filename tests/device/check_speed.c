/* How fast bytes move, how fast they are verified, and how late ends are told. */
#include <stdio.h>

#include "backend_real/checksum.h"
#include "backend_real/device_kinds.h"
#include "bench.h"

/* Of the memory bandwidth that NVIDIA gives for the H200; other GPUs are shown, not judged. */
#define H200_BYTES_NS 4800.0

/* Back to back from the issue of the first to the end of the last; ns each. */
static double copies_ns(struct bench *bench, gboolean to_host, uint64_t bytes, unsigned count)
{
  uint64_t places = bench->bytes / bytes, tag = bench_tag(bench);
  int64_t begin = device_now();
  for (unsigned i = 0; i < count; i++)
    bench_copy(bench, 0, to_host, i % places * bytes, bytes, 0, i + 1 == count ? tag : 0);
  return (double)(bench_await(bench, tag)->told_ns - begin) / count;
}

/* One copy alone, from issue until told: the median. */
static double copy_latency_ns(struct bench *bench, uint64_t bytes, unsigned count)
{
  double sample[100];
  for (unsigned i = 0; i < count; i++) {
    uint64_t tag = bench_tag(bench);
    int64_t begin = device_now();
    bench_copy(bench, 0, FALSE, 0, bytes, 0, tag);
    sample[i] = (double)(bench_await(bench, tag)->told_ns - begin);
  }
  return bench_percentile(sample, count, 0.5);
}

void check_copy_speed(struct bench *bench)
{
  printf("\n%14s %16s %10s %18s %10s %18s\n", "chunk (bytes)", "to GPU, us each", "GB/s", "to host, us each",
         "GB/s", "one to GPU, us");
  for (uint64_t bytes = 4096; bytes <= MIN(bench->bytes, 256u << 20); bytes *= 4) {
    unsigned count = (unsigned)CLAMP((bench->quick ? 64u << 20 : 2048u << 20) / bytes, 4, 1000);
    copies_ns(bench, FALSE, bytes, 4); /* warms up */
    double to_gpu = copies_ns(bench, FALSE, bytes, count), to_host = copies_ns(bench, TRUE, bytes, count);
    double one = copy_latency_ns(bench, bytes, bytes < 1u << 24 ? 50 : 5);
    printf("%14" G_GUINT64_FORMAT " %16.2f %10.2f %18.2f %10.2f %18.2f\n", bytes, to_gpu / 1e3,
           (double)bytes / to_gpu, to_host / 1e3, (double)bytes / to_host, one / 1e3);
  }
}

/* Bytes a ns of `count` computes over a group, by the time that the device gives for each. */
static double verify_rate(struct bench *bench, uint64_t offset, uint64_t shift, uint64_t bytes,
                          unsigned count)
{
  double sample[20];
  struct device_compute compute = {
      .pieces = 1,
      .piece = {{offset, bytes, offset + shift}},
      .checksum = checksum(bench->host + offset, offset + shift, bytes),
  };
  for (unsigned i = 0; i < count; i++) {
    compute.tag = bench_tag(bench);
    bench->ops->compute(bench->device, &compute);
    const struct end *end = bench_await(bench, compute.tag);
    sample[i] = (double)(end->end_ns - end->start_ns);
    if (end->status != DEVICE_DONE)
      bench_verdict(bench, FALSE, "verifying %" G_GUINT64_FORMAT " bytes: status %d", bytes, end->status);
  }
  return (double)bytes / bench_percentile(sample, count, 0.5);
}

/* Four times as large, at last `most`; 0: that was the last. */
static uint64_t next_group(uint64_t bytes, uint64_t most)
{
  return bytes == most ? 0 : MIN(4 * bytes, most);
}

void check_verify_speed(struct bench *bench)
{
  uint64_t tag = bench_tag(bench);
  bench_copy(bench, 0, FALSE, 0, bench->bytes, 0, tag);
  bench_await(bench, tag);
  unsigned count = bench->quick ? 3 : 20;
  double largest = 0;
  printf("\n%14s %16s %10s %22s %22s\n", "group (bytes)", "verified in, us", "GB/s", "off by 8 bytes, GB/s",
         "off by 3 bytes, GB/s");
  for (uint64_t bytes = 65536; bytes; bytes = next_group(bytes, bench->bytes - 8)) {
    double rate = verify_rate(bench, 0, 0, bytes, count), by8 = verify_rate(bench, 8, 0, bytes, count);
    double by3 = verify_rate(bench, 0, 3, bytes, count);
    printf("%14" G_GUINT64_FORMAT " %16.2f %10.1f %22.1f %22.1f\n", bytes, (double)bytes / rate / 1e3, rate,
           by8, by3);
    largest = rate;
  }
  if (g_str_has_suffix(bench->ops->describe(bench->device, 0), "H200"))
    bench_verdict(bench, largest >= 0.7 * H200_BYTES_NS, "verifying runs at %.0f%% of the memory's %.0f GB/s",
                  100 * largest / H200_BYTES_NS, H200_BYTES_NS);
}

/* Ends of a compute alone, and of the last of several: how much later than its time it is told. */
static void end_latency(struct bench *bench, unsigned computes, int64_t compute_ns)
{
  double late[200];
  unsigned count = bench->quick ? 20 : (unsigned)CLAMP(NS_PER_S / (computes * (compute_ns + 20000)), 20, 200);
  for (unsigned i = 0; i < count; i++) {
    uint64_t tag = 0;
    int64_t begin = device_now();
    for (unsigned k = 0; k < computes; k++) {
      tag = bench_tag(bench);
      bench_compute(bench, 0, 0, 4096, compute_ns, 0, tag);
    }
    late[i] = (double)(bench_await(bench, tag)->told_ns - begin - computes * compute_ns);
  }
  double p50 = bench_percentile(late, count, 0.5), p99 = bench_percentile(late, count, 0.99);
  printf("%10u %14.1f %14.2f %14.2f %20.2f\n", computes, (double)compute_ns / 1e3, p50 / 1e3, p99 / 1e3,
         p50 / 1e3 / computes);
  if (bench->cuda && computes == 1)
    bench_verdict(bench, p50 < 30000, "a compute alone, launch and all, is told %.1f us late (under 30)",
                  p50 / 1e3);
}

static void stop_latency(struct bench *bench)
{
  double late[50];
  unsigned count = bench->quick ? 5 : 50;
  for (unsigned i = 0; i < count; i++) {
    gboolean stop = FALSE;
    struct device_compute compute = {.compute_ns = 10 * NS_PER_S, .stop = &stop, .tag = bench_tag(bench)};
    bench->ops->compute(bench->device, &compute);
    g_usleep(2000 + 37 * i);
    int64_t begin = device_now();
    __atomic_store_n(&stop, TRUE, __ATOMIC_RELEASE);
    const struct end *end = bench_await(bench, compute.tag);
    late[i] = (double)(end->told_ns - begin);
    if (end->status != DEVICE_STOPPED)
      bench_verdict(bench, FALSE, "stopping: status %d", end->status);
  }
  double p50 = bench_percentile(late, count, 0.5), p99 = bench_percentile(late, count, 0.99);
  bench_verdict(bench, !bench->cuda || p50 < 150000, "stop acts within %.1f us (median), %.1f us (p99)",
                p50 / 1e3, p99 / 1e3);
}

void check_latency(struct bench *bench)
{
  printf("\n%10s %14s %14s %14s %20s\n", "computes", "each, us", "late p50, us", "late p99, us",
         "a compute, us (p50)");
  static const int64_t each_ns[] = {0, 100000, 1000000};
  for (size_t i = 0; i < G_N_ELEMENTS(each_ns); i++) {
    end_latency(bench, 1, each_ns[i]);
    end_latency(bench, 16, each_ns[i]);
  }
  stop_latency(bench);
}
