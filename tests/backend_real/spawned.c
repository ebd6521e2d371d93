/* Programs run by tests; see spawned.h. */
#include "spawned.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* This is build/tests/NAME, the other build/PROGRAM. */
char *spawned_path(const char *program)
{
  g_autofree char *self = g_file_read_link("/proc/self/exe", NULL), *tests = g_path_get_dirname(self);
  g_autofree char *build = g_path_get_dirname(tests);
  return g_build_filename(build, program, NULL);
}

/* Ends with a test that fails or is ended. */
static void tie(gpointer data)
{
  (void)data;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
}

Spawned *spawn(const char *program, const char *words)
{
  g_autofree char *path = spawned_path(program), *line = g_strdup_printf("%s %s", path, words);
  g_auto(GStrv) argv = g_strsplit(line, " ", -1);
  Spawned *spawned = g_new0(Spawned, 1);
  g_autoptr(GError) error = NULL;
  int wait_status;
  cr_assert(g_spawn_sync(NULL, argv, NULL, G_SPAWN_DEFAULT, tie, NULL, &spawned->out, &spawned->err,
                         &wait_status, &error),
            "%s: %s", line, error ? error->message : "");
  spawned->status = g_spawn_check_wait_status(wait_status, &error) ? 0 : error->code;
  return spawned;
}

struct spawning {
  GPid pid;
  int out, err; /* pipes */
  int wait_status;
  gboolean ended;
};

Spawning *spawning_start(const char *program, const char *words)
{
  g_autofree char *path = spawned_path(program), *line = g_strdup_printf("%s %s", path, words);
  g_auto(GStrv) argv = g_strsplit(line, " ", -1);
  Spawning *spawning = g_new0(Spawning, 1);
  g_autoptr(GError) error = NULL;
  cr_assert(g_spawn_async_with_pipes(NULL, argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD, tie, NULL, &spawning->pid,
                                     NULL, &spawning->out, &spawning->err, &error),
            "%s: %s", line, error ? error->message : "");
  return spawning;
}

gboolean spawning_ended(Spawning *spawning)
{
  if (!spawning->ended)
    spawning->ended = waitpid(spawning->pid, &spawning->wait_status, WNOHANG) == spawning->pid;
  return spawning->ended;
}

static char *read_rest(int fd)
{
  GString *text = g_string_new(NULL);
  char part[4096];
  for (ssize_t got; (got = read(fd, part, sizeof part)) > 0;)
    g_string_append_len(text, part, got);
  close(fd);
  return g_string_free(text, FALSE);
}

Spawned *spawning_finish(Spawning *spawning)
{
  Spawned *spawned = g_new0(Spawned, 1);
  g_autoptr(GError) error = NULL;
  spawned->out = read_rest(spawning->out);
  spawned->err = read_rest(spawning->err);
  if (!spawning->ended)
    cr_assert_eq(waitpid(spawning->pid, &spawning->wait_status, 0), spawning->pid);
  spawned->status = g_spawn_check_wait_status(spawning->wait_status, &error) ? 0 : error->code;
  g_free(spawning);
  return spawned;
}

void spawned_free(Spawned *spawned)
{
  g_free(spawned->out);
  g_free(spawned->err);
  g_free(spawned);
}

void expect_refusal(const Spawned *spawned, const char *says)
{
  cr_assert_eq(spawned->status, 2, "%s%s", spawned->out, spawned->err);
  cr_assert_str_eq(spawned->out, "");
  const char *end = strchr(spawned->err, '\n');
  cr_assert(end && end[1] == 0, "%s", spawned->err);
  cr_assert(strstr(spawned->err, says), "expected \"%s\" in: %s", says, spawned->err);
}
