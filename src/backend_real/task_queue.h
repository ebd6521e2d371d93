/* A queue of a device's work, in order, between the thread that issues and the one that does it.
 *
 * Grows as needed; steady use allocates nothing. Not locked: its owner does that. */
#ifndef DM_TASK_QUEUE_H
#define DM_TASK_QUEUE_H

#include "backend_real/device.h"

struct task {
  gboolean refused; /* named what is not there: ends as failed */
  int64_t issued_ns;
  uint64_t tag;
  union {
    struct device_copy copy;
    struct device_compute compute;
  };
};

struct task_queue {
  struct task *task;
  uint32_t room, first, count;
};

void task_queue_clear(struct task_queue *queue);
/* The new last one, not yet filled in. */
struct task *task_queue_push(struct task_queue *queue);
/* FALSE: there is none. */
gboolean task_queue_pop(struct task_queue *queue, struct task *task);

#endif
