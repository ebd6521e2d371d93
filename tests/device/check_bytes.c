/* That the right bytes arrive, and that wrong ones are seen. */
#include <stdio.h>
#include <string.h>

#include "backend_real/checksum.h"
#include "bench.h"

#define REGION (1u << 20) /* of the arena and the GPU, for each check */

static enum device_status verify(struct bench *bench, uint32_t gpu, const struct device_range *piece,
                                 uint32_t pieces, uint64_t expected)
{
  struct device_compute compute = {
      .gpu = gpu, .stream = 1, .pieces = pieces, .checksum = expected, .tag = bench_tag(bench)};
  memcpy(compute.piece, piece, pieces * sizeof *piece);
  bench->ops->compute(bench->device, &compute);
  return bench_await(bench, compute.tag)->status;
}

/* Fill, to the host, compare; another way: to the GPU, then sums there. */
static void there_and_back(struct bench *bench, uint32_t gpu)
{
  g_autoptr(GError) error = NULL;
  g_autofree uint8_t *kept = g_memdup2(bench->host, 2 * REGION);
  gboolean good = bench->ops->fill(bench->device, gpu, 0, bench->host + REGION, REGION, &error);
  bench_verdict(bench, good, "GPU %u: fill%s%s", gpu, error ? ": " : "", error ? error->message : "");
  uint64_t tag = bench_tag(bench);
  bench_copy(bench, gpu, TRUE, 0, REGION, 0, tag);
  good = bench_await(bench, tag)->status == DEVICE_DONE && memcmp(bench->host, kept + REGION, REGION) == 0;
  bench_verdict(bench, good, "GPU %u: what was filled comes back", gpu);
  memcpy(bench->host, kept, REGION);
}

static void random_pieces(struct bench *bench, uint32_t gpu, GRand *rand, unsigned rounds)
{
  unsigned right = 0, wrong = 0, changed = 0;
  for (unsigned round = 0; round < rounds; round++) {
    struct device_copy copy = {.gpu = gpu, .pieces = DEVICE_PIECES, .tag = bench_tag(bench)};
    struct device_range range[DEVICE_PIECES];
    uint64_t sum = 0, offset = g_rand_int(rand);
    for (uint32_t i = 0; i < DEVICE_PIECES; i++) {
      uint64_t bytes = (uint64_t)g_rand_int_range(rand, 0, i % 2 ? 300 : 60000);
      uint64_t at = i * 65536 + (uint64_t)g_rand_int_range(rand, 0, 5000);
      copy.piece[i] = (struct device_piece){(uint64_t)g_rand_int_range(rand, 0, REGION), at, bytes};
      range[i] = (struct device_range){at, bytes, offset};
      sum += checksum(bench->host + copy.piece[i].host, offset, bytes);
      offset += bytes;
    }
    bench->ops->copy(bench->device, &copy);
    bench_await(bench, copy.tag);
    right += verify(bench, gpu, range, DEVICE_PIECES, sum) == DEVICE_DONE;
    wrong += verify(bench, gpu, range, DEVICE_PIECES, sum + 1) == DEVICE_WRONG_BYTES;
    /* One byte of the first piece changed on the GPU. */
    uint64_t victim = (uint64_t)g_rand_int_range(rand, 0, MAX(1, (int)range[0].bytes));
    uint8_t byte = (uint8_t)(bench->host[copy.piece[0].host + victim] ^ 4);
    gboolean filled = bench->ops->fill(bench->device, gpu, range[0].device + victim, &byte, 1, NULL);
    enum device_status expected = range[0].bytes ? DEVICE_WRONG_BYTES : DEVICE_DONE;
    changed += filled && verify(bench, gpu, range, DEVICE_PIECES, sum) == expected;
  }
  bench_verdict(bench, right == rounds, "GPU %u: right checksums of pieces at any alignment: %u of %u pass",
                gpu, right, rounds);
  bench_verdict(bench, wrong == rounds, "GPU %u: wrong checksums: %u of %u refused", gpu, wrong, rounds);
  bench_verdict(bench, changed == rounds, "GPU %u: one changed byte: seen in %u of %u", gpu, changed, rounds);
}

static void large_group(struct bench *bench, uint32_t gpu)
{
  uint64_t tag = bench_tag(bench);
  uint64_t token = bench_copy(bench, gpu, FALSE, 0, bench->bytes, 0, 0);
  bench_compute(bench, gpu, 0, bench->bytes, 0, token, tag);
  bench_verdict(bench, bench_await(bench, tag)->status == DEVICE_DONE,
                "GPU %u: %.1f MB verified after the copy that brought them", gpu, (double)bench->bytes / 1e6);
}

