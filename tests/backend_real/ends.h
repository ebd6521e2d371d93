/* Collects what a device tells of the ends of its work: tests issue, then wait for tags. Waiting has a
 * deadline, after which the test fails. */
#ifndef ENDS_H
#define ENDS_H

#include <pthread.h>

#include "backend_real/device.h"

#define ENDS_MAX 65536 /* tags are 1 .. ENDS_MAX - 1 */

struct end {
  int times; /* told; 1 is right */
  enum device_status status;
  int64_t start_ns, end_ns;
  int64_t told_ns; /* when the device called, CLOCK_MONOTONIC */
  uint32_t order;  /* 0 = the first told of all */
};

struct ends {
  pthread_mutex_t lock;
  pthread_cond_t more;
  uint32_t count;
  struct end end[ENDS_MAX];
};

struct ends *ends_new(void);
void ends_free(struct ends *ends);
/* For device_config. */
void ends_ended(void *ends, uint64_t tag, enum device_status status, int64_t start_ns, int64_t end_ns);
/* NULL: not within 20 s. */
const struct end *ends_await(struct ends *ends, uint64_t tag);
/* Forgets all: tags may be used again. Nothing is under way. */
void ends_clear(struct ends *ends);

#endif
