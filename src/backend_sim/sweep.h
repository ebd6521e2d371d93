/* A sweep: an experiment at every point of a product of settings, under each of its systems.
 *
 * A task is one system at one point; tasks share nothing, and each writes a result database of its own into
 * the folder OUT.tasks. What is done is merged into the one database OUT at the end, and also after Ctrl-C
 * and a failed task; then the folder goes. So the runs of OUT and the files of the folder are what is done,
 * whenever a sweep is killed, and the same sweep started again does the rest. Both say of which sweep they
 * are (facts: program version, experiment, inputs, settings, axes, systems). */
#ifndef DM_SWEEP_H
#define DM_SWEEP_H

#include "harness/store_merge.h"

struct sweep_spec {
  const char *experiment;
  char **sets; /* --set, NULL-terminated, may be NULL; also what --system, --trace and --seed stand for */
  const GPtrArray *axes; /* of struct axis *; copied */
  guint repeat;          /* > 0: an axis experiment.seed of so many seeds from the experiment's own */
  const char *out;       /* NULL: results/NAME-SUFFIX.db */
  const char *suffix;
};

enum task_state { TASK_OPEN, TASK_STORED, TASK_WRITTEN, TASK_FAILED };

struct sweep_task {
  enum task_state state;
  int64_t run; /* stored: its number in OUT (written: 1, in the file of its own) */
  char *error; /* failed: why */
};

struct sweep {
  char *experiment, *out, *folder;
  gboolean default_out; /* where none was given: the folder that it lies in may have to be made */
  char *name;           /* of the experiment */
  char **sets;
  GPtrArray *axes; /* of struct axis * */
  char **systems;  /* in the order of the experiment */
  guint system_count;
  uint64_t points, count; /* count: of tasks, points x systems */
  struct sweep_task *task;
  GArray *facts;
  int lock;          /* descriptor of the folder's lock, or -1 */
  gboolean replaces; /* OUT is of another sweep and will be replaced */
  gboolean scratch;  /* tasks write on this machine's own disk, and move the file to the folder */
};

/* Reads the experiment without its axes. Nothing is written. NULL + DM_ERROR_INPUT. */
struct sweep *sweep_create(const struct sweep_spec *spec, GError **error);
void sweep_destroy(struct sweep *sweep);
typedef struct sweep Sweep;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Sweep, sweep_destroy)

/* Before anything runs or is written: what no run can make of the experiment at some point, as of `run`: a
 * wrong value, a model that is not there. What does not fit (memory, replicas) is no such defect: that task
 * fails, or does not hold. Traces are not read. FALSE + DM_ERROR_INPUT that names the first such point. */
gboolean sweep_check(const struct sweep *sweep, GError **error);
/* The same for what does not fit at any point, in a sweep of few enough tasks to look at each; of more, each
 * says it for itself. FALSE + DM_ERROR_INPUT of the first. */
gboolean sweep_check_fit(const struct sweep *sweep, GError **error);

/* Settings of a task, the axes' after all others; free with g_strfreev. */
char **sweep_task_sets(const struct sweep *sweep, uint64_t task);
const char *sweep_task_system(const struct sweep *sweep, uint64_t task);
/* "KEY=VALUE, …, SYSTEM" for people. */
char *sweep_task_name(const struct sweep *sweep, uint64_t task);
/* Its database once it is done. */
char *sweep_task_file(const struct sweep *sweep, uint64_t task);

/* The task can be set up. FALSE + DM_ERROR_INPUT. */
gboolean sweep_task_fits(const struct sweep *sweep, uint64_t task, GError **error);

/* Looks for what is done already, and what is known to have failed. FALSE + DM_ERROR_INPUT: OUT or the folder
 * is of something else (and not force, which begins anew), or another process has the folder. */
gboolean sweep_open(struct sweep *sweep, gboolean force, GError **error);
/* sweep_open for a process that does no task: makes no folder. FALSE + DM_ERROR_INPUT also where there is
 * none and OUT lacks some of the sweep. */
gboolean sweep_reopen(struct sweep *sweep, GError **error);
/* What failed becomes open again. */
void sweep_retry(struct sweep *sweep);
/* sweep_open for a process that does a share of an open sweep's tasks: the folder is there and stays. */
gboolean sweep_join(struct sweep *sweep, GError **error);
/* Looks which tasks have been filed since: of those still open. */
void sweep_look(struct sweep *sweep);
/* Tasks in a state. */
uint64_t sweep_count(const struct sweep *sweep, enum task_state state);
/* Does one task, in the calling process, up to its file. FALSE + error: nothing is left of it. */
gboolean sweep_run_task(const struct sweep *sweep, uint64_t task, GError **error);
/* Marks what came of a task: failure NULL means that it is filed. */
void sweep_task_ended(struct sweep *sweep, uint64_t task, const char *failure);
/* Leaves word in the folder why a task failed, for the process that merges. */
gboolean sweep_note_failure(const struct sweep *sweep, uint64_t task, GError **error);
/* Merges all that is done into OUT and removes the folder. */
gboolean sweep_close(struct sweep *sweep, GError **error);

#endif
