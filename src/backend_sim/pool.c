/* Worker processes; see pool.h.
 *
 * A worker's end is seen by its pipe, which carries its error message and closes when it ends, however it
 * ends. */
#include "backend_sim/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"

#define TICK_NS      100000000
#define STATUS_INPUT 2
#define MESSAGE_MOST 4000 /* bytes kept of a worker's message; a pipe holds as many without a reader */

struct worker {
  pid_t pid; /* 0: none */
  uint64_t task;
  int pipe;
  GString *message;
};

struct pool {
  const struct pool_ops *ops;
  void *context;
  struct worker *worker;
  struct pollfd *polled;
  guint jobs, running;
  gboolean starved; /* next had nothing, and nothing has ended since */
  gboolean stopped; /* next wants no more */
  sigset_t open_mask;
};

/* --- the child
 * ------------------------------------------------------------------------------------------------------*/

static void child_signals(const struct pool *pool)
{
  /* A terminal sends it to all, a batch system this one: the parent decides. */
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  sigprocmask(SIG_SETMASK, &pool->open_mask, NULL);
}

static G_NORETURN void child_main(const struct pool *pool, uint64_t task, int out, pid_t parent)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(1);
  child_signals(pool);
  g_autoptr(GError) error = NULL;
  gboolean done = pool->ops->run(pool->context, task, &error);
  const char *message = done ? "" : error ? error->message : "failed";
  size_t length = MIN(strlen(message), MESSAGE_MOST);
  ssize_t written = write(out, message, length);
  _exit(done && written >= 0 ? 0 : g_error_matches(error, DM_ERROR, DM_ERROR_INPUT) ? STATUS_INPUT : 1);
}

/* --- the parent
 * -----------------------------------------------------------------------------------------------------*/

static gboolean start(struct pool *pool, struct worker *worker, uint64_t task, GError **error)
{
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "cannot make a pipe: %s", g_strerror(errno));
    return FALSE;
  }
  fflush(NULL);
  pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    close(ends[0]);
    child_main(pool, task, ends[1], parent);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "cannot make a process: %s", g_strerror(errno));
    return FALSE;
  }
  *worker = (struct worker){.pid = pid, .task = task, .pipe = ends[0], .message = g_string_new(NULL)};
  pool->running++;
  return TRUE;
}

static gboolean start_more(struct pool *pool, GError **error)
{
  for (guint i = 0; i < pool->jobs && !pool->starved; i++) {
    if (pool->worker[i].pid)
      continue;
    int64_t task = pool->ops->next(pool->context);
    pool->stopped = task == POOL_STOP;
    if (task < 0)
      pool->starved = TRUE;
    else if (!start(pool, &pool->worker[i], (uint64_t)task, error))
      return FALSE;
  }
  return TRUE;
}

static char *failure_of(const struct worker *worker, int status)
{
  if (WIFSIGNALED(status)) {
    int number = WTERMSIG(status);
    return g_strdup_printf("its process was ended by signal %d (%s)%s", number, g_strsignal(number),
                           number == SIGKILL ? ": out of memory?" : "");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return NULL;
  return worker->message->len ? g_utf8_make_valid(worker->message->str, (gssize)worker->message->len)
                              : g_strdup_printf("its process ended with status %d", WEXITSTATUS(status));
}

/* Waits for a worker whose pipe is closed, and forgets it. */
static int reap(struct pool *pool, struct worker *worker)
{
  int status = 0;
  while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
    ;
  close(worker->pipe);
  worker->pid = 0;
  pool->running--;
  return status;
}

static void read_worker(struct pool *pool, struct worker *worker)
{
  char bytes[1024];
  ssize_t count = read(worker->pipe, bytes, sizeof bytes);
  if (count < 0 && errno == EINTR)
    return;
  if (count > 0) {
    g_string_append_len(worker->message, bytes, count);
    return;
  }
  uint64_t task = worker->task;
  int status = reap(pool, worker);
  g_autofree char *failure = failure_of(worker, status);
  g_string_free(worker->message, TRUE);
  pool->starved = FALSE;
  pool->ops->ended(pool->context, task, failure, WIFEXITED(status) && WEXITSTATUS(status) == STATUS_INPUT);
}

static void wait_for_some(struct pool *pool)
{
  for (guint i = 0; i < pool->jobs; i++)
    pool->polled[i] =
        (struct pollfd){.fd = pool->worker[i].pid ? pool->worker[i].pipe : -1, .events = POLLIN};
  const struct timespec tick = {.tv_nsec = TICK_NS};
  if (ppoll(pool->polled, pool->jobs, &tick, &pool->open_mask) <= 0)
    return;
  for (guint i = 0; i < pool->jobs; i++)
    if (pool->polled[i].revents)
      read_worker(pool, &pool->worker[i]);
}

static void kill_all(struct pool *pool)
{
  for (guint i = 0; i < pool->jobs; i++)
    if (pool->worker[i].pid)
      kill(pool->worker[i].pid, SIGKILL);
  for (guint i = 0; i < pool->jobs; i++)
    if (pool->worker[i].pid) {
      reap(pool, &pool->worker[i]);
      g_string_free(pool->worker[i].message, TRUE);
    }
}

static gboolean work(struct pool *pool, volatile sig_atomic_t *interrupted, GError **error)
{
  while (!*interrupted) {
    if (!start_more(pool, error))
      return FALSE;
    if (pool->ops->tick)
      pool->ops->tick(pool->context);
    if (pool->running == 0 || pool->stopped)
      break;
    wait_for_some(pool);
  }
  return TRUE;
}

gboolean pool_run(const struct pool_ops *ops, void *context, guint jobs, volatile sig_atomic_t *interrupted,
                  GError **error)
{
  struct pool pool = {.ops = ops, .context = context, .jobs = CLAMP(jobs, 1, POOL_JOBS_MAX)};
  sigset_t ours;
  pool.worker = g_new0(struct worker, pool.jobs);
  pool.polled = g_new0(struct pollfd, pool.jobs);
  /* Signals come while ppoll waits, and at no other time: none is slept through. */
  sigemptyset(&ours);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGTERM);
  sigprocmask(SIG_BLOCK, &ours, &pool.open_mask);
  gboolean good = work(&pool, interrupted, error);
  kill_all(&pool);
  sigprocmask(SIG_SETMASK, &pool.open_mask, NULL);
  g_free(pool.worker);
  g_free(pool.polled);
  return good;
}
