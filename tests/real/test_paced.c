/* A run whose traffic is held to a rate, on real processes: no load is shorter than a link of that rate would
 * let it be. Loads come one after the other with pauses between, in which nothing may be saved up. */
#include "cluster.h"
#include "outcome_check.h"

#include <criterion/criterion.h>

/* 0.2 Gbit/s are 40 ns a byte. */
#define PACE "0.2"
#define LOADS                                                                                                \
  " FROM (SELECT l.a AS bytes, max(n.time_ns) - l.time_ns AS took_ns FROM decision l JOIN decision n"        \
  " USING (request) WHERE l.kind = 'load' AND l.source = 'remote' AND n.kind = 'net' GROUP BY request)"

Test(paced, no_load_beats_the_link)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "experiment.initial=cold;output.decisions=all;"
                      "cluster.host_cache_gb=0;cluster.gpu_models_max=1;workload.rate_rps=20");
  struct process *client = lab_start(lab, "run experiment.ini --local --device host --pace " PACE
                                          " --json --quiet --log info --out r.db");
  cr_assert(process_await(client, 60), "the run does not end");
  struct run_sums sums = outcome_check(lab, client, "r.db", "paced");
  cr_expect_eq(sums.completed, sums.requests);
  gint64 loads = outcome_ask(lab, "r.db", "SELECT count(*)" LOADS);
  cr_expect_geq(loads, 10, "%d loads", (int)loads);
  cr_expect_eq(outcome_ask(lab, "r.db", "SELECT count(*)" LOADS " WHERE took_ns < 40 * bytes"), 0);
  gint64 least = outcome_ask(lab, "r.db", "SELECT min(100 * took_ns / (40 * bytes))" LOADS);
  cr_expect_lt(least, 200, "the shortest load takes %d%% of its time on the link", (int)least);
}
