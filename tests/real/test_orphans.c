/* Nobody and nothing outlives those who started it, however they end: a command that is killed, a test that
 * fails. (lab_free looks for temporary files.) */
#include "cluster.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* With its keys: they must not lie on a disk. */
Test(orphans, a_local_cluster_ends_with_a_command_that_is_killed)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "");
  struct process *run = lab_start(lab, "run experiment.ini --local --device host --log info --out x.db");
  cr_assert(process_says(run, "run 1: begun", 1, 60), "the run does not begin");
  kill(run->pid, SIGKILL);
  cr_assert(process_await(run, 10) && lab_await_empty(lab, 10), "processes are left");
}

/* A child stands for the test; this process only looks on. */
static void fail_with_a_cluster(ClusterLab *lab)
{
  lab_controller(lab);
  for (int i = 0; i < 2; i++) {
    lab_gpu_server(lab, i);
    lab_memory_server(lab, i);
  }
  struct process *run = lab_start(lab, "run experiment.ini --local --device host --log info --out x.db");
  process_says(run, "run 1: begun", 1, 60);
  abort();
}

Test(orphans, a_cluster_ends_with_a_test_that_fails)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "");
  pid_t test = fork();
  int status;
  if (test == 0) {
    signal(SIGABRT, SIG_DFL);
    fail_with_a_cluster(lab);
  }
  cr_assert(test > 0 && waitpid(test, &status, 0) == test);
  cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %x", (guint)status);
  g_autofree char *log = lab_path(lab, "5.log"), *text = NULL;
  cr_assert(g_file_get_contents(log, &text, NULL, NULL) && *text, "no cluster was there");
  cr_assert(lab_await_empty(lab, 10), "processes are left");
}
