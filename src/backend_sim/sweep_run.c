/* Doing tasks by processes of this machine; see sweep_run.h. */
#include "backend_sim/sweep_run.h"

#include <stdio.h>

#include "backend_sim/pool.h"
#include "backend_sim/sweep_part.h"
#include "core/error.h"
#include "harness/progress.h"
#include "harness/setting.h"

struct job {
  struct sweep *sweep;
  const GArray *list; /* of uint64_t: tasks */
  guint next, ended;
  struct progress *progress;
  gboolean notes; /* failures are noted in the folder */
  GError *failure;
};

static int64_t job_next(void *context)
{
  struct job *job = context;
  return job->next < job->list->len ? (int64_t)g_array_index(job->list, uint64_t, job->next++) : POOL_NONE;
}

static gboolean job_run(void *context, uint64_t task, GError **error)
{
  return sweep_run_task(((struct job *)context)->sweep, task, error);
}

static void job_ended(void *context, uint64_t task, const char *failure, G_GNUC_UNUSED gboolean input)
{
  struct job *job = context;
  sweep_task_ended(job->sweep, task, failure);
  if (failure && job->notes && !job->failure)
    sweep_note_failure(job->sweep, task, &job->failure);
  job->ended++;
}

static void job_tick(void *context)
{
  struct job *job = context;
  progress_share(job->progress, (double)job->ended / MAX(job->list->len, 1));
}

static const struct pool_ops job_ops = {
    .next = job_next, .run = job_run, .ended = job_ended, .tick = job_tick};

static gboolean run_list(struct sweep *sweep, const GArray *list, guint jobs, gboolean quiet, gboolean notes,
                         volatile sig_atomic_t *interrupted, GError **error)
{
  struct job job = {.sweep = sweep, .list = list, .notes = notes};
  g_autofree char *label = g_strdup_printf("%u runs", list->len);
  job.progress = progress_new(0, label, quiet);
  gboolean good = pool_run(&job_ops, &job, jobs, interrupted, error);
  progress_free(job.progress);
  if (!job.failure)
    return good;
  if (good)
    g_propagate_error(error, g_steal_pointer(&job.failure));
  g_clear_error(&job.failure);
  return FALSE;
}

GArray *sweep_open_tasks(const struct sweep *sweep)
{
  GArray *list = g_array_new(FALSE, FALSE, sizeof(uint64_t));
  for (uint64_t i = 0; i < sweep->count; i++)
    if (sweep->task[i].state == TASK_OPEN)
      g_array_append_val(list, i);
  return list;
}

gboolean sweep_run(struct sweep *sweep, guint jobs, gboolean quiet, volatile sig_atomic_t *interrupted,
                   GError **error)
{
  g_autoptr(GArray) list = sweep_open_tasks(sweep);
  if (!run_list(sweep, list, jobs, quiet, FALSE, interrupted, error))
    return FALSE;
  if (*interrupted)
    sweep_look(sweep); /* a task may have been done whose process had not ended */
  return TRUE;
}

/* --- a share
 * --------------------------------------------------------------------------------------------------------*/

/* Every N-th task of the list from the K-th on, but what is done by now. */
static GArray *share_list(const struct sweep *sweep, const char *text, guint share, guint shares)
{
  g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
  GArray *list = g_array_new(FALSE, FALSE, sizeof(uint64_t));
  for (guint i = 0; lines[i]; i++) {
    guint64 task;
    if (i % shares == share && g_ascii_string_to_unsigned(lines[i], 10, 0, G_MAXUINT64, &task, NULL) &&
        task < sweep->count && sweep->task[task].state == TASK_OPEN)
      g_array_append_val(list, task);
  }
  return list;
}

/* Digits alone: scanf would take "-4294967295/2" for 1/2. */
static gboolean share_parse(const char *text, unsigned *k, unsigned *n, GError **error)
{
  g_auto(GStrv) parts = g_strsplit(text, "/", 3);
  guint64 part = 0, parts_all = 0;
  if (g_strv_length(parts) != 2 || !integer_parse(parts[1], 1, G_MAXUINT, &parts_all, NULL) ||
      !integer_parse(parts[0], 0, parts_all - 1, &part, NULL))
    return input_error(error, "--share", 0, "expected K/N with K below N, found \"%s\"", text);
  *k = (unsigned)part;
  *n = (unsigned)parts_all;
  return TRUE;
}

gboolean sweep_run_share(struct sweep *sweep, const char *share, guint jobs,
                         volatile sig_atomic_t *interrupted, GError **error)
{
  unsigned k = 0, n = 1;
  if (!share_parse(share, &k, &n, error) || !sweep_join(sweep, error))
    return FALSE;
  g_autofree char *path = g_build_filename(sweep->folder, SWEEP_LIST_FILE, NULL), *text = NULL;
  if (!g_file_get_contents(path, &text, NULL, NULL))
    return input_error(error, path, 0, "cannot be read: the sweep is not being run by --slurm");
  g_autoptr(GArray) list = share_list(sweep, text, k, n);
  sweep->scratch = TRUE;
  if (!run_list(sweep, list, jobs, TRUE, TRUE, interrupted, error))
    return FALSE;
  if (*interrupted)
    g_set_error_literal(error, DM_ERROR, DM_ERROR_INTERRUPTED, "interrupted");
  return !*interrupted;
}
