/* The pool of worker processes: each task once, so many at once, and what becomes of those that fail, crash,
 * or are not needed. */
#include "backend_sim/pool.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"

#define TASKS 40

enum deed { DO_WORK, REFUSE, FAIL_LONG, CRASH, STAY };

struct lab {
  enum deed deed[TASKS];
  guint next, ended[TASKS];
  char *failure[TASKS];
  gboolean input[TASKS];
  guint stop_after; /* tasks that have ended; 0: never */
  guint all_ended;
  volatile int *running, *most, *runs; /* shared with the children */
};

static int64_t lab_next(void *context)
{
  struct lab *lab = context;
  if (lab->stop_after && lab->all_ended >= lab->stop_after)
    return POOL_STOP;
  return lab->next < TASKS ? (int64_t)lab->next++ : POOL_NONE;
}

static gboolean lab_run(void *context, uint64_t task, GError **error)
{
  struct lab *lab = context;
  int now = __atomic_add_fetch(lab->running, 1, __ATOMIC_SEQ_CST);
  int most = *lab->most;
  while (now > most &&
         !__atomic_compare_exchange_n(lab->most, &most, now, FALSE, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    ;
  __atomic_add_fetch(&lab->runs[task], 1, __ATOMIC_SEQ_CST);
  if (lab->deed[task] == STAY)
    pause();
  g_usleep(2000); /* long enough that others are seen beside it */
  __atomic_sub_fetch(lab->running, 1, __ATOMIC_SEQ_CST);
  if (lab->deed[task] == REFUSE)
    return input_error(error, "x.ini", 3, "task %d is refused", (int)task);
  if (lab->deed[task] == FAIL_LONG) {
    g_autofree char *text = g_strnfill(100000, 'x');
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "long: %s", text);
    return FALSE;
  }
  if (lab->deed[task] == CRASH)
    raise(SIGKILL);
  return TRUE;
}

static void lab_ended(void *context, uint64_t task, const char *failure, gboolean input)
{
  struct lab *lab = context;
  lab->ended[task]++;
  lab->all_ended++;
  lab->failure[task] = g_strdup(failure);
  lab->input[task] = input;
}

static const struct pool_ops ops = {.next = lab_next, .run = lab_run, .ended = lab_ended};

static void lab_open(struct lab *lab)
{
  *lab = (struct lab){.next = 0};
  int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  cr_assert_neq(shared, MAP_FAILED);
  lab->running = shared;
  lab->most = shared + 1;
  lab->runs = shared + 2;
}

static void lab_close(struct lab *lab)
{
  for (guint i = 0; i < TASKS; i++)
    g_free(lab->failure[i]);
  munmap((void *)lab->running, 4096);
}

static volatile sig_atomic_t interrupted;

Test(workers, do_each_task_once_and_so_many_at_once)
{
  for (guint jobs = 1; jobs <= 8; jobs += 7) {
    struct lab lab;
    lab_open(&lab);
    cr_assert(pool_run(&ops, &lab, jobs, &interrupted, NULL));
    for (guint i = 0; i < TASKS; i++)
      cr_assert(lab.ended[i] == 1 && lab.runs[i] == 1 && !lab.failure[i], "task %u", i);
    cr_assert_leq(*lab.most, (int)jobs, "%d at once", *lab.most);
    cr_assert(jobs == 1 || *lab.most > 1, "never two at once");
    lab_close(&lab);
  }
}

Test(workers, failures_are_told_and_stop_nobody)
{
  struct lab lab;
  lab_open(&lab);
  lab.deed[3] = REFUSE;
  lab.deed[4] = FAIL_LONG;
  lab.deed[5] = CRASH;
  cr_assert(pool_run(&ops, &lab, 3, &interrupted, NULL));
  cr_assert(lab.input[3] && strstr(lab.failure[3], "x.ini:3: task 3 is refused"), "%s", lab.failure[3]);
  cr_assert(!lab.input[4] && g_str_has_prefix(lab.failure[4], "long: xxx") && strlen(lab.failure[4]) > 1000);
  cr_assert(!lab.input[5] && strstr(lab.failure[5], "signal 9"), "%s", lab.failure[5]);
  for (guint i = 0; i < TASKS; i++)
    cr_assert(lab.ended[i] == 1 && (lab.failure[i] != NULL) == (i >= 3 && i <= 5), "task %u", i);
  lab_close(&lab);
}

/* What is not needed any more is killed, not waited for. */
Test(workers, stop_when_told, .timeout = 20)
{
  struct lab lab;
  lab_open(&lab);
  lab.deed[0] = lab.deed[1] = STAY;
  lab.stop_after = 5;
  cr_assert(pool_run(&ops, &lab, 4, &interrupted, NULL));
  cr_assert(lab.all_ended >= 5 && lab.all_ended < TASKS && !lab.ended[0] && !lab.ended[1]);
  lab_close(&lab);
}

static void on_alarm(int number)
{
  (void)number;
  interrupted = 1;
}

/* A signal ends it at once, also while all that it does is wait. */
Test(workers, stop_when_interrupted, .timeout = 20)
{
  struct lab lab;
  lab_open(&lab);
  for (guint i = 0; i < TASKS; i++)
    lab.deed[i] = STAY;
  signal(SIGTERM, on_alarm);
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    while (*lab.running < 2)
      g_usleep(1000);
    kill(parent, SIGTERM);
    _exit(0);
  }
  cr_assert(pool_run(&ops, &lab, 2, &interrupted, NULL));
  cr_assert_eq(lab.all_ended, 0);
  cr_assert_eq(lab.next, 2);
  lab_close(&lab);
}
