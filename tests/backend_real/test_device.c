/* What device.h promises, on each device that this machine has (the host device always). */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>

#include "backend_real/checksum.h"
#include "backend_real/device.h"
#include "backend_real/transport.h"
#include "core/error.h"
#include "ends.h"

#define HOST_BYTES (8u << 20)
#define GPU_BYTES  (4u << 20)
#define GPUS       2

struct lab {
  const struct device_ops *ops;
  struct device *device;
  struct ends *ends;
  uint8_t *host;
  GRand *rand;
};

static void lab_open(struct lab *lab, const struct device_ops *ops)
{
  lab->ops = ops;
  lab->ends = ends_new();
  lab->host = mmap(NULL, HOST_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  lab->rand = g_rand_new_with_seed(1);
  for (uint32_t i = 0; i < HOST_BYTES / 8; i++)
    ((uint64_t *)(void *)lab->host)[i] = checksum_mix(i);
  struct device_config config = {
      .gpus = GPUS,
      .share = TRUE,
      .gpu_bytes = GPU_BYTES,
      .host = lab->host,
      .host_bytes = HOST_BYTES,
      .ended = ends_ended,
      .context = lab->ends,
  };
  g_autoptr(GError) error = NULL;
  lab->device = ops->open(&config, &error);
  cr_assert(lab->device, "%s", error ? error->message : "");
}

static void lab_close(struct lab *lab)
{
  lab->ops->close(lab->device);
  for (uint32_t i = 0; i < ENDS_MAX; i++)
    cr_assert_leq(lab->ends->end[i].times, 1, "the end of %u was told twice", i);
  ends_free(lab->ends);
  munmap(lab->host, HOST_BYTES);
  g_rand_free(lab->rand);
}

static void on_each_device(void (*test)(struct lab *lab))
{
  for (const struct device_ops *const *ops = devices(); *ops; ops++) {
    struct lab lab;
    if ((*ops)->missing())
      continue;
    lab_open(&lab, *ops);
    test(&lab);
    lab_close(&lab);
  }
}

static enum device_status status_of(struct lab *lab, uint64_t tag)
{
  const struct end *end = ends_await(lab->ends, tag);
  cr_assert(end, "%s: tag %d never ended", lab->ops->name, (int)tag);
  cr_assert_leq(end->start_ns, end->end_ns);
  return end->status;
}

static uint64_t copy_one(struct lab *lab, uint32_t gpu, gboolean to_host, uint64_t host, uint64_t device,
                         uint64_t bytes, uint64_t tag)
{
  struct device_copy copy = {
      .gpu = gpu, .to_host = to_host, .pieces = 1, .piece = {{host, device, bytes}}, .tag = tag};
  return lab->ops->copy(lab->device, &copy);
}

static void copies_there_and_back(struct lab *lab)
{
  uint64_t tag = 0;
  for (int round = 0; round < 200; round++) {
    uint32_t gpu = (uint32_t)g_rand_int_range(lab->rand, 0, GPUS);
    uint64_t bytes = (uint64_t)g_rand_int_range(lab->rand, 0, round % 2 ? 300000 : 64);
    uint64_t from = (uint64_t)g_rand_int_range(lab->rand, 0, HOST_BYTES / 2 - 300000);
    uint64_t to = HOST_BYTES / 2 + (uint64_t)g_rand_int_range(lab->rand, 0, HOST_BYTES / 2 - 300000);
    uint64_t device = (uint64_t)g_rand_int_range(lab->rand, 0, GPU_BYTES - 300000);
    uint64_t there = copy_one(lab, gpu, FALSE, from, device, bytes, 0);
    struct device_copy back = {.gpu = gpu,
                               .to_host = TRUE,
                               .pieces = 1,
                               .piece = {{to, device, bytes}},
                               .after = there,
                               .tag = tag + 1};
    cr_assert_neq(there, lab->ops->copy(lab->device, &back));
    cr_assert_eq(status_of(lab, ++tag), DEVICE_DONE);
    cr_assert_eq(memcmp(lab->host + from, lab->host + to, bytes), 0);
  }
}

Test(device, copies_there_and_back)
{
  on_each_device(copies_there_and_back);
}

/* A compute of random cuts of an image whose place on the device is not congruent to its offset. */
static void plan_compute(struct lab *lab, struct device_compute *compute, struct device_copy *copy)
{
  uint64_t offset = g_rand_int(lab->rand), at = (uint64_t)g_rand_int_range(lab->rand, 0, 100);
  compute->pieces = copy->pieces = (uint32_t)g_rand_int_range(lab->rand, 0, DEVICE_PIECES + 1);
  compute->checksum = 0;
  for (uint32_t i = 0; i < compute->pieces; i++) {
    uint64_t bytes = (uint64_t)g_rand_int_range(lab->rand, 0, i % 2 ? 100 : 200000);
    uint64_t host = (uint64_t)g_rand_int_range(lab->rand, 0, HOST_BYTES - 200000);
    copy->piece[i] = (struct device_piece){host, at, bytes};
    compute->piece[i] = (struct device_range){at, bytes, offset};
    compute->checksum += checksum(lab->host + host, offset, bytes);
    offset += bytes;
    at += bytes + (uint64_t)g_rand_int_range(lab->rand, 0, 50);
  }
}

/* Computes come after their copies, on all streams and GPUs at once; every other has a wrong checksum. */
static void computes_verify_every_byte(struct lab *lab)
{
  gboolean wrong[400] = {FALSE};
  for (uint32_t tag = 1; tag < 400; tag++) {
    struct device_compute compute = {.gpu = tag % GPUS, .stream = tag % DEVICE_STREAMS, .tag = tag};
    struct device_copy copy = {.gpu = compute.gpu};
    plan_compute(lab, &compute, &copy);
    compute.after = lab->ops->copy(lab->device, &copy);
    wrong[tag] = tag % 2;
    compute.checksum += wrong[tag];
    lab->ops->compute(lab->device, &compute);
    /* The next copy would overwrite what this compute reads. */
    enum device_status status = status_of(lab, tag);
    cr_assert_eq(status, wrong[tag] ? DEVICE_WRONG_BYTES : DEVICE_DONE, "%s: tag %u: status %d",
                 lab->ops->name, tag, status);
  }
}

Test(device, computes_verify_every_byte)
{
  on_each_device(computes_verify_every_byte);
}

static void a_changed_byte_is_seen(struct lab *lab)
{
  const uint64_t bytes = 70001, offset = 12345, at = 777;
  uint64_t right = checksum(lab->host + 1000, offset, bytes);
  for (uint32_t tag = 1; tag < 60; tag++) {
    uint64_t where = (uint64_t)g_rand_int_range(lab->rand, 0, (int)bytes);
    if (tag == 1 || tag == 2)
      where = tag == 1 ? 0 : bytes - 1;
    lab->host[1000 + where] ^= 0x10;
    struct device_compute compute = {
        .pieces = 1, .piece = {{at, bytes, offset}}, .checksum = right, .tag = tag};
    compute.after = copy_one(lab, 0, FALSE, 1000, at, bytes, 0);
    lab->ops->compute(lab->device, &compute);
    cr_assert_eq(status_of(lab, tag), DEVICE_WRONG_BYTES, "a change of byte %d", (int)where);
    lab->host[1000 + where] ^= 0x10;
  }
}

Test(device, a_changed_byte_is_seen)
{
  on_each_device(a_changed_byte_is_seen);
}

/* 40 pieces by three computes, of which two go on. */
static void more_pieces_than_one_call_takes(struct lab *lab)
{
  for (uint32_t round = 0; round < 2; round++) {
    uint64_t sum = 0, token = copy_one(lab, 1, FALSE, 0, 0, 1 << 20, 0);
    for (uint32_t part = 0; part < 3; part++) {
      struct device_compute compute = {.gpu = 1, .stream = 3, .more = part < 2, .after = token};
      compute.pieces = part < 2 ? DEVICE_PIECES : 8;
      for (uint32_t i = 0; i < compute.pieces; i++) {
        uint64_t at = 1000 * (uint64_t)(part * DEVICE_PIECES + i);
        compute.piece[i] = (struct device_range){at, 1000, at};
      }
      compute.checksum = part == 2 ? checksum(lab->host, 0, 40000) + round : 1;
      compute.tag = part == 2 ? 1 + round : 0;
      lab->ops->compute(lab->device, &compute);
      sum += compute.pieces;
    }
    cr_assert_eq(sum, 40);
    cr_assert_eq(status_of(lab, 1 + round), round ? DEVICE_WRONG_BYTES : DEVICE_DONE);
  }
}

Test(device, more_pieces_than_one_call_takes)
{
  on_each_device(more_pieces_than_one_call_takes);
}

/* A stream's computes come one after the other and last as long as they should; streams go on at once. */
static void computes_last(struct lab *lab)
{
  const int64_t each = 50 * 1000000;
  for (uint32_t tag = 1; tag <= 6; tag++) {
    struct device_compute compute = {.stream = tag % 2, .compute_ns = each, .tag = tag};
    lab->ops->compute(lab->device, &compute);
  }
  int64_t begin = INT64_MAX, last = 0, previous[2] = {0};
  for (uint32_t tag = 1; tag <= 6; tag++) {
    cr_assert_eq(status_of(lab, tag), DEVICE_DONE);
    const struct end *end = ends_await(lab->ends, tag);
    cr_assert_geq(end->end_ns - end->start_ns, each - 50000); /* two clocks on CUDA */
    cr_assert_geq(end->start_ns, previous[tag % 2] - 50000);
    previous[tag % 2] = end->end_ns;
    begin = MIN(begin, end->start_ns);
    last = MAX(last, end->end_ns);
  }
  cr_assert_lt(last - begin, 6 * each, "two streams ran one after the other");
}

Test(device, computes_last)
{
  on_each_device(computes_last);
}

static void stop_ends_it_early(struct lab *lab)
{
  gboolean stop = FALSE;
  struct device_compute compute = {
      .compute_ns = 100 * G_GINT64_CONSTANT(1000000000), .stop = &stop, .tag = 1};
  lab->ops->compute(lab->device, &compute);
  compute.tag = 2;
  lab->ops->compute(lab->device, &compute);
  g_usleep(20000);
  cr_assert_eq(lab->ends->end[1].times, 0);
  __atomic_store_n(&stop, TRUE, __ATOMIC_RELEASE);
  cr_assert_eq(status_of(lab, 1), DEVICE_STOPPED);
  cr_assert_eq(status_of(lab, 2), DEVICE_STOPPED);
  stop = FALSE;
  compute.compute_ns = 1000;
  compute.tag = 3;
  lab->ops->compute(lab->device, &compute);
  cr_assert_eq(status_of(lab, 3), DEVICE_DONE);
}

Test(device, stop_ends_it_early)
{
  on_each_device(stop_ends_it_early);
}

/* Closing waits: everything issued before it has ended. */
static void close_waits(struct lab *lab)
{
  for (uint32_t i = 0; i < 500; i++) {
    uint64_t token = copy_one(lab, i % GPUS, i % 3 == 0, i * 4096, i * 4096, 4096, 1 + 2 * i);
    struct device_compute compute = {.gpu = i % GPUS, .stream = i % 3, .after = token, .tag = 2 + 2 * i};
    lab->ops->compute(lab->device, &compute);
  }
  lab->ops->close(lab->device);
  for (uint32_t tag = 1; tag <= 1000; tag++) {
    cr_assert_eq(lab->ends->end[tag].times, 1);
    cr_assert_eq(lab->ends->end[tag].status, DEVICE_DONE);
  }
  ends_free(lab->ends);
  munmap(lab->host, HOST_BYTES);
  g_rand_free(lab->rand);
  lab_open(lab, lab->ops);
}

Test(device, close_waits_for_all)
{
  on_each_device(close_waits);
}

static void what_lies_outside_fails(struct lab *lab)
{
  uint64_t tag = 0;
  copy_one(lab, GPUS, FALSE, 0, 0, 1, ++tag);
  copy_one(lab, 0, FALSE, HOST_BYTES, 0, 1, ++tag);
  copy_one(lab, 0, FALSE, 0, GPU_BYTES - 1, 2, ++tag);
  copy_one(lab, 0, TRUE, UINT64_MAX, 0, 2, ++tag);
  copy_one(lab, 0, TRUE, 0, 1, UINT64_MAX, ++tag);
  const struct device_compute outside[] = {
      {.gpu = GPUS},
      {.stream = DEVICE_STREAMS},
      {.pieces = 1, .piece = {{GPU_BYTES, 1, 0}}},
      {.pieces = 1, .piece = {{1, UINT64_MAX, 0}}},
      {.pieces = DEVICE_PIECES + 1},
      {.after = G_GUINT64_CONSTANT(1) << 60},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(outside); i++) {
    struct device_compute compute = outside[i];
    compute.tag = ++tag;
    lab->ops->compute(lab->device, &compute);
  }
  for (uint64_t i = 1; i <= tag; i++)
    cr_assert_eq(status_of(lab, i), DEVICE_FAILED, "%s: number %d", lab->ops->name, (int)i);
  copy_one(lab, 0, FALSE, 0, 0, 4096, ++tag);
  cr_assert_eq(status_of(lab, tag), DEVICE_DONE);
  g_autoptr(GError) error = NULL;
  cr_assert_not(lab->ops->fill(lab->device, 0, GPU_BYTES, lab->host, 1, &error));
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_FAILED));
}

