/* What the checks of device_check share: a device, an arena full of known bytes, and what went wrong. */
#ifndef BENCH_H
#define BENCH_H

#include "../backend_real/ends.h"
#include "backend_real/device.h"
#include "backend_real/image.h"

struct bench {
  const struct device_ops *ops;
  struct device *device;
  struct ends *ends;
  struct image *image; /* whose bytes the arena holds, from 0 on */
  uint8_t *host;
  uint64_t bytes; /* of the arena, and of each GPU's memory */
  uint32_t gpus;
  gboolean cuda;  /* real GPUs: figures are judged */
  gboolean quick; /* few repetitions */
  uint64_t tag;   /* the last used */
  uint32_t failures;
};

/* Opens all; an error is printed, and ends the program. open_ns: how long the device took. */
void bench_open(struct bench *bench, int64_t *open_ns);
void bench_close(struct bench *bench);

/* Prints a check's verdict and counts it. */
void bench_verdict(struct bench *bench, gboolean good, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* A tag not in use; the first of so many in a row. */
uint64_t bench_tag(struct bench *bench);
uint64_t bench_tags(struct bench *bench, uint64_t count);
/* The end of a tag; one that does not come in time ends the program. */
const struct end *bench_await(struct bench *bench, uint64_t tag);

/* One piece at the same offset in the arena and on the GPU; its token. */
uint64_t bench_copy(struct bench *bench, uint32_t gpu, gboolean to_host, uint64_t offset, uint64_t bytes,
                    uint64_t after, uint64_t tag);
/* Verifies that piece on the GPU and lasts. */
void bench_compute(struct bench *bench, uint32_t gpu, uint64_t offset, uint64_t bytes, int64_t compute_ns,
                   uint64_t after, uint64_t tag);

/* Sorts and takes the p-th part, 0 .. 1. */
double bench_percentile(double *sample, unsigned count, double p);

/* The checks: bytes, then speed. */
void check_bytes(struct bench *bench);
void check_memory(struct bench *bench);
void check_copy_speed(struct bench *bench);
void check_verify_speed(struct bench *bench);
void check_latency(struct bench *bench);
void check_pipeline(struct bench *bench);
void check_gpus_at_once(struct bench *bench);

#endif
