/* Servers that die or are away while reads of their memory, or into theirs, are under way over verbs: the run
 * ends, every request ends once, and the others go on.
 *
 * Models are read all the time: two fit a GPU, requests for twelve come faster than the emulated devices
 * carry them at their worst. */
#include "rxe_lab.h"

#include <criterion/criterion.h>
#include <signal.h>

#define REPLICAS 2

static struct process *begin(ClusterLab *lab, const char *more)
{
  g_autofree char *all =
      g_strdup_printf("cluster.heartbeat_ms=400;workload.rate_rps=60;workload.duration_s=5;"
                      "output.decisions=all;pipeline.replicas=%d;%s",
                      REPLICAS, more);
  lab_experiment(lab, all);
  struct process *client = lab_start(
      lab, "run experiment.ini --local --device host --transport verbs --json --quiet --log info --out f.db");
  cr_assert(process_says(client, ": begun", 1, 120), "the run does not begin");
  return client;
}

/* Until the devices carry reads of models: what follows happens in the midst of them. */
static void await_reads(void)
{
  guint64 before = rxe_packets();
  for (gint64 end = g_get_monotonic_time() + 20 * G_USEC_PER_SEC; rxe_packets() - before < 200;
       g_usleep(5000))
    cr_assert_lt(g_get_monotonic_time(), end, "nothing is read");
}

static pid_t victim(ClusterLab *lab, const char *role)
{
  pid_t pid = lab_role(lab, role, 0);
  cr_assert_gt(pid, 0, "no %s 0", role);
  return pid;
}

static struct run_sums finish(ClusterLab *lab, struct process *client, const char *what)
{
  cr_assert(process_await(client, 120), "%s: the run does not end", what);
  struct run_sums sums = outcome_check(lab, client, "f.db", what);
  g_autofree char *left = lab_await_empty(lab, 20) ? NULL : lab_left(lab);
  cr_assert_null(left, "%s: still there: %s", what, left);
  return sums;
}

/* Requests that loaded their model over the network after the server was taken for lost, and completed. */
static gint64 loaded_after_loss(ClusterLab *lab)
{
  return outcome_ask(
      lab, "f.db",
      "SELECT count(*) FROM request WHERE outcome = 'completed' AND found = 'remote' AND dispatch_ns > "
      "(SELECT min(time_ns) FROM decision WHERE kind = 'member' AND reason IN ('left', 'no heartbeat'))");
}

Test(verbs_faults, a_memory_server_is_killed_in_mid_read)
{
  g_autoptr(ClusterLab) lab = lab_new();
  struct process *client = begin(lab, "");
  await_reads();
  kill(victim(lab, "memory-server"), SIGKILL);
  struct run_sums sums = finish(lab, client, "killed");
  cr_assert_eq(sums.failed, 0, "%d of %d failed, with a second copy of everything", (int)sums.failed,
               (int)sums.requests);
  cr_assert_gt(loaded_after_loss(lab), 0, "nothing was read from the server that is left");
}

/* Its memory can be read while its processor does nothing: only heartbeats miss it. */
Test(verbs_faults, a_memory_server_is_stopped_and_goes_on)
{
  static const gint64 pauses_us[] = {200000, 3000000}; /* heartbeats notice none, then one */
  for (guint i = 0; i < G_N_ELEMENTS(pauses_us); i++) {
    g_autoptr(ClusterLab) lab = lab_new();
    struct process *client = begin(lab, "");
    await_reads();
    pid_t pid = victim(lab, "memory-server");
    kill(pid, SIGSTOP);
    g_usleep((gulong)pauses_us[i]); /* the length is the test's own choice */
    kill(pid, SIGCONT);
    struct run_sums sums = finish(lab, client, i == 0 ? "stopped for a moment" : "stopped for long");
    cr_assert_eq(sums.failed, 0, "%d of %d failed", (int)sums.failed, (int)sums.requests);
  }
}

/* Its queue pairs vanish while memory servers answer them. */
Test(verbs_faults, a_gpu_server_is_killed_in_mid_read)
{
  g_autoptr(ClusterLab) lab = lab_new();
  struct process *client = begin(lab, "");
  await_reads();
  kill(victim(lab, "gpu-server"), SIGKILL);
  struct run_sums sums = finish(lab, client, "GPU server killed");
  cr_assert_gt(sums.completed, 0);
  cr_assert_gt(loaded_after_loss(lab), 0, "the other GPU server reads nothing any more");
}
