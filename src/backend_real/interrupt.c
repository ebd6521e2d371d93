/* Signals during long work; see interrupt.h. */
#include "backend_real/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/error.h"

struct interrupt_guard {
  GThread *thread;
  int released, signals; /* descriptors */
  int grace_ms;
};

void interrupt_signals(sigset_t *set)
{
  struct sigaction action;
  sigemptyset(set);
  sigaddset(set, SIGTERM);
  if (sigaction(SIGINT, NULL, &action) != 0 || action.sa_handler != SIG_IGN)
    sigaddset(set, SIGINT);
}

gboolean interrupt_waits(void)
{
  sigset_t waiting;
  return sigpending(&waiting) == 0 && (sigismember(&waiting, SIGTERM) || sigismember(&waiting, SIGINT));
}

gboolean interrupt_check(GError **error)
{
  if (!interrupt_waits())
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_INTERRUPTED, "interrupted");
  return FALSE;
}

/* The descriptor is looked at, never read: the signal stays for the loop. */
static gpointer watch(gpointer data)
{
  const struct interrupt_guard *guard = data;
  struct pollfd wait[] = {{.fd = guard->released, .events = POLLIN},
                          {.fd = guard->signals, .events = POLLIN}};
  while (poll(wait, 2, -1) < 0 && errno == EINTR)
    ;
  if (wait[0].revents)
    return NULL;
  int ready;
  while ((ready = poll(wait, 1, guard->grace_ms)) < 0 && errno == EINTR)
    ;
  if (ready == 0) {
    g_message("ended by a signal while it prepared a run");
    _exit(0);
  }
  return NULL;
}

struct interrupt_guard *interrupt_guard(guint grace_ms)
{
  struct interrupt_guard *guard = g_new0(struct interrupt_guard, 1);
  sigset_t set;
  interrupt_signals(&set);
  guard->grace_ms = (int)grace_ms;
  guard->released = eventfd(0, EFD_CLOEXEC);
  guard->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (guard->released < 0 || guard->signals < 0)
    g_error("no descriptor for signals: %m");
  guard->thread = g_thread_new("interrupt", watch, guard);
  return guard;
}

void interrupt_release(struct interrupt_guard *guard)
{
  uint64_t one = 1;
  if (!guard)
    return;
  while (write(guard->released, &one, sizeof one) < 0 && errno == EINTR)
    ;
  g_thread_join(guard->thread);
  close(guard->released);
  close(guard->signals);
  g_free(guard);
}
