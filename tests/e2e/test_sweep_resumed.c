/* `sweep` that is killed or interrupted, however often: it goes on where it was, and makes the database that
 * it would have made. */
#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>

#include "sweeps.h"

/* Names and inodes of finished tasks: one that is done again is another file. */
static GHashTable *finished_tasks(const char *folder)
{
  GHashTable *tasks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
  g_autofree char *path = g_build_filename(folder, "x.db.tasks", NULL);
  g_autoptr(GDir) entries = g_dir_open(path, 0, NULL);
  for (const char *name = entries ? g_dir_read_name(entries) : NULL; name; name = g_dir_read_name(entries)) {
    g_autofree char *file = g_build_filename(path, name, NULL);
    GStatBuf info;
    if (g_str_has_suffix(name, ".db") && g_stat(file, &info) == 0)
      g_hash_table_insert(tasks, g_strdup(name),
                          g_strdup_printf("%lu %ld", (gulong)info.st_ino, (glong)info.st_mtim.tv_nsec));
  }
  return tasks;
}

static void expect_kept(GHashTable *before, GHashTable *after)
{
  GHashTableIter iter;
  gpointer name, inode;
  g_hash_table_iter_init(&iter, before);
  while (g_hash_table_iter_next(&iter, &name, &inode))
    cr_assert_str_eq(g_hash_table_lookup(after, name) ? (char *)g_hash_table_lookup(after, name) : "gone",
                     inode, "%s was done again", (char *)name);
}

/* Starts the sweep and ends it by a signal after a while; TRUE: it was done before. */
static gboolean cut_short(const char *folder, int signal_number, gint64 after_us)
{
  const char *arguments[] = {"sweep", "x.ini", SWEEPS_VARY, "--out", "x.db", "--jobs", "2", "--quiet", NULL};
  struct program *program = program_start(folder, arguments);
  g_usleep((gulong)after_us);
  program_signal(program, signal_number);
  g_autoptr(ProgramOutcome) outcome = program_finish(program);
  cr_assert(outcome->status == 0 || outcome->status == 128 + signal_number, "%d: %s", outcome->status,
            outcome->err);
  return outcome->status == 0;
}

Test(sweep, killed_again_and_again_it_loses_and_doubles_nothing)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  gint64 began = g_get_monotonic_time();
  g_autoptr(ProgramOutcome) whole = sweeps_run(folder, "whole.db", "2");
  gint64 length = g_get_monotonic_time() - began;
  cr_assert_eq(whole->status, 0, "%s", whole->err);
  GRand *random = sweeps_random("sweep killed again and again");
  g_autofree char *whole_path = g_build_filename(folder, "x.db", NULL);
  g_autoptr(GHashTable) before = finished_tasks(folder);
  gboolean done = FALSE;
  for (guint kills = 0; kills < 12 && !done; kills++) {
    done = cut_short(folder, SIGKILL, (gint64)(g_rand_double(random) * (double)length / 2));
    g_autoptr(GHashTable) after = finished_tasks(folder);
    /* From where all is in the database, the tasks' files go. */
    if (!done && !g_file_test(whole_path, G_FILE_TEST_EXISTS))
      expect_kept(before, after);
    g_hash_table_unref(before);
    before = g_steal_pointer(&after);
  }
  g_rand_free(random);
  g_autoptr(ProgramOutcome) last = sweeps_run(folder, "x.db", "2");
  cr_assert_eq(last->status, 0, "%s", last->err);
  g_autofree char *expected = sweeps_dump(folder, "whole.db"), *resumed = sweeps_dump(folder, "x.db");
  cr_assert_str_eq(expected, resumed);
  g_autofree char *json = sweeps_without_wall_s(whole->out), *resumed_json = sweeps_without_wall_s(last->out);
  cr_assert_str_eq(json, resumed_json);
  g_autofree char *left = folder_list(folder);
  cr_assert_str_eq(left, "whole.db x.db x.ini", "left behind: %s", left);
}