Test(device, what_lies_outside_fails)
{
  on_each_device(what_lies_outside_fails);
}

/* What others write into a GPU's memory is computed on. Without a base it is known by its dma-buf alone. */
static void memory_is_for_others_to_write(struct lab *lab)
{
  for (uint32_t gpu = 0; gpu < GPUS; gpu++) {
    g_autoptr(GError) error = NULL;
    struct memory memory;
    if (!lab->ops->gpu_memory(lab->device, gpu, &memory, &error)) { /* not every driver can */
      cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_FAILED));
      continue;
    }
    cr_assert_eq(memory.bytes, GPU_BYTES);
    cr_assert(memory.base || (memory.dmabuf >= 0 && memory.dmabuf_offset == 0 && memory.pci));
    if (!memory.base)
      continue;
    memcpy(memory.base + 4711, lab->host + 99, 70001);
    struct device_compute compute = {.gpu = gpu,
                                     .pieces = 1,
                                     .piece = {{4711, 70001, 5}},
                                     .checksum = checksum(lab->host + 99, 5, 70001),
                                     .landed = TRUE,
                                     .tag = 1 + gpu};
    lab->ops->compute(lab->device, &compute);
    cr_assert_eq(status_of(lab, 1 + gpu), DEVICE_DONE);
  }
}

