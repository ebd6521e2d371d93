/* Ctrl-C of a whole cluster; signals while servers prepare a run that takes long: images of a hundred
 * gigabytes are summed. */
#include "cluster.h"
#include "outcome_check.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>

/* An end takes well under a second; a machine that is busy with other tests gets a few. Without it, the work
 * takes longer than all of them. */
#define LIMIT_S 5

static void long_experiment(ClusterLab *lab)
{
  g_autoptr(GString) text = g_string_new("# model: big\n# gpu: host\n# batch: 1\n# warm_latency_ms: 1\n"
                                         "# unpickle_ms: 1\n# first_inference_ms: 1\n# tensors: 12\n"
                                         "layer,kind,param_bytes,compute_us\n");
  for (int i = 0; i < 12; i++)
    g_string_append_printf(text, "layer%d,conv,15000000,83\n", i);
  g_autofree char *profile = lab_path(lab, "big.csv"), *folder = lab_path(lab, "ssd");
  cr_assert(g_file_set_contents(profile, text->str, -1, NULL) && g_mkdir(folder, 0700) == 0);
  lab_experiment(lab, "experiment.systems=serverlessllm;models.big=800;cluster.ssd_gb=1000;"
                      "cluster.host_cache_gb=0.2;cluster.gpu_model_gb=0.2;cluster.staging_gb=0.2");
}

/* Of a run that did not begin. */
static void expect_nothing_kept(ClusterLab *lab)
{
  static const char *const names[] = {"x.db",         "x.db.partial", "x.rec",
                                      "x.rec.client", "t.json",       "t.json.partial"};
  for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
    g_autofree char *path = lab_path(lab, names[i]);
    cr_assert_not(g_file_test(path, G_FILE_TEST_EXISTS), "%s is left", names[i]);
  }
}

static void expect_prompt_end(struct process *process, int status, const char *what)
{
  gboolean ended = process_await(process, LIMIT_S);
  g_autofree char *log = process_log(process);
  cr_assert(ended, "%s does not end: %s", what, log);
  cr_assert_eq(process->status, status, "%s: status %d: %s", what, process->status, log);
}

Test(interrupt, a_server_that_prepares_ends_at_once)
{
  g_autoptr(ClusterLab) lab = lab_new();
  struct process *gpu[2];
  long_experiment(lab);
  struct process *controller = lab_controller(lab);
  for (int i = 0; i < 2; i++) {
    gpu[i] = lab_start(lab, "gpu-server --cluster cluster.ini --index %d --ssd-folder ssd --log info", i);
    lab_memory_server(lab, i);
  }
  struct process *client = lab_client(lab, "x", "");
  cr_assert(process_says(gpu[0], "under serverlessllm", 1, 60), "no run is prepared");
  kill(gpu[0]->pid, SIGTERM);
  expect_prompt_end(gpu[0], 0, "gpu-server");
  cr_assert(process_await(client, LIMIT_S) && client->status == 1, "the client does not end");
  cr_assert_not(controller->ended);
}

Test(interrupt, a_local_run_that_prepares_ends_at_once)
{
  g_autoptr(ClusterLab) lab = lab_new();
  long_experiment(lab);
  struct process *run = lab_start(lab, "run experiment.ini --local --device host --ssd-folder ssd --log info "
                                       "--out x.db --record x.rec --timeline t.json");
  cr_assert(process_says(run, "under serverlessllm", 3, 60), "no run is prepared");
  kill(run->pid, SIGINT);
  expect_prompt_end(run, 130, "run");
  cr_assert(lab_await_empty(lab, LIMIT_S), "processes are left");
  expect_nothing_kept(lab);
}

/* While the controller's process starts, keys are made, servers are started: the handler may not be there
 * yet. */
Test(interrupt, ctrl_c_in_the_first_moments)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "workload.duration_s=60");
  for (guint round = 0; round < 16; round++) {
    struct process *run = lab_start(lab, "run experiment.ini --local --device host --out x.db --record x.rec "
                                         "--timeline t.json");
    g_usleep(round * 2000); /* the moment is the test's own choice */
    kill(run->pid, SIGINT);
    cr_assert(process_await(run, LIMIT_S), "round %u does not end", round);
    g_autofree char *log = process_log(run);
    cr_assert(run->status == 130, "round %u: status %d: %s", round, run->status, log);
    cr_assert(lab_await_empty(lab, LIMIT_S), "round %u: processes are left", round);
    if (strstr(log, "holds what was done"))
      break; /* it has begun */
    expect_nothing_kept(lab);
  }
}

/* The terminal sends it to all processes; the command alone heeds it, and ends the others in order. */
Test(interrupt, ctrl_c_keeps_what_was_done)
{
  static const char *const roles[] = {"controller", "gpu-server", "memory-server"};
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "workload.duration_s=60;workload.rate_rps=100");
  struct process *run = lab_start(lab, "run experiment.ini --local --device host --log info --out kept.db");
  cr_assert(process_says(run, "run 1: begun", 1, 60), "the run does not begin");
  g_usleep(1000000); /* the moment is the test's own choice */
  for (gsize i = 0; i < G_N_ELEMENTS(roles); i++)
    for (int index = i == 0 ? -1 : 0; index < (i == 0 ? 0 : 2); index++)
      cr_assert_eq(kill(lab_role(lab, roles[i], index), SIGINT), 0, "%s", roles[i]);
  kill(run->pid, SIGINT);
  expect_prompt_end(run, 130, "run");
  cr_assert_gt(outcome_ask(lab, "kept.db", "SELECT count(*) FROM request WHERE outcome = 'completed'"), 20);
}