Test(sweep, interrupt_keeps_what_is_done)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  const char *arguments[] = {"sweep",    "x.ini", "--vary",  "workload.duration_s=10,20,1000000",
                             "--system", "ideal", "--out",   "x.db",
                             "--jobs",   "1",     "--quiet", NULL};
  struct program *program = program_start(folder, arguments);
  cr_assert(folder_await(folder, ".tasks"));
  g_autofree char *tasks = g_build_filename(folder, "x.db.tasks", NULL);
  cr_assert(folder_await(tasks, "task-000001.db"));
  g_autoptr(ProgramOutcome) early = program_run(folder, "report", "x.db", NULL);
  expect_refused(early, "x.db: no such file yet: its sweep is on", NULL);
  program_signal(program, SIGINT);
  g_autoptr(ProgramOutcome) outcome = program_finish(program);
  cr_assert_eq(outcome->status, 130, "%d: %s", outcome->status, outcome->err);
  cr_assert(strstr(outcome->err, "2 of 3 runs are kept"), "%s", outcome->err);
  g_autofree char *left = folder_list(folder);
  cr_assert_str_eq(left, "x.db x.ini", "left behind: %s", left);
  g_autofree char *started =
      sweeps_query(folder, "x.db", "SELECT group_concat(started || ' ' || wall_s) FROM run", NULL);
  /* Once more: the two are there still, and not done again. */
  struct program *again = program_start(folder, arguments);
  cr_assert(folder_await(folder, ".tasks") && folder_await(tasks, "task-000002.db.partial"));
  program_signal(again, SIGTERM);
  g_autoptr(ProgramOutcome) second = program_finish(again);
  cr_assert_eq(second->status, 130, "%d: %s", second->status, second->err);
  g_autofree char *kept =
      sweeps_query(folder, "x.db", "SELECT group_concat(started || ' ' || wall_s) FROM run", NULL);
  cr_assert_str_eq(started, kept);
  g_autoptr(ProgramOutcome) report = program_run(folder, "report", "x.db", NULL);
  cr_assert(report->status == 0 && strstr(report->out, "2 of 3 runs"), "%s%s", report->out, report->err);
}

/* A file that a crash of the machine spoiled, and one that is of another sweep, are no results. */
Test(sweep, does_spoiled_files_again)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autoptr(ProgramOutcome) whole = sweeps_run(folder, "whole.db", "2");
  while (cut_short(folder, SIGKILL, whole->status == 0 ? 60000 : 0) == FALSE) {
    g_autoptr(GHashTable) tasks = finished_tasks(folder);
    if (g_hash_table_size(tasks) < 2)
      continue;
    g_autofree char *list = g_build_filename(folder, "x.db.tasks", NULL);
    g_autofree char *names = folder_list(list);
    g_auto(GStrv) each = g_strsplit(names, " ", -1);
    guint spoiled = 0;
    g_autofree char *other = g_build_filename(folder, "whole.db", NULL), *bytes = NULL;
    gsize length;
    cr_assert(g_file_get_contents(other, &bytes, &length, NULL));
    for (char **name = each; *name && spoiled < 2; name++)
      if (g_str_has_suffix(*name, ".db")) {
        g_autofree char *path = g_build_filename(list, *name, NULL);
        cr_assert(g_file_set_contents(path, bytes, (gssize)(spoiled++ ? length : 5000), NULL));
      }
    break;
  }
  g_autoptr(ProgramOutcome) last = sweeps_run(folder, "x.db", "2");
  cr_assert_eq(last->status, 0, "%s", last->err);
  g_autofree char *expected = sweeps_dump(folder, "whole.db"), *resumed = sweeps_dump(folder, "x.db");
  cr_assert_str_eq(expected, resumed);
}

/* --force says so once: killed before its end, the new sweep goes on without it, over the old database. */
Test(sweep, a_forced_sweep_is_resumed_without_force)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autoptr(ProgramOutcome) first =
      program_run(folder, SWEEPS_SMALL, "--vary", "workload.rate_rps=1,2", NULL);
  cr_assert_eq(first->status, 0, "%s", first->err);
  const char *arguments[] = {SWEEPS_SMALL, "--vary", "workload.duration_s=10,1000000", "--force", "--jobs",
                             "1",          NULL};
  struct program *program = program_start(folder, arguments);
  g_autofree char *tasks = g_build_filename(folder, "x.db.tasks", NULL);
  cr_assert(folder_await(folder, ".tasks") && folder_await(tasks, "task-000001.db.partial"));
  program_signal(program, SIGKILL);
  g_autoptr(ProgramOutcome) killed = program_finish(program);
  cr_assert_eq(killed->status, 128 + SIGKILL, "%s", killed->err);
  g_autofree char *old = sweeps_query(folder, "x.db", "SELECT choices FROM axis", NULL);
  cr_assert_str_eq(old, "1,2", "what was there is gone before there is anything new");
  arguments[9] = NULL; /* without --force and --jobs */
  g_autofree char *wal = g_build_filename(tasks, "task-000001.db.partial-wal", NULL);
  g_unlink(wal); /* of the one that was killed: it would be taken for the next one's */
  struct program *again = program_start(folder, arguments);
  cr_assert(folder_await(tasks, "task-000001.db.partial-wal"));
  program_signal(again, SIGINT);
  g_autoptr(ProgramOutcome) outcome = program_finish(again);
  cr_assert_eq(outcome->status, 130, "%s", outcome->err);
  g_autofree char *now =
      sweeps_query(folder, "x.db", "SELECT choices || (SELECT count(*) FROM run) FROM axis", NULL);
  cr_assert_str_eq(now, "10,10000001");
}
