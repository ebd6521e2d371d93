/* Servers that come back: away for longer than anybody waits, cut off, or killed and started again, once or
 * over and over while a run is on. */
#include "cluster.h"
#include "outcome_check.h"
#include "trial.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <signal.h>

static const char *const kinds[] = {"gpu-server", "memory-server"};

struct servers {
  struct process *controller, *of[2][2]; /* [kind][index] */
};

static struct process *server_start(ClusterLab *lab, int kind, int index)
{
  return kind == 0 ? lab_gpu_server(lab, index) : lab_memory_server(lab, index);
}

static struct process *start_all(ClusterLab *lab, struct servers *s)
{
  s->controller = lab_controller(lab);
  for (int kind = 0; kind < 2; kind++)
    for (int i = 0; i < 2; i++)
      s->of[kind][i] = server_start(lab, kind, i);
  struct process *client = lab_client(lab, "return", "");
  cr_assert(process_says(s->controller, ": begun", 1, 60), "the run does not begin");
  return client;
}

static void cut(pid_t pid)
{
  if (process_cut(pid) < 0)
    cr_skip_test("this system lets nobody take another process's sockets (pidfd_getfd)");
}

/* It was given up, and is asked again: requests are sent to GPU 0, shards are placed. */
static void check_back(ClusterLab *lab, const struct servers *s, int kind, struct process *client)
{
  g_autofree char *what = g_strdup_printf("%s 0", kinds[kind]);
  cr_assert(process_says(s->of[kind][0], "linked to the controller", 2, 30), "%s does not link anew", what);
  if (kind == 1)
    cr_assert(process_says(s->of[kind][0], "the pool follows plan", 1, 10), "%s gets no shards", what);
  cr_assert(process_await(client, 60), "%s: the run does not end", what);
  struct run_sums sums = outcome_check(lab, client, "return.db", what);
  cr_assert_eq(sums.failed, 0, "%s: %d failed", what, (int)sums.failed);
  if (kind == 0)
    cr_assert_gt(outcome_ask(lab, "return.db",
                             "SELECT count(*) FROM request WHERE outcome = 'completed' AND gpu = 0 AND "
                             "dispatch_ns > 4.5e9"),
                 5, "%s is not used again", what);
}

Test(comes_back, after_longer_than_anybody_waits)
{
  for (int kind = 0; kind < 2; kind++) {
    g_autoptr(ClusterLab) lab = lab_new();
    lab_experiment(lab, WATCHFUL "workload.duration_s=7;workload.rate_rps=100;pipeline.replicas=2");
    struct servers s;
    struct process *client = start_all(lab, &s);
    kill(s.of[kind][0]->pid, SIGSTOP);
    cr_assert(process_says(s.controller, " 0 is lost: ", 1, 20), "%s is not missed", kinds[kind]);
    kill(s.of[kind][0]->pid, SIGCONT);
    check_back(lab, &s, kind, client);
  }
}

Test(comes_back, after_it_was_cut_off)
{
  for (int kind = 0; kind < 2; kind++) {
    g_autoptr(ClusterLab) lab = lab_new();
    lab_experiment(lab, WATCHFUL "workload.duration_s=6;workload.rate_rps=100;pipeline.replicas=2");
    struct servers s;
    struct process *client = start_all(lab, &s);
    cut(s.of[kind][0]->pid);
    check_back(lab, &s, kind, client);
  }
}

/* Under a plan that is not the first, with one copy of each shard: what the server had, it reads again. */
Test(comes_back, with_the_only_copies_that_there_were)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "workload.duration_s=6;workload.rate_rps=100;cluster.memory_servers=3;"
                      "events.a=at 0.2 remove memory_server 2");
  lab_controller(lab);
  struct process *memory[3], *client;
  for (int i = 0; i < 3; i++)
    memory[i] = lab_memory_server(lab, i);
  for (int i = 0; i < 2; i++)
    lab_gpu_server(lab, i);
  client = lab_client(lab, "return", "");
  cr_assert(process_says(memory[0], "the pool follows plan 2", 1, 60), "there is no second plan");
  kill(memory[0]->pid, SIGKILL);
  cr_assert(process_await(memory[0], 10));
  struct process *again = lab_memory_server(lab, 0);
  cr_assert(process_says(again, "the pool follows plan 3", 1, 30), "it gets no shards again");
  cr_assert(process_await(client, 60), "the run does not end");
  struct run_sums sums = outcome_check(lab, client, "return.db", "only copies");
  cr_assert_gt(sums.completed, sums.requests / 2);
  cr_assert_eq(outcome_ask(lab, "return.db",
                           "SELECT count(*) FROM request WHERE outcome <> 'completed' AND arrival_ns > 5e9"),
               0, "shards are lost still");
}

