/* Planning: which points are run, and what they say; see plan.h. */
#include "backend_sim/plan.h"

#include <string.h>

#include "backend_sim/pool.h"
#include "core/error.h"
#include "harness/progress.h"
#include "harness/setting.h"
#include "harness/store_schema.h"

#define AHEAD_MOST 64 /* points of one search that may be run before it is known that they are needed */

/* --- what is to hold
 * ------------------------------------------------------------------------------------------------*/

gboolean hold_parse(const char *text, struct hold *hold, GError **error)
{
  g_autofree char *file = g_strdup_printf("--hold %s", text);
  const char *relation = strstr(text, ">=");
  hold->at_least = relation != NULL;
  if (!relation)
    relation = strstr(text, "<=");
  if (!relation)
    return input_error(error, file, 0, "expected FIGURE>=X or FIGURE<=X, as in \"slo_attainment>=0.99\"");
  g_autofree char *name = g_strstrip(g_strndup(text, (gsize)(relation - text)));
  g_autofree char *bound = g_strstrip(g_strdup(relation + 2));
  g_autoptr(GError) inner = NULL;
  hold->figure = figure_find(name, file, error);
  if (!hold->figure)
    return FALSE;
  if (!number_parse(bound, -1e300, 1e300, &hold->bound, &inner))
    return input_error(error, file, 0, "%s", inner->message);
  if (g_str_equal(hold->figure->name, "wall_s"))
    return input_error(error, file, 0, "wall_s is not the same from run to run");
  hold->name = hold->figure->group ? g_strconcat(hold->figure->group, ".", hold->figure->name, NULL)
                                   : g_strdup(hold->figure->name);
  return TRUE;
}

/* Latencies of a run that completed nothing do not hold. */
static gboolean hold_met(const struct hold *hold, const struct figures *figures)
{
  double value = figure_number(figures, hold->figure);
  if (g_strcmp0(hold->figure->group, "latency_ms") == 0 && figures->completed == 0)
    return FALSE;
  return hold->at_least ? value >= hold->bound : value <= hold->bound;
}

/* --- points
 * ---------------------------------------------------------------------------------------------------------*/

const char *plan_value(const struct plan *plan, uint32_t index)
{
  const struct axis *axis = plan->sweep->axes->pdata[0];
  return axis->values[plan->most ? plan->values - 1 - index : index];
}

uint64_t plan_task_of(const struct plan *plan, uint64_t search, uint32_t index)
{
  return (plan->most ? plan->values - 1 - index : index) * plan->searches + search;
}

const char *plan_system(const struct plan *plan, uint64_t search)
{
  return sweep_task_system(plan->sweep, search);
}

static void take_figures(struct plan *plan, uint64_t task, const struct figures *figures)
{
  plan->task[task].value = figure_number(figures, plan->hold.figure);
  plan->task[task].verdict = hold_met(&plan->hold, figures) ? VERDICT_YES : VERDICT_NO;
}

/* Of a task that is filed; a file that cannot be read is a task to do again. */
static gboolean read_filed(struct plan *plan, uint64_t task, GError **error)
{
  g_autofree char *file = sweep_task_file(plan->sweep, task);
  g_autoptr(StoreReader) reader = store_open(file, error);
  g_autoptr(GPtrArray) runs = reader ? store_runs(reader, error) : NULL;
  if (!runs)
    return FALSE;
  if (runs->len != 1)
    return input_error(error, file, 0, "expected one run, found %u", runs->len);
  take_figures(plan, task, &((const struct stored_run *)runs->pdata[0])->figures);
  return TRUE;
}

/* What the sweep has already. */
static gboolean read_done(struct plan *plan, GError **error)
{
  g_autoptr(GPtrArray) runs = NULL;
  if (sweep_count(plan->sweep, TASK_STORED) > 0) {
    g_autoptr(StoreReader) reader = store_open(plan->sweep->out, error);
    runs = reader ? store_runs(reader, error) : NULL;
    if (!runs)
      return FALSE;
  }
  guint at = 0; /* runs are in order of tasks */
  for (uint64_t i = 0; i < plan->sweep->count; i++) {
    const struct sweep_task *task = &plan->sweep->task[i];
    if (task->state == TASK_WRITTEN && !read_filed(plan, i, error))
      return FALSE;
    if (task->state != TASK_STORED)
      continue;
    while (at < runs->len && ((const struct stored_run *)runs->pdata[at])->id != task->run)
      at++;
    if (at == runs->len)
      return input_error(error, plan->sweep->out, 0, "its runs are not in the order of their points");
    take_figures(plan, i, &((const struct stored_run *)runs->pdata[at])->figures);
  }
  return TRUE;
}

/* --- searches
 * -------------------------------------------------------------------------------------------------------*/

struct view {
  struct plan *plan;
  uint64_t search;
  gboolean note; /* what is asked for is marked so */
};

static enum verdict known(void *context, uint32_t index)
{
  const struct view *view = context;
  struct plan_task *task = &view->plan->task[plan_task_of(view->plan, view->search, index)];
  task->asked = task->asked || view->note;
  return task->verdict;
}

static gboolean search_look(struct plan *plan, uint64_t search)
{
  struct view view = {plan, search, TRUE};
  plan->result[search] = bisect(plan->values, known, &view);
  return plan->result[search].done;
}

gboolean plan_is_done(const struct plan *plan)
{
  for (uint64_t i = 0; i < plan->searches; i++)
    if (!plan->result[i].done)
      return FALSE;
  return TRUE;
}

