/* A cluster of processes that a user starts one by one: who comes late, leaves, dies or is in the way. */
#include "cluster.h"
#include "outcome_check.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

struct servers {
  struct process *controller, *gpu[2], *memory[2];
};

static void start_servers(ClusterLab *lab, struct servers *s)
{
  s->controller = lab_controller(lab);
  for (int i = 0; i < 2; i++) {
    s->gpu[i] = lab_gpu_server(lab, i);
    s->memory[i] = lab_memory_server(lab, i);
  }
}

static void expect_begun(struct servers *s, guint runs)
{
  cr_assert(process_says(s->controller, ": begun", runs, 60), "run %u does not begin", runs);
}

/* Ends as SIGTERM asks: status 0, and nothing else is said. */
static void expect_clean_end(struct process *process, const char *what)
{
  kill(process->pid, SIGTERM);
  cr_assert(process_await(process, 20), "%s does not end", what);
  g_autofree char *log = process_log(process);
  cr_assert_eq(process->status, 0, "%s: status %d: %s", what, process->status, log);
}

static struct run_sums expect_run(ClusterLab *lab, const char *name, const char *what)
{
  struct process *client = lab_client(lab, name, "");
  g_autofree char *database = g_strconcat(name, ".db", NULL);
  cr_assert(process_await(client, 60), "%s: the run does not end", what);
  return outcome_check(lab, client, database, what);
}

/* Servers link in any order; what they are is told by place. And the controller says for whom it waits. */
Test(cluster, servers_are_told_in_the_order_of_their_places)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "workload.duration_s=0.2");
  struct process *controller = lab_controller(lab), *client = lab_client(lab, "order", "");
  cr_assert(process_says(controller, "waits for gpu-server 0, gpu-server 1, memory-server 0, memory-server 1",
                         1, 30));
  for (int i = 1; i >= 0; i--) {
    struct process *memory = lab_memory_server(lab, i);
    cr_assert(process_says(memory, "linked to the controller", 1, 30));
    struct process *gpu = lab_gpu_server(lab, i);
    cr_assert(process_says(gpu, "linked to the controller", 1, 30));
  }
  cr_assert(process_await(client, 60) && client->status == 0, "the run does not end well");
  cr_assert_eq(
      outcome_ask(
          lab, "order.db",
          "SELECT instr(notices, 'gpu-server 0: ') BETWEEN 1 AND instr(notices, 'gpu-server 1: ') AND "
          "instr(notices, 'memory-server 0: ') BETWEEN 1 AND instr(notices, 'memory-server 1: ') FROM run"),
      1);
}

#define LOST_MEMBERS "SELECT count(*) FROM decision WHERE kind = 'member' AND reason LIKE 'lost%'"

Test(cluster, nobody_is_lost_in_a_calm_run)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "output.decisions=all");
  struct servers s;
  start_servers(lab, &s);
  for (int run = 0; run < 2; run++) {
    g_autofree char *name = g_strdup_printf("calm%d", run), *database = g_strconcat(name, ".db", NULL);
    struct run_sums sums = expect_run(lab, name, name);
    cr_assert_eq(sums.completed, sums.requests, "%s", name);
    cr_assert_eq(outcome_ask(lab, database, LOST_MEMBERS), 0, "a server was taken for dead");
  }
  for (int i = 0; i < 2; i++) { /* not either where a run ends and its connections are closed */
    g_autofree char *log = process_log(s.gpu[i]);
    cr_assert_not(strstr(log, "lost"), "gpu-server %d: %s", i, log);
  }
  expect_clean_end(s.gpu[0], "gpu-server");
  expect_clean_end(s.memory[0], "memory-server");
  expect_clean_end(s.controller, "controller");
  /* The others are told good-bye: a clean end too. */
  cr_assert(process_await(s.gpu[1], 10) && s.gpu[1]->status == 0, "gpu-server 1 stays or fails");
  cr_assert(process_await(s.memory[1], 10) && s.memory[1]->status == 0, "memory-server 1 stays or fails");
}

Test(cluster, two_clients_at_once)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "");
  struct servers s;
  start_servers(lab, &s);
  struct process *first = lab_client(lab, "first", "");
  expect_begun(&s, 1);
  struct process *second = lab_client(lab, "second", "");
  cr_assert(process_await(second, 30), "the second client does not end");
  outcome_failed(second, "another client's run is on", "second");
  cr_assert(process_await(first, 60), "the first client does not end");
  struct run_sums sums = outcome_check(lab, first, "first.db", "first");
  cr_assert_eq(sums.failed, 0, "the second client disturbed the first");
}

