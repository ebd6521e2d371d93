/* Each role killed, stopped, stopped for a while, or cut off from all others, at a random moment of a run
 * under load: the run ends as it should, every request ends once, and no process is left.
 *
 * DISTMIND_ROUNDS: of each (3); DISTMIND_SEED: of the random times, else drawn; it stands in every message.
 */
#include "cluster.h"
#include "outcome_check.h"
#include "trial.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <signal.h>

enum fault { FAULT_KILL, FAULT_STOP, FAULT_PAUSE, FAULT_CUT, FAULTS };
static const char *const fault_names[FAULTS] = {"kill", "stop", "pause", "cut"};

struct trial {
  char role[16];
  int index; /* of the server */
  enum fault fault;
  int replicas;
  guint32 seed, number;
  gint64 at_us, pause_us;
  char what[160];
};

static void trial_draw(struct trial *t)
{
  g_autoptr(GRand) random = g_rand_new_with_seed_array((const guint32[]){t->seed, t->number}, 2);
  t->index = g_rand_int_range(random, 0, 2);
  t->replicas = g_rand_int_range(random, 1, 3);
  t->at_us = g_rand_int_range(random, 0, 900000);
  /* Shorter than heartbeats notice, than ZeroMQ's notice, and longer than both. */
  t->pause_us = (const gint64[]){150000, 1000000, 3200000}[g_rand_int_range(random, 0, 3)];
  g_snprintf(t->what, sizeof t->what,
             "%s %s %d at %.3f s, pause %.2f s, %d copies (DISTMIND_SEED=%u, trial %u)",
             fault_names[t->fault], t->role, t->index, (double)t->at_us / 1e6, (double)t->pause_us / 1e6,
             t->replicas, t->seed, t->number);
}

ParameterizedTestParameters(failures, any_role_any_time)
{
  static const char *const roles[] = {"gpu-server", "memory-server", "controller", "run"};
  guint rounds = trial_rounds();
  guint32 seed = trial_seed();
  size_t count = G_N_ELEMENTS(roles) * FAULTS * rounds;
  struct trial *trials = cr_malloc(count * sizeof *trials);
  for (size_t i = 0; i < count; i++) {
    trials[i] =
        (struct trial){.fault = (enum fault)(i / rounds % FAULTS), .seed = seed, .number = (guint32)i};
    g_strlcpy(trials[i].role, roles[i / rounds / FAULTS], sizeof trials[i].role);
    trial_draw(&trials[i]);
  }
  return cr_make_param_array(struct trial, trials, count);
}

static void inflict(const struct trial *t, pid_t pid)
{
  g_usleep((gulong)t->at_us); /* the moment is the test's own choice */
  if (t->fault == FAULT_KILL) {
    kill(pid, SIGKILL);
  } else if (t->fault == FAULT_CUT) {
    if (process_cut(pid) < 0)
      cr_skip_test("this system lets nobody take another process's sockets (pidfd_getfd)");
  } else {
    kill(pid, SIGSTOP);
  }
  if (t->fault != FAULT_PAUSE)
    return;
  g_usleep((gulong)t->pause_us);
  kill(pid, SIGCONT);
}

/* With a second copy of everything, nothing is lost. */
static void check_server_fault(ClusterLab *lab, struct process *client, const struct trial *t)
{
  cr_assert(process_await(client, 60), "%s: the run does not end", t->what);
  struct run_sums sums = outcome_check(lab, client, "r.db", t->what);
  if (t->replicas > 1)
    cr_assert_eq(sums.failed, 0, "%s: %d of %d failed", t->what, (int)sums.failed, (int)sums.requests);
  cr_assert_gt(sums.completed, 0, "%s", t->what);
}

/* A controller that was away for a moment only goes on. */
static void check_controller_fault(ClusterLab *lab, struct process *client, const struct trial *t)
{
  cr_assert(process_await(client, 60), "%s: the client does not end", t->what);
  if (t->fault == FAULT_PAUSE && client->status == 0)
    outcome_check(lab, client, "r.db", t->what);
  else
    outcome_failed(client, "the controller is lost", t->what);
}

static void check_client_fault(ClusterLab *lab, struct process *client, const struct trial *t)
{
  if (t->fault == FAULT_STOP)
    kill(client->pid, SIGKILL); /* and its children must go although nobody tells them */
  cr_assert(process_await(client, 60), "%s: the client does not end", t->what);
  if (t->fault == FAULT_PAUSE && client->status == 0)
    outcome_check(lab, client, "r.db", t->what);
  else if (t->fault == FAULT_CUT || t->fault == FAULT_PAUSE)
    outcome_failed(client, "the controller is lost", t->what);
}

ParameterizedTest(struct trial *t, failures, any_role_any_time)
{
  g_autoptr(ClusterLab) lab = lab_new();
  g_autofree char *more = g_strdup_printf(WATCHFUL "pipeline.replicas=%d", t->replicas);
  lab_experiment(lab, more);
  struct process *client =
      lab_start(lab, "run experiment.ini --local --device host --json --quiet --log info --out r.db");
  cr_assert(process_says(client, ": begun", 1, 60), "%s: the run does not begin", t->what);
  gboolean server = g_str_has_suffix(t->role, "-server");
  pid_t pid = g_str_equal(t->role, "run") ? client->pid : lab_role(lab, t->role, server ? t->index : -1);
  cr_assert_gt(pid, 0, "%s: no such process", t->what);
  inflict(t, pid);
  if (server)
    check_server_fault(lab, client, t);
  else if (pid == client->pid)
    check_client_fault(lab, client, t);
  else
    check_controller_fault(lab, client, t);
  g_autofree char *left = lab_await_empty(lab, 15) ? NULL : lab_left(lab);
  cr_assert_null(left, "%s: still there: %s", t->what, left);
}