/* The most certain point that no process has: every search's needed one first, then every one's second. */
static int64_t best_point(struct plan *plan, uint32_t ahead)
{
  int64_t best = POOL_NONE;
  uint32_t best_rank = ahead;
  for (uint64_t search = 0; search < plan->searches && best_rank > 0; search++) {
    uint32_t index[AHEAD_MOST];
    struct view view = {plan, search, FALSE};
    if (plan->result[search].done)
      continue;
    uint32_t found = bisect_ahead(plan->values, known, &view, index, best_rank);
    for (uint32_t rank = 0; rank < found; rank++) {
      uint64_t task = plan_task_of(plan, search, index[rank]);
      if (plan->task[task].started)
        continue;
      best = (int64_t)task;
      best_rank = rank;
      break;
    }
  }
  return best;
}

/* --- the pool's view
 * ------------------------------------------------------------------------------------------------*/

struct job {
  struct plan *plan;
  struct progress *progress;
  guint ahead;
  uint64_t likely; /* points that the searches will ask for, about */
};

static int64_t job_next(void *context)
{
  struct job *job = context;
  if (plan_is_done(job->plan))
    return POOL_STOP;
  int64_t task = best_point(job->plan, job->ahead);
  if (task >= 0)
    job->plan->task[task].started = TRUE;
  return task;
}

static gboolean job_run(void *context, uint64_t task, GError **error)
{
  return sweep_run_task(((struct job *)context)->plan->sweep, task, error);
}

static void job_ended(void *context, uint64_t task, const char *failure, gboolean input)
{
  struct plan *plan = ((struct job *)context)->plan;
  g_autoptr(GError) error = NULL;
  sweep_task_ended(plan->sweep, task, failure);
  if (!failure && !read_filed(plan, task, &error))
    sweep_task_ended(plan->sweep, task, error->message);
  if (plan->sweep->task[task].state == TASK_FAILED) {
    plan->task[task].verdict = VERDICT_NO;
    /* A trace may be bad input too, but that is no answer. */
    plan->task[task].infeasible = input && !sweep_task_fits(plan->sweep, task, NULL);
  }
  search_look(plan, task % plan->searches);
}

static void job_tick(void *context)
{
  struct job *job = context;
  uint64_t asked = 0;
  for (uint64_t i = 0; i < job->plan->sweep->count; i++)
    asked += job->plan->task[i].asked && job->plan->task[i].verdict != VERDICT_UNKNOWN;
  progress_share(job->progress, (double)asked / (double)MAX(job->likely, asked + 1));
}

static const struct pool_ops job_ops = {
    .next = job_next, .run = job_run, .ended = job_ended, .tick = job_tick};

/* Points of a search where all is monotone: the halvings and the neighbours that they did not meet. */
static uint64_t likely_points(const struct plan *plan)
{
  uint64_t each = 3;
  for (uint32_t n = plan->values; n > 0; n /= 2)
    each++;
  return plan->searches * MIN(each, plan->values);
}

gboolean plan_run(struct plan *plan, guint jobs, gboolean quiet, volatile sig_atomic_t *interrupted,
                  GError **error)
{
  struct job job = {.plan = plan, .ahead = CLAMP(2 * jobs, 1, AHEAD_MOST), .likely = likely_points(plan)};
  if (jobs == 1)
    job.ahead = 1; /* a guess would only delay what is needed */
  job.progress = progress_new(0, "plan", quiet);
  gboolean good = pool_run(&job_ops, &job, jobs, interrupted, error);
  progress_free(job.progress);
  if (good && *interrupted)
    sweep_look(plan->sweep); /* a task may have been done whose process had not ended */
  return good;
}

void plan_forget_guesses(struct plan *plan)
{
  for (uint64_t i = 0; i < plan->sweep->count; i++)
    if (plan->sweep->task[i].state != TASK_STORED && !plan->task[i].asked)
      plan->sweep->task[i].state = TASK_OPEN;
}

/* --- making one
 * -----------------------------------------------------------------------------------------------------*/

gboolean plan_check(const struct sweep *sweep, GError **error)
{
  const struct axis *axis = sweep->axes->pdata[0];
  double before = 0, value;
  for (guint i = 0; i < axis->count; i++, before = value) {
    if (!number_parse(axis->values[i], -G_MAXDOUBLE, G_MAXDOUBLE, &value, NULL))
      return TRUE; /* words: in the order given */
    if (i > 0 && value <= before)
      return input_error(error, "--vary", 0, "%s: expected ascending values, found %s after %s", axis->key,
                         axis->values[i], axis->values[i - 1]);
  }
  return TRUE;
}

struct plan *plan_new(struct sweep *sweep, const struct hold *hold, gboolean most, GError **error)
{
  g_autoptr(Plan) plan = g_new0(struct plan, 1);
  const struct axis *axis = sweep->axes->pdata[0];
  plan->sweep = sweep;
  plan->hold = *hold;
  plan->most = most;
  plan->values = axis->count;
  plan->searches = sweep->count / axis->count;
  plan->task = g_new0(struct plan_task, sweep->count);
  plan->result = g_new0(struct bisection, plan->searches);
  if (!read_done(plan, error))
    return NULL;
  for (uint64_t i = 0; i < sweep->count; i++)
    plan->task[i].started = plan->task[i].verdict != VERDICT_UNKNOWN;
  for (uint64_t i = 0; i < plan->searches; i++)
    search_look(plan, i);
  return g_steal_pointer(&plan);
}

void plan_free(struct plan *plan)
{
  if (!plan)
    return;
  g_free(plan->task);
  g_free(plan->result);
  g_free(plan);
}
