/* Loads that land in GPU memory, on real processes: the host device's memory over TCP, every byte checked. */
#include "cluster.h"
#include "outcome_check.h"

#include <criterion/criterion.h>
#include <signal.h>

/* Models that are loaded again and again, and nothing in host memory to load them from. */
#define DIRECT "pipeline.path=gpudirect;output.decisions=all;"

static void expect_decisions(ClusterLab *lab, const char *what)
{
  gint64 remote = outcome_ask(lab, "r.db", "SELECT count(*) FROM request WHERE found = 'remote'");
  cr_expect_gt(remote, 0, "%s", what);
  cr_expect_geq(outcome_ask(lab, "r.db", "SELECT count(*) FROM decision WHERE kind = 'net'"), remote, "%s",
                what);
  cr_expect_eq(outcome_ask(lab, "r.db", "SELECT count(*) FROM decision WHERE kind = 'pcie'"), 0, "%s", what);
  cr_expect_eq(outcome_ask(lab, "r.db", "SELECT count(*) FROM request WHERE found = 'host'"), 0, "%s", what);
}

Test(gpudirect, every_byte_is_right_without_a_copy)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, DIRECT "experiment.initial=cold;cluster.gpus_per_server=2");
  struct process *client =
      lab_start(lab, "run experiment.ini --local --device host --json --quiet --log info --out r.db");
  cr_assert(process_await(client, 60), "the run does not end");
  struct run_sums sums = outcome_check(lab, client, "r.db", "calm");
  cr_expect_eq(sums.completed, sums.requests);
  expect_decisions(lab, "calm");
}

/* With a second copy of everything, nothing is lost: what is missing is read from there. */
Test(gpudirect, a_memory_server_is_killed)
{
  for (int index = 0; index < 2; index++) {
    g_autoptr(ClusterLab) lab = lab_new();
    lab_experiment(lab, DIRECT "experiment.initial=cold;pipeline.replicas=2");
    struct process *client =
        lab_start(lab, "run experiment.ini --local --device host --json --quiet --log info --out r.db");
    cr_assert(process_says(client, ": begun", 1, 60), "the run does not begin");
    pid_t pid = lab_role(lab, "memory-server", index);
    cr_assert_gt(pid, 0);
    g_usleep(400000); /* a moment in the middle of the run: the test's own choice */
    kill(pid, SIGKILL);
    cr_assert(process_await(client, 60), "the run does not end");
    struct run_sums sums = outcome_check(lab, client, "r.db", "killed");
    cr_expect_eq(sums.failed, 0, "%d of %d failed", (int)sums.failed, (int)sums.requests);
    expect_decisions(lab, "killed");
  }
}

/* What is in the host cache from the start goes over PCIe, as ever. */
Test(gpudirect, a_warm_host_cache_is_used)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, DIRECT);
  struct process *client =
      lab_start(lab, "run experiment.ini --local --device host --json --quiet --log info --out r.db");
  cr_assert(process_await(client, 60), "the run does not end");
  struct run_sums sums = outcome_check(lab, client, "r.db", "warm");
  cr_expect_eq(sums.completed, sums.requests);
  cr_expect_gt(outcome_ask(lab, "r.db", "SELECT count(*) FROM request WHERE found = 'host'"), 0);
  cr_expect_gt(outcome_ask(lab, "r.db", "SELECT count(*) FROM request WHERE found = 'remote'"), 0);
}
