/* A plan: the least (or greatest) value of a key for which a figure of the run holds to a bound, for each
 * system and each setting of the other varied keys.
 *
 * It is a sweep of which only the points that bisect asks for are run; points that may be asked for later are
 * run while processors are idle, but what is told, stored and drawn is what was asked for, so it does not
 * depend on how many there are. A point that cannot be set up (no memory for the models, say) does not hold.
 */
#ifndef DM_PLAN_H
#define DM_PLAN_H

#include <signal.h>
#include <stdio.h>

#include "backend_sim/bisect.h"
#include "backend_sim/sweep.h"
#include "harness/figures.h"

/* `FIGURE>=X`, `FIGURE<=X`. */
struct hold {
  const struct figure_field *figure;
  gboolean at_least;
  double bound;
  char *name; /* of the figure, as the JSON object has it */
};

/* FALSE + DM_ERROR_INPUT that names --hold. Clear with g_free(hold->name). */
gboolean hold_parse(const char *text, struct hold *hold, GError **error);

struct plan_task {
  enum verdict verdict;
  gboolean started, asked, infeasible; /* infeasible: it cannot be set up */
  double value;                        /* of the figure */
};

struct plan {
  struct sweep *sweep; /* axis 0 is planned */
  struct hold hold;
  gboolean most;     /* the greatest value that holds, not the least */
  uint32_t values;   /* of axis 0 */
  uint64_t searches; /* other settings x systems */
  struct plan_task *task;
  struct bisection *result; /* [searches], once done */
};

/* FALSE + DM_ERROR_INPUT: values of axis 0 that are numbers, but do not ascend. */
gboolean plan_check(const struct sweep *sweep, GError **error);
/* The sweep must be open; it and hold->name outlive the plan. NULL + error: what was done cannot be read. */
struct plan *plan_new(struct sweep *sweep, const struct hold *hold, gboolean most, GError **error);
void plan_free(struct plan *plan);
typedef struct plan Plan;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Plan, plan_free)

/* Runs what is needed. TRUE: all answers are known, or it was interrupted. */
gboolean plan_run(struct plan *plan, guint jobs, gboolean quiet, volatile sig_atomic_t *interrupted,
                  GError **error);
/* Every search is done. */
gboolean plan_is_done(const struct plan *plan);
/* Tasks that nobody asked for are forgotten, so that the sweep's database has none. */
void plan_forget_guesses(struct plan *plan);

/* Task of the index-th value that a search looks at (from the end with `most`), and that value's text. */
uint64_t plan_task_of(const struct plan *plan, uint64_t search, uint32_t index);
const char *plan_value(const struct plan *plan, uint32_t index);
const char *plan_system(const struct plan *plan, uint64_t search);

/* What came of it. */
void plan_table(const struct plan *plan, FILE *out);
char *plan_json(const struct plan *plan, const char *experiment);
gboolean plan_plot(const struct plan *plan, const char *experiment, gboolean estimated, const char *path,
                   GError **error);

#endif
