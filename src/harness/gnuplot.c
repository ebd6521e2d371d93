/* Runs gnuplot; see gnuplot.h. */
#include "harness/gnuplot.h"
#include "core/error.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMPLAINT_MOST 4000 /* bytes kept of what gnuplot prints */

/* gnuplot may stop reading at an error: its own message then says why, so a failed write is no error here. */
static void feed(int input, const char *script)
{
  struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
  sigaction(SIGPIPE, &ignore, &before);
  for (size_t left = strlen(script); left > 0;) {
    ssize_t written = write(input, script, left);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      break;
    script += written;
    left -= (size_t)written;
  }
  close(input);
  sigaction(SIGPIPE, &before, NULL);
}

static char *read_all(int output)
{
  g_autoptr(GString) text = g_string_new(NULL);
  char buffer[1024];
  for (;;) {
    ssize_t count = read(output, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      break;
    if (text->len < COMPLAINT_MOST)
      g_string_append_len(text, buffer, count);
  }
  close(output);
  return g_strdup(text->str);
}

static gboolean wait_for(GPid process, const char *complaint, GError **error)
{
  int status;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR)
    ;
  g_spawn_close_pid(process);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return TRUE;
  g_autofree char *text = g_utf8_make_valid(complaint, -1);
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "gnuplot failed: %s", g_strstrip(text));
  return FALSE;
}

gboolean gnuplot_run(const char *script, int out, GError **error)
{
  char *argv[] = {(char[]){"gnuplot"}, (char[]){"-"}, NULL};
  g_autoptr(GError) failure = NULL;
  GPid process;
  int input, complaints;
  GSpawnFlags flags = G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD;
  if (!g_spawn_async_with_pipes_and_fds(NULL, (const char *const *)argv, NULL, flags, NULL, NULL, -1, out, -1,
                                        NULL, NULL, 0, &process, &input, NULL, &complaints, &failure)) {
    const char *hint = failure->code == G_SPAWN_ERROR_NOENT
                           ? "gnuplot is not installed: apt-get install gnuplot-nox"
                           : failure->message;
    g_set_error_literal(error, DM_ERROR, DM_ERROR_FAILED, hint);
    return FALSE;
  }
  feed(input, script);
  g_autofree char *complaint = read_all(complaints);
  return wait_for(process, complaint, error);
}

/* Characters of `doubled` twice, control characters and those of `blanked` as spaces. gnuplot reads UTF-8. */
static char *quote(const char *text, char mark, const char *doubled, const char *blanked)
{
  g_autofree char *valid = g_utf8_make_valid(text, -1);
  GString *quoted = g_string_new(NULL);
  g_string_append_c(quoted, mark);
  for (const char *c = valid; *c; c++) {
    gboolean blank = g_ascii_iscntrl(*c) || strchr(blanked, *c);
    if (!blank && strchr(doubled, *c))
      g_string_append_c(quoted, *c);
    g_string_append_c(quoted, blank ? ' ' : *c);
  }
  g_string_append_c(quoted, mark);
  return g_string_free(quoted, FALSE);
}

char *gnuplot_quote(const char *text)
{
  return quote(text, '\'', "'", "");
}

char *gnuplot_quote_label(const char *text)
{
  return quote(text, '\'', "'%", "");
}

char *gnuplot_data_label(const char *text)
{
  return quote(text, '"', "%", "\"\\");
}