/* 40 pieces of one group, by three computes of which two go on. */
static enum device_status in_parts(struct bench *bench, uint64_t expected)
{
  uint64_t tag = bench_tag(bench);
  for (uint32_t at = 0; at < 40; at += DEVICE_PIECES) {
    struct device_compute compute = {
        .stream = 2, .pieces = MIN(40 - at, DEVICE_PIECES), .checksum = expected};
    for (uint32_t i = 0; i < compute.pieces; i++)
      compute.piece[i] = (struct device_range){1111 * (at + i), 1111, 1111 * (at + i)};
    compute.more = at + DEVICE_PIECES < 40;
    compute.tag = compute.more ? 0 : tag;
    bench->ops->compute(bench->device, &compute);
  }
  return bench_await(bench, tag)->status;
}

static void parts(struct bench *bench)
{
  uint64_t sum = checksum(bench->host, 0, 40 * 1111), tag = bench_tag(bench);
  bench_copy(bench, 0, FALSE, 0, REGION, 0, tag);
  bench_await(bench, tag);
  gboolean good = in_parts(bench, sum) == DEVICE_DONE && in_parts(bench, sum + 1) == DEVICE_WRONG_BYTES &&
                  in_parts(bench, sum) == DEVICE_DONE;
  bench_verdict(bench, good, "a compute in three parts is one compute");
}

/* To the GPU, from there to elsewhere in the host's memory, each waiting for the other on the device. */
static void after_one_another(struct bench *bench)
{
  uint64_t token = 0, tag = bench_tag(bench);
  const uint64_t bytes = REGION / 4;
  g_autofree uint8_t *kept = g_memdup2(bench->host, 3 * bytes);
  for (int i = 0; i < 100; i++) {
    struct device_copy there = {
        .pieces = 1, .piece = {{(uint64_t)(i % 2) * bytes, 0, bytes}}, .after = token};
    token = bench->ops->copy(bench->device, &there);
    struct device_copy back = {
        .to_host = TRUE, .pieces = 1, .piece = {{2 * bytes, 0, bytes}}, .after = token};
    back.tag = i == 99 ? tag : 0;
    token = bench->ops->copy(bench->device, &back);
  }
  bench_await(bench, tag);
  bench_verdict(bench, memcmp(bench->host + 2 * bytes, kept + bytes, bytes) == 0,
                "copies to and from the GPU that wait for one another");
  memcpy(bench->host, kept, 3 * bytes);
}

/* More copies than may be under way: each ends once, as done or as failed. */
static void too_many(struct bench *bench)
{
  const uint64_t count = DEVICE_UNDER_WAY + 1000;
  uint64_t first = bench_tags(bench, count), done = 0, failed = 0;
  for (uint64_t i = 0; i < count; i++)
    bench_copy(bench, 0, FALSE, i % 16 * (REGION / 16), REGION / 16, 0, first + i);
  for (uint64_t i = 0; i < count; i++) {
    enum device_status status = bench_await(bench, first + i)->status;
    done += status == DEVICE_DONE;
    failed += status == DEVICE_FAILED;
  }
  bench_verdict(bench, done >= DEVICE_UNDER_WAY && done + failed == count,
                "%" G_GUINT64_FORMAT " copies at once: %" G_GUINT64_FORMAT " done, the others refused", count,
                done);
}

static void outside(struct bench *bench)
{
  uint64_t tag = bench_tag(bench);
  bench_copy(bench, 0, FALSE, bench->bytes - 1, 2, 0, tag);
  gboolean good = bench_await(bench, tag)->status == DEVICE_FAILED;
  tag = bench_tag(bench);
  bench_copy(bench, 0, FALSE, 0, 4096, 0, tag);
  good = good && bench_await(bench, tag)->status == DEVICE_DONE;
  bench_verdict(bench, good, "a copy past the end fails, and the next one works");
}

void check_bytes(struct bench *bench)
{
  GRand *rand = g_rand_new_with_seed(1);
  for (uint32_t gpu = 0; gpu < bench->gpus; gpu++) {
    there_and_back(bench, gpu);
    random_pieces(bench, gpu, rand, bench->quick ? 10 : 200);
    large_group(bench, gpu);
  }
  parts(bench);
  after_one_another(bench);
  too_many(bench);
  outside(bench);
  g_rand_free(rand);
}