Test(cluster, a_client_that_dies_leaves_the_servers_to_the_next)
{
  static const int signals[] = {SIGKILL, SIGINT, SIGSTOP};
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "workload.duration_s=30");
  struct servers s;
  start_servers(lab, &s);
  for (guint i = 0; i < G_N_ELEMENTS(signals); i++) {
    g_autofree char *name = g_strdup_printf("dies%u", i);
    struct process *client = lab_client(lab, name, "");
    expect_begun(&s, i + 1);
    kill(client->pid, signals[i]);
    gboolean leaves = signals[i] == SIGINT;
    cr_assert(process_says(s.controller,
                           leaves ? "client 0 left" : "client 0 is lost: ", leaves || i == 0 ? 1 : 2, 20),
              "%s: it is not missed", name);
    cr_assert(process_says(s.controller, ": over", i + 1, 20), "%s: its run is not over", name);
    if (signals[i] == SIGINT)
      cr_assert(process_await(client, 20) && client->status == 130, "status %d", client->status);
    if (signals[i] == SIGSTOP) {
      kill(client->pid, SIGCONT);
      cr_assert(process_await(client, 20), "a client that was away does not end");
      outcome_failed(client, "the controller is lost", name);
    }
  }
  lab_experiment(lab, "");
  struct run_sums sums = expect_run(lab, "next", "the next client");
  cr_assert_eq(sums.failed, 0);
}

Test(cluster, a_server_that_cannot_prepare_fails_the_run_alone)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "");
  struct servers s;
  start_servers(lab, &s);
  struct process *client = lab_client(lab, "bad", "--system serverlessllm");
  cr_assert(process_await(client, 60), "the client does not end");
  outcome_failed(client, "loads from a local SSD: expected --ssd-folder", "no folder");
  struct run_sums sums = expect_run(lab, "good", "the run after");
  cr_assert_eq(sums.failed, 0);
}

/* One more microsecond in a layer. */
static void change_profile(ClusterLab *lab)
{
  g_autofree char *path = lab_path(lab, "tiny.csv"), *text = NULL;
  cr_assert(g_file_get_contents(path, &text, NULL, NULL));
  strstr(text, ",83\n")[2] = '4';
  cr_assert(g_file_set_contents(path, text, -1, NULL));
}

static void change_experiment(ClusterLab *lab)
{
  lab_experiment(lab, "cluster.host_cache_gb=0.0006");
}

/* What the servers read is not what client and controller read before them. */
Test(cluster, servers_with_other_files_are_refused)
{
  static void (*const change[])(ClusterLab *) = {change_profile, change_experiment};
  for (gsize i = 0; i < G_N_ELEMENTS(change); i++) {
    g_autoptr(ClusterLab) lab = lab_new();
    lab_experiment(lab, "");
    struct process *controller = lab_controller(lab), *client = lab_client(lab, "other", "");
    cr_assert(process_says(controller, "waits for gpu-server 0", 1, 30));
    change[i](lab);
    for (int s = 0; s < 2; s++) {
      lab_gpu_server(lab, s);
      lab_memory_server(lab, s);
    }
    cr_assert(process_await(client, 60), "the client does not end");
    outcome_failed(client, "its experiment, profiles or hardware files are not the controller's",
                   "other files");
  }
}

/* The client waits; told to end, it does, and the servers that are there stay free for others. */
Test(cluster, more_servers_than_there_are)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "cluster.gpu_servers=3");
  struct servers s;
  start_servers(lab, &s);
  struct process *client = lab_client(lab, "three", "");
  cr_assert(process_says(s.controller, "run 1: ", 1, 30));
  kill(client->pid, SIGINT);
  cr_assert(process_await(client, 20), "the client does not end");
  cr_assert_eq(client->status, 130, "status %d", client->status);
  client = lab_client(lab, "again", "");
  cr_assert(process_says(s.controller, "run 2: ", 1, 30));
  lab_gpu_server(lab, 2); /* the one that was missing */
  cr_assert(process_await(client, 60), "the client does not end");
  cr_assert_eq(outcome_check(lab, client, "again.db", "three servers").failed, 0);
}

/* It has no place at the start: the run begins without it. */
Test(cluster, a_server_joins_and_is_used)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "cluster.gpu_servers=1;workload.rate_rps=100;workload.duration_s=5;output.requests=all;"
                      "events.more=at 0.3 add gpu_server 1");
  struct process *client =
      lab_start(lab, "run experiment.ini --local --device host --json --quiet --out j.db");
  cr_assert(process_await(client, 60), "the client does not end");
  struct run_sums sums = outcome_check(lab, client, "j.db", "a server joins");
  cr_assert_eq(sums.failed, 0);
  cr_assert_gt(
      outcome_ask(lab, "j.db", "SELECT count(*) FROM request WHERE gpu = 1 AND outcome = 'completed'"), 20,
      "the server that joined is not used");
}

