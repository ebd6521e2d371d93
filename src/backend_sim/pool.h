/* A pool of worker processes: each task runs in a forked child of its own, so many at once.
 *
 * Tasks share nothing with each other or with the caller; what a task does it leaves on disk. A child ends
 * with its parent, however that ends, and knows nothing of Ctrl-C, which is the parent's to answer. */
#ifndef DM_POOL_H
#define DM_POOL_H

#include <glib.h>
#include <signal.h>
#include <stdint.h>

#define POOL_JOBS_MAX 1024

enum { POOL_NONE = -1, POOL_STOP = -2 };

struct pool_ops {
  /* A task to start now; POOL_NONE: none for now (the pool ends when none runs and none comes); POOL_STOP:
   * what still runs is not needed. */
  int64_t (*next)(void *context);
  /* In the child. FALSE + error: its message reaches ended. */
  gboolean (*run)(void *context, uint64_t task, GError **error);
  /* In the caller; failure NULL: it is done. input: the failure was a DM_ERROR_INPUT. */
  void (*ended)(void *context, uint64_t task, const char *failure, gboolean input);
  /* In the caller, after every change and ten times a second; may be NULL. */
  void (*tick)(void *context);
};

/* Runs tasks until none comes, jobs of them at once. *interrupted ends it early: children are killed, and
 * their tasks not reported. The caller's handlers of SIGINT and SIGTERM set it. FALSE + DM_ERROR_FAILED: no
 * process could be made. */
gboolean pool_run(const struct pool_ops *ops, void *context, guint jobs, volatile sig_atomic_t *interrupted,
                  GError **error);

#endif
