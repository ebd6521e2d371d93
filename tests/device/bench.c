/* The checks' common part; see bench.h. */
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "backend_real/checksum.h"
#include "backend_real/device_kinds.h"

static void die(const char *format, ...) G_GNUC_PRINTF(1, 2) G_GNUC_NORETURN;

/* Without closing the device: it may be what hangs. */
static void die(const char *format, ...)
{
  va_list arguments;
  fflush(stdout);
  va_start(arguments, format);
  fputs("device_check: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  _Exit(1);
}

void bench_open(struct bench *bench, int64_t *open_ns)
{
  bench->ends = ends_new();
  bench->host =
      mmap(NULL, bench->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (bench->host == MAP_FAILED)
    die("no memory for an arena of %" G_GUINT64_FORMAT " bytes", bench->bytes);
  struct profile *profile = profile_new("device_check", 1);
  profile->layer_bytes[0] = bench->bytes;
  bench->image = image_generate(profile, 1);
  profile_free(profile);
  image_read(bench->image, 0, bench->bytes, bench->host);
  struct device_config config = {
      .gpus = bench->gpus,
      .share = !bench->cuda,
      .gpu_bytes = bench->bytes,
      .host = bench->host,
      .host_bytes = bench->bytes,
      .ended = ends_ended,
      .context = bench->ends,
  };
  g_autoptr(GError) error = NULL;
  int64_t begin = device_now();
  bench->device = bench->ops->open(&config, &error);
  *open_ns = device_now() - begin;
  if (!bench->device)
    die("%s", error->message);
}

void bench_close(struct bench *bench)
{
  bench->ops->close(bench->device);
  ends_free(bench->ends);
  image_free(bench->image);
  munmap(bench->host, bench->bytes);
}

void bench_verdict(struct bench *bench, gboolean good, const char *format, ...)
{
  va_list arguments;
  bench->failures += !good;
  fputs(good ? "ok      " : "FAILED  ", stdout);
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  putchar('\n');
  fflush(stdout);
}

uint64_t bench_tags(struct bench *bench, uint64_t count)
{
  if (bench->tag + count >= ENDS_MAX) {
    ends_clear(bench->ends);
    bench->tag = 0;
  }
  bench->tag += count;
  return bench->tag - count + 1;
}

uint64_t bench_tag(struct bench *bench)
{
  return bench_tags(bench, 1);
}

const struct end *bench_await(struct bench *bench, uint64_t tag)
{
  const struct end *end = ends_await(bench->ends, tag);
  if (!end)
    die("an operation did not end in time");
  return end;
}

uint64_t bench_copy(struct bench *bench, uint32_t gpu, gboolean to_host, uint64_t offset, uint64_t bytes,
                    uint64_t after, uint64_t tag)
{
  struct device_copy copy = {
      .gpu = gpu,
      .to_host = to_host,
      .pieces = 1,
      .piece = {{offset, offset, bytes}},
      .after = after,
      .tag = tag,
  };
  return bench->ops->copy(bench->device, &copy);
}

void bench_compute(struct bench *bench, uint32_t gpu, uint64_t offset, uint64_t bytes, int64_t compute_ns,
                   uint64_t after, uint64_t tag)
{
  struct device_compute compute = {
      .gpu = gpu,
      .pieces = 1,
      .piece = {{offset, bytes, offset}},
      .checksum = checksum(bench->host + offset, offset, bytes),
      .compute_ns = compute_ns,
      .after = after,
      .tag = tag,
  };
  bench->ops->compute(bench->device, &compute);
}

static int compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double bench_percentile(double *sample, unsigned count, double p)
{
  qsort(sample, count, sizeof *sample, compare);
  return sample[(unsigned)(p * (count - 1) + 0.5)];
}