/* The next system's run begins with the servers that the experiment names, whatever the last one's events
 * killed or added. */
Test(comes_back, for_the_next_system)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab,
                 "experiment.systems=distmind\\;pipeswitch;cluster.gpu_servers=2;"
                 "workload.duration_s=1;events.a=at 0.2 fail gpu_server 1;events.b=at 0.4 add gpu_server 1");
  struct process *client =
      lab_start(lab, "run experiment.ini --local --device host --json --quiet --out n.db");
  cr_assert(process_await(client, 60), "the client does not end");
  g_autofree char *log = process_log(client);
  cr_assert_eq(client->status, 0, "%s", log);
  for (int run = 1; run <= 2; run++) {
    g_autofree char *early = g_strdup_printf("SELECT count(*) FROM request WHERE run = %d AND gpu = 1 AND "
                                             "dispatch_ns < 0.2e9",
                                             run);
    g_autofree char *added = g_strdup_printf("SELECT count(*) FROM request WHERE run = %d AND gpu = 2 AND "
                                             "dispatch_ns < 0.4e9",
                                             run);
    g_autofree char *failed =
        g_strdup_printf("SELECT count(*) FROM request WHERE run = %d AND outcome <> 'completed'", run);
    cr_assert_gt(outcome_ask(lab, "n.db", early), 0, "run %d begins without GPU server 1", run);
    cr_assert_eq(outcome_ask(lab, "n.db", added), 0, "run %d begins with the one that is added", run);
    cr_assert_eq(outcome_ask(lab, "n.db", failed), 0, "run %d", run);
  }
}

/* --- over and over
 * --------------------------------------------------------------------------------------------------*/

struct ordeal {
  guint32 seed, number;
};

ParameterizedTestParameters(comes_back, over_and_over)
{
  guint rounds = trial_rounds();
  guint32 seed = trial_seed();
  struct ordeal *ordeals = cr_malloc(rounds * sizeof *ordeals);
  for (guint i = 0; i < rounds; i++)
    ordeals[i] = (struct ordeal){seed, i};
  return cr_make_param_array(struct ordeal, ordeals, rounds);
}

static void befall(ClusterLab *lab, struct servers *s, GRand *random, GString *story)
{
  int kind = g_rand_int_range(random, 0, 2), index = g_rand_int_range(random, 0, 2);
  int fault = g_rand_int_range(random, 0, 3);
  struct process **server = &s->of[kind][index];
  g_string_append_printf(story, "%s %s %d; ",
                         fault == 0   ? "kill"
                         : fault == 1 ? "pause"
                                      : "cut",
                         kinds[kind], index);
  if (fault == 0) {
    kill((*server)->pid, SIGKILL);
    cr_assert(process_await(*server, 10), "%s", story->str);
    *server = server_start(lab, kind, index);
  } else if (fault == 1) {
    kill((*server)->pid, SIGSTOP);
    g_usleep((gulong)g_rand_int_range(random, 50000, 800000));
    kill((*server)->pid, SIGCONT);
  } else {
    cut((*server)->pid);
  }
  g_usleep((gulong)g_rand_int_range(random, 0, 500000));
}

ParameterizedTest(struct ordeal *ordeal, comes_back, over_and_over)
{
  g_autoptr(GRand) random = g_rand_new_with_seed_array((const guint32[]){ordeal->seed, ordeal->number}, 2);
  g_autoptr(GString) story = g_string_new(NULL);
  g_autoptr(ClusterLab) lab = lab_new();
  g_string_append_printf(story, "DISTMIND_SEED=%u, ordeal %u: ", ordeal->seed, ordeal->number);
  lab_experiment(lab, WATCHFUL "workload.duration_s=5;pipeline.replicas=2;workload.timeout_s=2");
  struct servers s;
  struct process *client = start_all(lab, &s);
  for (int i = 0; i < 7; i++)
    befall(lab, &s, random, story);
  cr_assert(process_await(client, 60), "%s: the run does not end", story->str);
  outcome_check(lab, client, "return.db", story->str);
  cr_assert_lt(outcome_ask(lab, "return.db", "SELECT max(end_ns - arrival_ns) FROM request"), 5000000000,
               "%s: an answer came too late", story->str);
  for (int kind = 0; kind < 2; kind++)
    for (int i = 0; i < 2; i++) { /* none gave up in between */
      g_autofree char *log = process_log(s.of[kind][i]);
      kill(s.of[kind][i]->pid, SIGTERM);
      cr_assert(process_await(s.of[kind][i], 20) && s.of[kind][i]->status == 0, "%s %s %d ended with %d: %s",
                story->str, kinds[kind], i, s.of[kind][i]->status, log);
    }
}
