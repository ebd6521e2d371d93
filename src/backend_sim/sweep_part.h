/* What the files of sweep*.c share. */
#ifndef DM_SWEEP_PART_H
#define DM_SWEEP_PART_H

#include "backend_sim/sweep.h"
#include "harness/experiment.h"
#include "harness/experiment_layers.h"
#include "harness/setup.h"

/* Of OUT where none is given. */
/* In the folder: tasks that a job array does, a number a line. */
#define SWEEP_LIST_FILE "slurm-list"

/* Numbers (uint64_t) of the tasks that are open; free with g_array_unref. */
GArray *sweep_open_tasks(const struct sweep *sweep);
/* Settings where each axis has the value of its index; free with g_strfreev. */
char **sweep_sets_at(const struct sweep *sweep, const guint *index);
/* Fills sweep->facts; base: the experiment without the axes. */
void sweep_facts_init(struct sweep *sweep, const struct experiment *base);
/* FALSE + DM_ERROR_INPUT that says which fact differs. path: whose facts these are. */
gboolean sweep_facts_same(const GArray *ours, const GArray *theirs, const char *path, GError **error);
/* As text, a line each, and back; NULL: not such a text. */
char *sweep_facts_text(const GArray *facts);
GArray *sweep_facts_read(const char *text);

#endif
