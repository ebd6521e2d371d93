/* What of a sweep is on disk: OUT, and the folder OUT.tasks while it goes on; see sweep.h. */
#include "backend_sim/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend_sim/sweep_part.h"
#include "core/error.h"
#include "harness/command.h"
#include "harness/output_file.h"
#include "harness/store_files.h"
#include "harness/store_schema.h"

/* The workers of a sweep that was killed end a moment after it. */
#define LOCK_WAIT_US (5 * G_USEC_PER_SEC)
#define LOCK_POLL_US 20000

static char *folder_file(const struct sweep *sweep, const char *name)
{
  return g_build_filename(sweep->folder, name, NULL);
}

static char *task_file(const struct sweep *sweep, uint64_t task, const char *ending)
{
  g_autofree char *name = g_strdup_printf("task-%06" G_GUINT64_FORMAT "%s", task, ending);
  return folder_file(sweep, name);
}

char *sweep_task_file(const struct sweep *sweep, uint64_t task)
{
  return task_file(sweep, task, ".db");
}

/* --- the folder itself
 * ----------------------------------------------------------------------------------------------*/

static gboolean folder_make(const struct sweep *sweep, GError **error)
{
  if (sweep->default_out)
    g_mkdir(OUTPUT_FOLDER, 0777); /* there already, or what writes there says what is wrong */
  if (g_mkdir(sweep->folder, 0777) == 0 || errno == EEXIST)
    return TRUE;
  return input_error(error, sweep->folder, 0, "cannot create the folder of the tasks: %s", g_strerror(errno));
}

static gboolean folder_lock(struct sweep *sweep, GError **error)
{
  g_autofree char *path = folder_file(sweep, "lock");
  int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock < 0)
    return input_error(error, path, 0, "cannot be opened: %s", g_strerror(errno));
  gint64 limit = g_get_monotonic_time() + LOCK_WAIT_US;
  while (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR)
      continue;
    if (errno != EWOULDBLOCK || g_get_monotonic_time() > limit) {
      close(lock);
      return input_error(error, sweep->folder, 0, errno == EWOULDBLOCK ? "a sweep is at work there" : "%s",
                         g_strerror(errno));
    }
    g_usleep(LOCK_POLL_US);
  }
  sweep->lock = lock;
  return TRUE;
}

/* Removes what sweeps put there (all: the lock too), and nothing else. */
static void folder_empty(const struct sweep *sweep, gboolean all)
{
  static const char *const prefixes[] = {"task-", "identity", "replace", "slurm-"};
  g_autoptr(GDir) entries = g_dir_open(sweep->folder, 0, NULL);
  for (const char *name = entries ? g_dir_read_name(entries) : NULL; name; name = g_dir_read_name(entries)) {
    gboolean ours = all && g_str_equal(name, "lock");
    for (size_t i = 0; i < G_N_ELEMENTS(prefixes); i++)
      ours = ours || g_str_has_prefix(name, prefixes[i]);
    g_autofree char *path = folder_file(sweep, name);
    if (ours)
      g_unlink(path);
  }
}

static void folder_remove(struct sweep *sweep)
{
  folder_empty(sweep, TRUE);
  g_rmdir(sweep->folder);
  if (sweep->lock >= 0)
    close(sweep->lock);
  sweep->lock = -1;
}

/* --- whose it is
 * ----------------------------------------------------------------------------------------------------*/

/* 1: of this sweep; 0: of none so far; -1: error set. */
static int folder_identity(const struct sweep *sweep, GError **error)
{
  g_autofree char *path = folder_file(sweep, "identity"), *text = NULL;
  if (!g_file_get_contents(path, &text, NULL, NULL))
    return 0;
  g_autoptr(GArray) facts = sweep_facts_read(text);
  return sweep_facts_same(sweep->facts, facts, sweep->folder, error) ? 1 : -1;
}

static gboolean file_write(const char *path, const char *text, GError **error)
{
  g_autoptr(GError) failure = NULL;
  return g_file_set_contents(path, text, -1, &failure) ||
         input_error(error, path, 0, "cannot be written: %s", failure->message);
}

static gboolean folder_write(const struct sweep *sweep, const char *name, const char *text, GError **error)
{
  g_autofree char *path = folder_file(sweep, name);
  return file_write(path, text, error);
}

static gboolean folder_mark(const struct sweep *sweep, GError **error)
{
  g_autofree char *text = sweep_facts_text(sweep->facts);
  return (!sweep->replaces || folder_write(sweep, "replace", "", error)) &&
         folder_write(sweep, "identity", text, error);
}

/* --- what is done
 * ---------------------------------------------------------------------------------------------------*/

static char *run_key(const char *overrides, const char *system)
{
  return g_strconcat(system, "\n", overrides, NULL);
}

