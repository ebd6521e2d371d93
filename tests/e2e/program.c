#include "program.h"
#include "../harness/temporary.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUN_LIMIT_S = 120, AWAIT_LIMIT_S = 60, POLL_US = 2000 };

struct program {
  pid_t pid;
  int out, err; /* unlinked files, so that a program that prints much never waits for this test */
};

static const char *program_path(void)
{
  const char *path = g_getenv("DISTMIND_SIM");
  return path ? path : DM_SOURCE_DIR "/build/distmind-sim";
}

static int open_unlinked(void)
{
  g_autofree char *name = NULL;
  int descriptor = g_file_open_tmp("distmind-e2e-XXXXXX", &name, NULL);
  cr_assert_geq(descriptor, 0, "no temporary file");
  unlink(name);
  return descriptor;
}

static char *read_and_close(int descriptor)
{
  off_t size = lseek(descriptor, 0, SEEK_END);
  char *text = g_malloc0((size_t)size + 1);
  ssize_t got = pread(descriptor, text, (size_t)size, 0);
  cr_assert_eq(got, size, "output cannot be read back");
  close(descriptor);
  return text;
}

struct program *program_start(const char *folder, const char *const *arguments)
{
  g_autoptr(GPtrArray) argv = g_ptr_array_new();
  g_ptr_array_add(argv, (gpointer)program_path());
  for (; *arguments; arguments++)
    g_ptr_array_add(argv, (gpointer)*arguments);
  g_ptr_array_add(argv, NULL);
  struct program *program = g_new0(struct program, 1);
  *program = (struct program){.out = open_unlinked(), .err = open_unlinked()};
  program->pid = fork();
  cr_assert_geq(program->pid, 0, "no process");
  if (program->pid > 0)
    return program;
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
  signal(SIGINT, SIG_DFL);          /* a shell that ran the tests in the background has it ignored */
  int empty = open("/dev/null", O_RDONLY);
  if (empty < 0 || dup2(empty, STDIN_FILENO) < 0 || dup2(program->out, STDOUT_FILENO) < 0 ||
      dup2(program->err, STDERR_FILENO) < 0 || chdir(folder) != 0)
    _exit(126);
  execv(program_path(), (char **)argv->pdata);
  _exit(127);
}

void program_signal(struct program *program, int signal_number)
{
  kill(program->pid, signal_number);
}

ProgramOutcome *program_finish(struct program *program)
{
  int status;
  gint64 limit = g_get_monotonic_time() + RUN_LIMIT_S * G_USEC_PER_SEC;
  pid_t ended = waitpid(program->pid, &status, WNOHANG);
  for (; ended == 0 && g_get_monotonic_time() < limit; ended = waitpid(program->pid, &status, WNOHANG))
    g_usleep(POLL_US);
  if (ended == 0) {
    kill(program->pid, SIGKILL);
    waitpid(program->pid, &status, 0);
  }
  ProgramOutcome *outcome = g_new0(ProgramOutcome, 1);
  outcome->out = read_and_close(program->out);
  outcome->err = read_and_close(program->err);
  outcome->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  g_free(program);
  cr_assert_neq(ended, 0, "still running after %d s; it printed: %s%s", RUN_LIMIT_S, outcome->out,
                outcome->err);
  cr_assert_neq(outcome->status, 127, "%s cannot be run: build it, or set DISTMIND_SIM", program_path());
  return outcome;
}

ProgramOutcome *program_run(const char *folder, ...)
{
  g_autoptr(GPtrArray) arguments = g_ptr_array_new();
  va_list list;
  va_start(list, folder);
  const char *argument = va_arg(list, const char *);
  for (; argument; argument = va_arg(list, const char *))
    g_ptr_array_add(arguments, (gpointer)argument);
  va_end(list);
  g_ptr_array_add(arguments, NULL);
  return program_finish(program_start(folder, (const char *const *)arguments->pdata));
}

void program_outcome_free(ProgramOutcome *outcome)
{
  g_free(outcome->out);
  g_free(outcome->err);
  g_free(outcome);
}

char *folder_new(void)
{
  char *folder = g_dir_make_tmp("distmind-e2e-XXXXXX", NULL);
  cr_assert_not_null(folder, "no temporary folder");
  return folder;
}

void folder_remove(char *folder)
{
  tree_remove(folder);
  g_free(folder);
}

void folder_write(const char *folder, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename(folder, name, NULL);
  cr_assert(g_file_set_contents(path, text, -1, NULL), "cannot write %s", path);
}

static gint compare_names(gconstpointer a, gconstpointer b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

char *folder_list(const char *folder)
{
  g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
  g_autoptr(GDir) entries = g_dir_open(folder, 0, NULL);
  cr_assert_not_null(entries, "%s cannot be listed", folder);
  for (const char *name = g_dir_read_name(entries); name; name = g_dir_read_name(entries))
    g_ptr_array_add(names, g_strdup(name));
  g_ptr_array_sort(names, compare_names);
  g_ptr_array_add(names, NULL);
  return g_strjoinv(" ", (char **)names->pdata);
}

gboolean folder_await(const char *folder, const char *ending)
{
  gint64 limit = g_get_monotonic_time() + AWAIT_LIMIT_S * G_USEC_PER_SEC;
  while (g_get_monotonic_time() < limit) {
    g_autofree char *names = folder_list(folder);
    g_auto(GStrv) each = g_strsplit(names, " ", -1);
    for (char **name = each; *name; name++)
      if (g_str_has_suffix(*name, ending))
        return TRUE;
    g_usleep(POLL_US);
  }
  return FALSE;
}

void expect_refused(const ProgramOutcome *outcome, ...)
{
  cr_assert_eq(outcome->status, 2, "exit status %d; it printed: %s%s", outcome->status, outcome->out,
               outcome->err);
  cr_assert_str_empty(outcome->out, "standard output: %s", outcome->out);
  const char *newline = strchr(outcome->err, '\n');
  cr_assert(newline && newline > outcome->err && newline[1] == '\0', "not one line: \"%s\"", outcome->err);
  va_list list;
  va_start(list, outcome);
  const char *text = va_arg(list, const char *);
  for (; text; text = va_arg(list, const char *))
    cr_assert(strstr(outcome->err, text), "\"%s\" is not in: %s", text, outcome->err);
  va_end(list);
}
