/* Forked helpers; see offspring.h. */
#include "backend_real/offspring.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"

#define LINE_MS 10000

static G_GNUC_NORETURN void child_main(void (*play)(void *context, int out), void *context, int out,
                                       pid_t parent)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGINT, SIG_IGN); /* Ctrl-C is for the parent, which ends its children */
  if (getppid() == parent)
    play(context, out);
  _exit(0);
}

static gboolean read_line(int fd, char *line, gsize size)
{
  gsize length = 0;
  while (length + 1 < size) {
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    int ready = poll(&wait, 1, LINE_MS);
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready != 1 || read(fd, line + length, 1) != 1)
      return FALSE;
    if (line[length] == '\n') {
      line[length] = '\0';
      return TRUE;
    }
    length++;
  }
  return FALSE;
}

gboolean offspring_start(struct offspring *child, void (*play)(void *context, int out), void *context,
                         char *line, gsize size, GError **error)
{
  int ends[2];
  pid_t parent = getpid();
  if (pipe2(ends, O_CLOEXEC) != 0) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "pipe: %s", g_strerror(errno));
    return FALSE;
  }
  fflush(NULL);
  child->pid = fork();
  if (child->pid == 0)
    child_main(play, context, ends[1], parent);
  close(ends[1]);
  gboolean good = child->pid > 0 && read_line(ends[0], line, size);
  close(ends[0]);
  if (child->pid < 0)
    child->pid = 0;
  if (!good)
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "a helper process did not start");
  return good;
}

void offspring_end(struct offspring *child)
{
  if (child->pid <= 0)
    return;
  kill(child->pid, SIGKILL);
  while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
    continue;
  child->pid = 0;
}
