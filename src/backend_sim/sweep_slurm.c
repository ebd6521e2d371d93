/* A sweep as a job array of a Slurm cluster; see sweep_run.h.
 *
 * The folder of the tasks must be one that all nodes see. Nothing is sent over the network but by that
 * folder: an element reads the experiment and the list of tasks, writes each result database on its own disk
 * and moves it there whole; this process sees the files come, and asks Slurm only whether the job is still
 * there. */
#include "backend_sim/sweep_run.h"

#include <glib/gstdio.h>
#include <string.h>

#include "backend_sim/sweep_part.h"
#include "core/error.h"
#include "harness/progress.h"

#define SHARES_DEFAULT 1000 /* a cluster's MaxArraySize is 1001 unless it says otherwise */
#define LOOK_US        (G_USEC_PER_SEC / 4)
#define ASK_US         (5 * G_USEC_PER_SEC)
#define LATE_US        (5 * G_USEC_PER_SEC) /* how long files may be on their way once the job is gone */
#define EXCERPT_MOST   600                  /* bytes of an element's output in an error message */

/* --- Slurm's commands
 * ------------------------------------------------------------------------------------------------*/

/* Standard output of a command, stripped; NULL + DM_ERROR_FAILED with what it complained of. */
static char *command_output(const char *const *argv, GError **error)
{
  g_autoptr(GError) failure = NULL;
  g_autofree char *out = NULL, *complaint = NULL;
  int status = 0;
  if (!g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &out, &complaint, &status,
                    &failure)) {
    gboolean absent = g_error_matches(failure, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT);
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: %s", argv[0],
                absent ? "no such program: Slurm is not installed here" : failure->message);
    return NULL;
  }
  if (!g_spawn_check_wait_status(status, NULL)) {
    g_autofree char *text = g_utf8_make_valid(*complaint ? complaint : out, -1);
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: %s", argv[0], g_strstrip(text));
    return NULL;
  }
  return g_strdup(g_strstrip(out));
}

/* Elements that an array may have. */
static guint shares_most(void)
{
  static const char *const argv[] = {"scontrol", "show", "config", NULL};
  g_autofree char *text = command_output(argv, NULL);
  const char *at = text ? strstr(text, "MaxArraySize") : NULL;
  at = at ? strchr(at, '=') : NULL;
  guint64 size = at ? g_ascii_strtoull(at + 1, NULL, 10) : 0;
  return size > 1 ? (guint)MIN(size - 1, SHARES_DEFAULT) : SHARES_DEFAULT;
}

/* The job is in Slurm's queue; an answer that says nothing counts as yes. */
static gboolean is_queued(const char *job)
{
  const char *const argv[] = {"squeue", "-h", "-o", "%T", "-j", job, NULL};
  g_autoptr(GError) error = NULL;
  g_autofree char *text = command_output(argv, &error);
  return text ? *text != '\0' : strstr(error->message, "Invalid job id") == NULL;
}

static void cancel(const char *job)
{
  const char *const argv[] = {"scancel", job, NULL};
  g_free(command_output(argv, NULL)); /* a job that is gone needs no cancelling */
}

/* --- submitting
 * ------------------------------------------------------------------------------------------------------*/

static char *list_text(const GArray *list)
{
  GString *text = g_string_new(NULL);
  for (guint i = 0; i < list->len; i++)
    g_string_append_printf(text, "%" G_GUINT64_FORMAT "\n", g_array_index(list, uint64_t, i));
  return g_string_free(text, FALSE);
}

static char *script_text(const struct slurm_options *options, guint shares)
{
  GString *text = g_string_new("#!/bin/bash\nexec");
  for (char **word = options->command; *word; word++) {
    g_autofree char *quoted = g_shell_quote(*word);
    g_string_append_printf(text, " %s", quoted);
  }
  g_string_append_printf(text, " --share \"$SLURM_ARRAY_TASK_ID/%u\" --jobs \"${SLURM_CPUS_PER_TASK:-1}\"\n",
                         shares);
  return g_string_free(text, FALSE);
}

static gboolean write_file(const char *path, const char *text, GError **error)
{
  g_autoptr(GError) failure = NULL;
  if (g_file_set_contents(path, text, -1, &failure))
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: %s", path, failure->message);
  return FALSE;
}