Test(device, memory_is_for_others_to_write)
{
  on_each_device(memory_is_for_others_to_write);
}

static void fill_is_there_at_once(struct lab *lab)
{
  g_autoptr(GError) error = NULL;
  cr_assert(lab->ops->fill(lab->device, 1, 5000, lab->host + 3, 100001, &error));
  struct device_compute compute = {.gpu = 1,
                                   .pieces = 1,
                                   .piece = {{5000, 100001, 9}},
                                   .checksum = checksum(lab->host + 3, 9, 100001),
                                   .tag = 1};
  lab->ops->compute(lab->device, &compute);
  cr_assert_eq(status_of(lab, 1), DEVICE_DONE);
  cr_assert_geq(lab->ops->memory(lab->device, 0), GPU_BYTES);
  cr_assert_gt(strlen(lab->ops->describe(lab->device, 0)), 3);
}

Test(device, fill_is_there_at_once)
{
  on_each_device(fill_is_there_at_once);
}

Test(device, by_name)
{
  g_autoptr(GError) error = NULL;
  const struct device_ops *host = device_by_name("host", &error);
  cr_assert(host && strcmp(host->name, "host") == 0);
  const struct device_ops *first = device_by_name("auto", &error);
  cr_assert(first && !first->missing());
  cr_assert_not(device_by_name("hots", &error));
  cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
  cr_assert(strstr(error->message, "\"host\"") && strstr(error->message, "auto, cuda, host"), "%s",
            error->message);
  g_clear_error(&error);
  const struct device_ops *cuda = device_by_name("cuda", &error);
  cr_assert((cuda != NULL) == (error == NULL));
  if (!cuda)
    cr_assert(strstr(error->message, "built without nvcc") || strstr(error->message, "CUDA"), "%s",
              error->message);
}