/* Both pools grow, shrink and lose a server in one run; what the file says comes to pass. */
Test(cluster, servers_come_and_go)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "pipeline.replicas=2;workload.duration_s=4;output.decisions=all;"
                      "events.a=at 0.3 add memory_server 1;events.b=at 1.5 remove memory_server 0;"
                      "events.c=at 2 remove gpu_server 0;events.d=at 2.5 add gpu_server 1;"
                      "events.e=at 3 fail memory_server 1");
  struct process *client =
      lab_start(lab, "run experiment.ini --local --device host --json --quiet --log info --out e.db");
  cr_assert(process_await(client, 60), "the client does not end");
  struct run_sums sums = outcome_check(lab, client, "e.db", "come and go");
  g_autofree char *log = process_log(client);
  cr_assert_eq(sums.failed, 0, "%d failed: %s", (int)sums.failed, log);
  cr_assert_eq(outcome_ask(lab, "e.db", LOST_MEMBERS), 1, "of those that failed or left");
  cr_assert_eq(outcome_ask(lab, "e.db", "SELECT count(*) FROM request WHERE gpu = 0 AND dispatch_ns > 2.5e9"),
               0, "sent to a server that left");
}

/* A server that is killed and started again takes its place again, with whatever the plan was meanwhile. */
Test(cluster, a_memory_server_starts_again)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab,
                 "cluster.heartbeat_ms=300;workload.duration_s=6;workload.rate_rps=100;pipeline.replicas=2");
  struct servers s;
  start_servers(lab, &s);
  struct process *client = lab_client(lab, "again", "");
  expect_begun(&s, 1);
  for (int round = 0; round < 4; round++) { /* one after the other: each needs the other's copies */
    int i = round % 2;
    kill(s.memory[i]->pid, SIGKILL);
    cr_assert(process_await(s.memory[i], 10));
    s.memory[i] = lab_memory_server(lab, i);
    cr_assert(process_says(s.memory[i], "the pool follows plan", 1, 20), "memory-server %d gets no shards",
              i);
  }
  cr_assert(process_await(client, 60), "the client does not end");
  struct run_sums sums = outcome_check(lab, client, "again.db", "memory servers start again");
  cr_assert_eq(sums.failed, 0, "%d of %d failed", (int)sums.failed, (int)sums.requests);
}

/* A server whose requests have a time limit: the answer comes within it, whoever is silent. */
Test(cluster, a_time_limit_holds_although_a_server_is_silent)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "cluster.heartbeat_ms=1000;workload.timeout_s=0.3;cluster.gpu_servers=1");
  struct servers s;
  start_servers(lab, &s);
  struct process *client = lab_client(lab, "limit", "");
  expect_begun(&s, 1);
  kill(s.gpu[0]->pid, SIGSTOP);
  cr_assert(process_await(client, 60), "the client does not end");
  struct run_sums sums = outcome_check(lab, client, "limit.db", "silent server");
  cr_assert_gt(sums.timed_out, 0);
  cr_assert_lt(outcome_ask(lab, "limit.db", "SELECT max(end_ns - arrival_ns) FROM request"), 2500000000,
               "an answer came too late");
}

/* SIGTERM at any role while it waits, links, prepares, runs. */
Test(cluster, sigterm_ends_any_role_at_any_stage)
{
  static const char *const until[] = {"listening on ", "run 1: ", ": begun"};
  for (guint stage = 0; stage < G_N_ELEMENTS(until); stage++)
    for (int role = 0; role < 3; role++) {
      g_autoptr(ClusterLab) lab = lab_new();
      lab_experiment(lab, "workload.duration_s=1;pipeline.replicas=2");
      struct servers s;
      start_servers(lab, &s);
      struct process *client = lab_client(lab, "term", "");
      struct process *of_role[] = {s.controller, s.gpu[0], s.memory[0]};
      cr_assert(process_says(s.controller, until[stage], 1, 30));
      cr_assert(stage == 0 || role == 0 || process_says(of_role[role], "linked to the controller", 1, 30));
      kill(of_role[role]->pid, SIGTERM);
      cr_assert(process_await(of_role[role], 20), "role %d does not end at stage %u", role, stage);
      g_autofree char *log = process_log(of_role[role]);
      /* One that has not come to heed signals yet dies of them, as any program does. */
      cr_assert(of_role[role]->status == 0 || (stage == 0 && of_role[role]->status == 128 + SIGTERM),
                "role %d at stage %u: status %d: %s", role, stage, of_role[role]->status, log);
      gboolean told = role > 0 ? stage < 2 : stage == 0; /* else it may wait for the one that ended */
      if (told)
        kill(client->pid, SIGTERM);
      gboolean ended = process_await(client, 30);
      g_autofree char *story = process_log(s.controller);
      cr_assert(ended, "role %d at stage %u: the client does not end: %s", role, stage, story);
      cr_assert(client->status < 2 || told, "the client ends with %d", client->status);
      if (role == 0)
        cr_assert_neq(client->status, 0, "without a controller");
      if (client->status == 0)
        outcome_check(lab, client, "term.db", "a server left");
    }
}