/* The job's number, or NULL + error. */
static char *submit(const struct sweep *sweep, const struct slurm_options *options, guint shares,
                    GError **error)
{
  g_autofree char *folder = g_canonicalize_filename(sweep->folder, NULL), *here = g_get_current_dir();
  g_autofree char *script = g_build_filename(folder, "slurm-job.sh", NULL);
  g_autofree char *text = script_text(options, shares);
  g_auto(GStrv) parts = g_strsplit(folder, "%", -1); /* Slurm puts numbers where a file's name has a "%" */
  g_autofree char *pattern = g_strjoinv("%%", parts);
  if (!write_file(script, text, error))
    return NULL;
  g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
  g_ptr_array_add(argv, g_strdup("sbatch"));
  g_ptr_array_add(argv, g_strdup("--parsable"));
  g_ptr_array_add(argv, g_strdup("--job-name=distmind-sweep"));
  g_ptr_array_add(argv, g_strdup_printf("--array=0-%u", shares - 1));
  g_ptr_array_add(argv, g_strconcat("--chdir=", here, NULL));
  g_ptr_array_add(argv, g_strconcat("--output=", pattern, "/slurm-%a.out", NULL));
  for (char **word = options->options; word && *word; word++)
    g_ptr_array_add(argv, g_strdup(*word));
  g_ptr_array_add(argv, g_strdup(script));
  g_ptr_array_add(argv, NULL);
  char *job = command_output((const char *const *)argv->pdata, error);
  return job ? g_strdelimit(job, ";", '\0') : NULL; /* "JOB;CLUSTER" of a federation */
}

/* --- waiting
 * ---------------------------------------------------------------------------------------------------------*/

/* A change of one's own makes a network file system look at the folder anew; it may not for a minute else. */
static void refresh(const struct sweep *sweep)
{
  g_autofree char *path = g_build_filename(sweep->folder, "slurm-look", NULL);
  g_file_set_contents(path, "", 0, NULL);
  g_unlink(path);
}

/* Until all tasks are filed or failed, or the job has been gone for a while. */
static void wait_for(struct sweep *sweep, const char *job, guint tasks, gboolean quiet,
                     volatile sig_atomic_t *interrupted)
{
  gint64 asked = g_get_monotonic_time(), gone = 0;
  g_autofree char *label = g_strdup_printf("job %s, %u runs", job, tasks);
  struct progress *progress = progress_new(0, label, quiet);
  while (!*interrupted) {
    if (gone)
      refresh(sweep);
    sweep_look(sweep);
    uint64_t open = sweep_count(sweep, TASK_OPEN);
    gint64 now = g_get_monotonic_time();
    if (open == 0 || (gone && now - gone > LATE_US))
      break;
    if (!gone && now - asked > ASK_US) {
      asked = now;
      gone = is_queued(job) ? 0 : now;
    }
    progress_share(progress, 1 - (double)open / tasks);
    g_usleep(LOOK_US);
  }
  progress_free(progress);
}

/* The end of what an element printed, in one line. Free with g_free. */
static char *excerpt(const struct sweep *sweep, guint share)
{
  g_autofree char *name = g_strdup_printf("slurm-%u.out", share);
  g_autofree char *path = g_build_filename(sweep->folder, name, NULL), *text = NULL;
  gsize length = 0;
  if (!g_file_get_contents(path, &text, &length, NULL) || length == 0)
    return g_strdup("it printed nothing");
  g_autofree char *end = g_utf8_make_valid(text + (length > EXCERPT_MOST ? length - EXCERPT_MOST : 0), -1);
  return g_strdup(g_strstrip(g_strdelimit(end, "\r\n", ' ')));
}

/* What a job left undone failed. */
static void give_up(struct sweep *sweep, const GArray *list, guint shares, const char *job)
{
  for (guint i = 0; i < list->len; i++) {
    uint64_t task = g_array_index(list, uint64_t, i);
    if (sweep->task[task].state != TASK_OPEN)
      continue;
    g_autofree char *printed = excerpt(sweep, i % shares);
    g_autofree char *why =
        g_strdup_printf("element %u of job %s left no result: %s", i % shares, job, printed);
    sweep_task_ended(sweep, task, why);
  }
}

gboolean sweep_run_slurm(struct sweep *sweep, const struct slurm_options *options,
                         volatile sig_atomic_t *interrupted, char **job, GError **error)
{
  g_autoptr(GArray) list = sweep_open_tasks(sweep);
  g_autofree char *path = g_build_filename(sweep->folder, SWEEP_LIST_FILE, NULL), *text = list_text(list);
  *job = NULL;
  if (list->len == 0)
    return TRUE;
  guint shares = MIN(list->len, shares_most());
  if (!write_file(path, text, error))
    return FALSE;
  *job = submit(sweep, options, shares, error);
  if (!*job || options->detach)
    return *job != NULL;
  wait_for(sweep, *job, list->len, options->quiet, interrupted);
  if (*interrupted)
    cancel(*job);
  else
    give_up(sweep, list, shares, *job);
  return TRUE;
}
