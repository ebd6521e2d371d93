/* A sweep's result database as people read it: for each run the values of what was varied, beside its
 * figures. */
#ifndef DM_SWEEP_VIEW_H
#define DM_SWEEP_VIEW_H

#include <stdio.h>

#include "harness/store_merge.h"

struct sweep_view {
  GPtrArray *axes; /* of struct axis * */
  GPtrArray *runs; /* of struct stored_run *, in the order of tasks */
  char **value;    /* [runs x axes] */
  uint64_t tasks;  /* of the whole sweep; more than runs where it is not done, or some failed */
};

/* A task without a run. */
struct sweep_failure {
  char *system, *error;
  char **values; /* [axes], NULL-terminated */
};

/* NULL + error; also where the database is of no sweep (DM_ERROR_INPUT). */
struct sweep_view *sweep_view_read(struct store_reader *reader, GError **error);
/* A sweep of which nothing is done. */
struct sweep_view *sweep_view_empty(const GPtrArray *axes, uint64_t tasks);
void sweep_view_free(struct sweep_view *view);
typedef struct sweep_view SweepView;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SweepView, sweep_view_free)

const char *sweep_view_value(const struct sweep_view *view, guint run, guint axis);
/* The key of an axis without its section, where no other axis has the same. */
const char *axis_title(const GPtrArray *axes, guint axis);
void sweep_failure_free(struct sweep_failure *failure);

/* One line a run, aligned: the varied keys, the system, the main figures; then notes. */
void sweep_view_table(const struct sweep_view *view, FILE *out);
/* The one JSON object of `sweep --json`; failures (of struct sweep_failure *) may be NULL. Ends with a
 * newline. */
char *sweep_view_json(const struct sweep_view *view, const GPtrArray *failures);

#endif