/* Task by run_key; values are task + 1. Free with g_hash_table_unref. */
static GHashTable *tasks_by_key(const struct sweep *sweep)
{
  GHashTable *tasks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  for (uint64_t i = 0; i < sweep->count; i++) {
    g_auto(GStrv) sets = sweep_task_sets(sweep, i);
    g_autofree char *overrides = g_strjoinv("\n", sets);
    g_hash_table_insert(tasks, run_key(overrides, sweep_task_system(sweep, i)), GSIZE_TO_POINTER(i + 1));
  }
  return tasks;
}

static gboolean is_whole(const struct stored_run *run)
{
  return run->finished && !run->interrupted && g_str_equal(run->version, program_version());
}

/* Takes the runs of OUT, if it is of this sweep. */
static gboolean take_stored(struct sweep *sweep, GError **error)
{
  if (sweep->replaces || !g_file_test(sweep->out, G_FILE_TEST_EXISTS))
    return TRUE;
  g_autoptr(StoreReader) reader = store_open(sweep->out, error);
  g_autoptr(GArray) facts = reader ? store_facts(reader, error) : NULL;
  if (!facts)
    return FALSE;
  if (facts->len == 0)
    return input_error(error, sweep->out, 0,
                       "exists already and is no sweep's; give another --out, or --force to replace it");
  g_autoptr(GPtrArray) runs =
      sweep_facts_same(sweep->facts, facts, sweep->out, error) ? store_runs(reader, error) : NULL;
  if (!runs)
    return FALSE;
  g_autoptr(GHashTable) tasks = tasks_by_key(sweep);
  for (guint i = 0; i < runs->len; i++) {
    const struct stored_run *run = runs->pdata[i];
    g_autofree char *key = run_key(run->overrides, run->system);
    gsize task = GPOINTER_TO_SIZE(g_hash_table_lookup(tasks, key));
    if (task == 0 || !is_whole(run))
      continue;
    sweep->task[task - 1].state = TASK_STORED;
    sweep->task[task - 1].run = run->id;
  }
  return TRUE;
}

/* A file that came whole and is of this task. */
static gboolean is_task_file(const struct sweep *sweep, uint64_t task, const char *path)
{
  g_autoptr(StoreReader) reader = store_open(path, NULL);
  g_autoptr(sqlite3_stmt) check = reader ? store_prepare(reader, "PRAGMA quick_check(1)", NULL) : NULL;
  if (!check || store_step(reader, check, NULL) != 1 ||
      g_strcmp0((const char *)sqlite3_column_text(check, 0), "ok") != 0)
    return FALSE;
  g_autoptr(GPtrArray) runs = store_runs(reader, NULL);
  if (!runs || runs->len != 1)
    return FALSE;
  const struct stored_run *run = runs->pdata[0];
  g_auto(GStrv) sets = sweep_task_sets(sweep, task);
  g_autofree char *overrides = g_strjoinv("\n", sets);
  return is_whole(run) && run->id == 1 && g_str_equal(run->overrides, overrides) &&
         g_str_equal(run->system, sweep_task_system(sweep, task));
}

/* Looks at one file of the folder; damaged ones are removed, their tasks done again. */
static void look_at(struct sweep *sweep, const char *name)
{
  char ending[16];
  unsigned long long task;
  if (sscanf(name, "task-%llu%15s", &task, ending) != 2 || task >= sweep->count ||
      sweep->task[task].state != TASK_OPEN)
    return;
  g_autofree char *path = folder_file(sweep, name), *text = NULL;
  if (g_str_equal(ending, ".failed") && g_file_get_contents(path, &text, NULL, NULL))
    sweep_task_ended(sweep, task, text);
  else if (g_str_equal(ending, ".db") && is_task_file(sweep, task, path))
    sweep_task_ended(sweep, task, NULL);
  else if (g_str_equal(ending, ".db"))
    store_remove(path);
}

void sweep_look(struct sweep *sweep)
{
  g_autoptr(GDir) entries = g_dir_open(sweep->folder, 0, NULL);
  for (const char *name = entries ? g_dir_read_name(entries) : NULL; name; name = g_dir_read_name(entries))
    look_at(sweep, name);
}

void sweep_retry(struct sweep *sweep)
{
  for (uint64_t i = 0; i < sweep->count; i++) {
    if (sweep->task[i].state != TASK_FAILED)
      continue;
    g_autofree char *path = task_file(sweep, i, ".failed");
    g_unlink(path);
    sweep->task[i].state = TASK_OPEN;
    g_clear_pointer(&sweep->task[i].error, g_free);
  }
}

/* --- opening and closing
 * --------------------------------------------------------------------------------------------*/

