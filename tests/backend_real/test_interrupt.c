/* Signals while a process is busy outside of its loop. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend_real/interrupt.h"
#include "backend_real/loop.h"
#include "core/error.h"

#define LIMIT_US (20 * G_USEC_PER_SEC)

static void nothing(void *context)
{
  (void)context;
}

/* A child's whole life; its status. Whoever hangs is killed by its alarm. */
static int life(void (*live)(void))
{
  pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    signal(SIGINT, SIG_DFL); /* a shell that ran the tests in the background has it ignored */
    live();
    _exit(9);
  }
  int status = 0;
  cr_assert(pid > 0 && waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void busy_under_guard(void)
{
  loop_on_signals(loop_new(), nothing, NULL);
  interrupt_guard(50);
  if (!interrupt_waits() && interrupt_check(NULL) && kill(getpid(), SIGTERM) == 0)
    pause(); /* in a call that asks nobody */
}

Test(interrupt, the_guard_ends_a_process_that_asks_nobody)
{
  cr_assert_eq(life(busy_under_guard), 0);
}

/* Its work sees the signal, and the loop gets it later. */
static void quit(void *context)
{
  loop_quit(context);
}

static void busy_and_asking(void)
{
  g_autoptr(GError) error = NULL;
  struct loop *loop = loop_new();
  loop_on_signals(loop, quit, loop);
  struct interrupt_guard *guard = interrupt_guard(10000);
  kill(getpid(), SIGINT);
  for (gint64 end = g_get_monotonic_time() + LIMIT_US; !interrupt_waits();)
    if (g_get_monotonic_time() > end)
      _exit(1);
  gboolean told = !interrupt_check(&error) && g_error_matches(error, DM_ERROR, DM_ERROR_INTERRUPTED);
  interrupt_release(guard);
  loop_run(loop);
  _exit(told && !interrupt_waits() ? 7 : 2);
}

Test(interrupt, work_that_asks_is_told_and_the_signal_stays)
{
  cr_assert_eq(life(busy_and_asking), 7);
}

static void not_interrupted(void)
{
  loop_on_signals(loop_new(), nothing, NULL);
  for (int i = 0; i < 100; i++)
    interrupt_release(interrupt_guard(0));
  _exit(interrupt_waits() ? 2 : 7);
}

Test(interrupt, a_guard_that_is_released_does_nothing)
{
  cr_assert_eq(life(not_interrupted), 7);
}

/* Who ignores it is not ended by it, although the loop has blocked its signals. */
static void ignore_and_run(void)
{
  struct loop *loop = loop_new();
  signal(SIGINT, SIG_IGN);
  loop_on_signals(loop, quit, loop);
  kill(getpid(), SIGINT);
  gboolean quiet = !interrupt_waits();
  kill(getpid(), SIGTERM);
  loop_run(loop);
  _exit(quiet ? 7 : 2);
}

Test(interrupt, who_ignores_ctrl_c_never_sees_it)
{
  cr_assert_eq(life(ignore_and_run), 7);
}
