/* Servers that die or are away while reads of their memory, or into theirs, are under way over verbs: the run
 * ends, every request ends once, and the others go on.
 *
 * The experiment's models take tens of milliseconds to read, most requests read theirs, and there is a second
 * copy of everything. */
#include "rxe_lab.h"

#include <criterion/criterion.h>
#include <signal.h>

static struct process *begin(ClusterLab *lab)
{
  g_autofree char *experiment = rxe_experiment("real-verbs.ini");
  struct process *client =
      lab_start(lab,
                "run %s --local --device host --transport verbs --json --quiet --log info --out f.db "
                "--set pipeline.replicas=2 --set output.decisions=all --set cluster.heartbeat_ms=1000 "
                "--set workload.duration_s=9",
                experiment);
  cr_assert(process_says(client, ": begun", 1, 120), "the run does not begin");
  return client;
}

/* Until packets of reads are flowing: what follows happens in the midst of them. */
static void await_reads(void)
{
  guint64 before = rxe_packets();
  for (gint64 end = g_get_monotonic_time() + 60 * G_USEC_PER_SEC; rxe_packets() - before < 100;
       g_usleep(1000))
    cr_assert_lt(g_get_monotonic_time(), end, "nothing is read");
}

static pid_t victim(ClusterLab *lab, const char *role)
{
  pid_t pid = lab_role(lab, role, 0);
  cr_assert_gt(pid, 0, "no %s 0", role);
  return pid;
}

static void finish(ClusterLab *lab, struct process *client, const char *what, gboolean all_complete)
{
  cr_assert(process_await(client, 120), "%s: the run does not end", what);
  struct run_sums sums = outcome_check(lab, client, "f.db", what);
  g_autofree char *log = process_log(client), *left = lab_await_empty(lab, 20) ? NULL : lab_left(lab);
  cr_assert_null(left, "%s: still there: %s", what, left);
  cr_assert_gt(sums.completed, 0, "%s: %s", what, log);
  if (all_complete)
    cr_assert_eq(sums.failed, 0, "%s: %d of %d failed: %s", what, (int)sums.failed, (int)sums.requests, log);
}

/* Requests that loaded their model over the network after the server was taken for lost, and completed. */
static gint64 loaded_after_loss(ClusterLab *lab)
{
  return outcome_ask(
      lab, "f.db",
      "SELECT count(*) FROM request WHERE outcome = 'completed' AND found = 'remote' AND dispatch_ns > "
      "(SELECT min(time_ns) FROM decision WHERE kind = 'member' AND (reason = 'left' OR reason LIKE "
      "'lost%'))");
}

Test(verbs_faults, a_memory_server_is_killed_in_mid_read)
{
  g_autoptr(ClusterLab) lab = lab_new();
  struct process *client = begin(lab);
  await_reads();
  kill(victim(lab, "memory-server"), SIGKILL);
  finish(lab, client, "killed", TRUE); /* there is a second copy of everything */
  cr_assert_gt(loaded_after_loss(lab), 0, "nothing was read from the server that is left");
}

/* Its memory can be read while its processor does nothing: only heartbeats miss it. */
Test(verbs_faults, a_memory_server_is_stopped_and_goes_on)
{
  /* Shorter than heartbeats notice, and longer. */
  static const struct {
    gint64 us;
    const char *what;
  } pause[] = {{300000, "stopped for 0.3 s"}, {5000000, "stopped for 5 s"}};
  for (guint i = 0; i < G_N_ELEMENTS(pause); i++) {
    g_autoptr(ClusterLab) lab = lab_new();
    struct process *client = begin(lab);
    await_reads();
    pid_t pid = victim(lab, "memory-server");
    kill(pid, SIGSTOP);
    g_usleep((gulong)pause[i].us); /* the length is the test's own choice */
    kill(pid, SIGCONT);
    finish(lab, client, pause[i].what, TRUE);
  }
}

/* Its queue pairs vanish while memory servers answer them. */
Test(verbs_faults, a_gpu_server_is_killed_in_mid_read)
{
  g_autoptr(ClusterLab) lab = lab_new();
  struct process *client = begin(lab);
  await_reads();
  kill(victim(lab, "gpu-server"), SIGKILL);
  finish(lab, client, "GPU server killed", FALSE);
  cr_assert_gt(loaded_after_loss(lab), 0, "the other GPU server reads nothing any more");
}