static gboolean open_locked(struct sweep *sweep, gboolean force, GError **error)
{
  if (!output_file_check(sweep->out, TRUE, error)) /* whose it is, is told below */
    return FALSE;
  if (force)
    folder_empty(sweep, FALSE);
  int known = folder_identity(sweep, error);
  if (known < 0)
    return FALSE;
  g_autofree char *replace = folder_file(sweep, "replace");
  sweep->replaces = force || (known == 1 && g_file_test(replace, G_FILE_TEST_EXISTS));
  if (!take_stored(sweep, error) || !folder_mark(sweep, error))
    return FALSE;
  sweep_look(sweep);
  return TRUE;
}

/* The lock is that of the folder as it is now: whoever had it before may have removed both. */
static gboolean lock_is_current(const struct sweep *sweep)
{
  g_autofree char *path = folder_file(sweep, "lock");
  struct stat ours, theirs;
  return fstat(sweep->lock, &ours) == 0 && stat(path, &theirs) == 0 && ours.st_ino == theirs.st_ino;
}

static gboolean folder_take(struct sweep *sweep, GError **error)
{
  while (folder_make(sweep, error) && folder_lock(sweep, error)) {
    if (lock_is_current(sweep))
      return TRUE;
    close(sweep->lock);
    sweep->lock = -1;
  }
  return FALSE;
}

gboolean sweep_open(struct sweep *sweep, gboolean force, GError **error)
{
  gboolean there = g_file_test(sweep->folder, G_FILE_TEST_EXISTS);
  if (!folder_take(sweep, error))
    return FALSE;
  if (open_locked(sweep, force, error))
    return TRUE;
  if (!there)
    folder_remove(sweep);
  return FALSE;
}

static gboolean folder_known(const struct sweep *sweep, GError **error)
{
  int known = folder_identity(sweep, error);
  return known == 1 || (known == 0 && input_error(error, sweep->folder, 0, "expected the folder of a sweep"));
}

gboolean sweep_reopen(struct sweep *sweep, GError **error)
{
  if (g_file_test(sweep->folder, G_FILE_TEST_EXISTS))
    return folder_known(sweep, error) && sweep_open(sweep, FALSE, error);
  if (!take_stored(sweep, error))
    return FALSE;
  return sweep_count(sweep, TASK_OPEN) == 0 ||
         input_error(error, sweep->folder, 0,
                     "there is nothing to merge: expected the folder that `sweep --slurm --detach` makes");
}

gboolean sweep_join(struct sweep *sweep, GError **error)
{
  if (!folder_known(sweep, error) || !take_stored(sweep, error))
    return FALSE;
  sweep_look(sweep);
  return TRUE;
}

gboolean sweep_note_failure(const struct sweep *sweep, uint64_t task, GError **error)
{
  g_autofree char *path = task_file(sweep, task, ".failed");
  return file_write(path, sweep->task[task].error, error);
}

static gboolean merge(struct sweep *sweep, GError **error);

/* A file that turned out damaged is no result: its task failed, and the others are merged. */
static gboolean merge_without(struct sweep *sweep, uint64_t task, GError **error)
{
  g_autofree char *path = sweep_task_file(sweep, task);
  store_remove(path);
  sweep_task_ended(sweep, task, "its result file was damaged; run the same command again");
  return merge(sweep, error);
}

static gboolean merge(struct sweep *sweep, GError **error)
{
  g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
  g_autoptr(GArray) sources = g_array_new(FALSE, FALSE, sizeof(struct merge_source));
  g_autoptr(GArray) tasks = g_array_new(FALSE, FALSE, sizeof(uint64_t));
  for (uint64_t i = 0; i < sweep->count; i++) {
    enum task_state state = sweep->task[i].state;
    if (state != TASK_STORED && state != TASK_WRITTEN)
      continue;
    char *path = state == TASK_STORED ? g_strdup(sweep->out) : sweep_task_file(sweep, i);
    g_ptr_array_add(paths, path);
    struct merge_source source = {path, state == TASK_STORED ? sweep->task[i].run : 1};
    g_array_append_val(sources, source);
    g_array_append_val(tasks, i);
  }
  size_t bad;
  g_autoptr(GError) failure = NULL;
  if (store_merge(sweep->out, (const struct merge_source *)(const void *)sources->data, sources->len,
                  sweep->axes, sweep->facts, &bad, &failure))
    return TRUE;
  uint64_t task = bad < sources->len ? g_array_index(tasks, uint64_t, bad) : 0;
  if (bad < sources->len && sweep->task[task].state == TASK_WRITTEN)
    return merge_without(sweep, task, error);
  g_propagate_error(error, g_steal_pointer(&failure));
  return FALSE;
}

gboolean sweep_close(struct sweep *sweep, GError **error)
{
  if (sweep_count(sweep, TASK_WRITTEN) > 0 && !merge(sweep, error))
    return FALSE;
  folder_remove(sweep);
  return TRUE;
}
