/* Doing the open tasks of a sweep: by processes of this machine, or as a job array of a Slurm cluster. */
#ifndef DM_SWEEP_RUN_H
#define DM_SWEEP_RUN_H

#include <signal.h>

#include "backend_sim/sweep.h"

/* On this machine, jobs at once. TRUE: all are done or failed, or it was interrupted. */
gboolean sweep_run(struct sweep *sweep, guint jobs, gboolean quiet, volatile sig_atomic_t *interrupted,
                   GError **error);

struct slurm_options {
  char **command;  /* of this program, that makes the same sweep; NULL-terminated */
  char **options;  /* for sbatch, NULL-terminated; may be NULL */
  gboolean detach; /* do not wait */
  gboolean quiet;
};

/* On a cluster: submits an array of which each element does a share of the tasks ("COMMAND --share K/N"), and
 * waits until every task is filed or failed, or the job is gone. Interrupted, it cancels the job. *job: its
 * number (g_free). FALSE + DM_ERROR_FAILED: it could not be submitted. */
gboolean sweep_run_slurm(struct sweep *sweep, const struct slurm_options *options,
                         volatile sig_atomic_t *interrupted, char **job, GError **error);

/* A share "K/N" of what sweep_run_slurm listed, in the process of an array's element. Failures are noted in
 * the folder, for the process that merges. FALSE + DM_ERROR_INPUT: no such share. */
gboolean sweep_run_share(struct sweep *sweep, const char *share, guint jobs,
                         volatile sig_atomic_t *interrupted, GError **error);

#endif
