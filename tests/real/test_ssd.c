/* serverlessllm on real processes: models are read from files of each server's SSD folder. */
#include "cluster.h"
#include "outcome_check.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* No host cache to speak of: most loads come from the SSD. */
#define SSD "experiment.systems=serverlessllm;cluster.host_cache_gb=0.00001;"

static void make_folder(const ClusterLab *lab)
{
  g_autofree char *path = lab_path(lab, "ssd");
  cr_assert_eq(g_mkdir(path, 0700), 0);
}

static gint64 count_found(ClusterLab *lab, const char *database)
{
  return outcome_ask(lab, database, "SELECT count(*) FROM request WHERE found = 'ssd'");
}

static void expect_same_decisions(const ClusterLab *lab, const char *recording)
{
  g_autofree char *self = g_file_read_link("/proc/self/exe", NULL), *tests = g_path_get_dirname(self);
  g_autofree char *build = g_path_get_dirname(tests), *path = lab_path(lab, recording);
  g_autofree char *program = g_build_filename(build, "distmind-sim", NULL), *out = NULL, *err = NULL;
  char *argv[] = {program, (char *)"rerun", path, NULL};
  int status;
  cr_assert(g_spawn_sync(NULL, argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &out, &err, &status, NULL));
  cr_assert(status == 0 && strstr(out, "same decisions"), "rerun: status %d: %s%s", status, out, err);
}

Test(ssd, a_local_cluster_loads_from_files_that_stay)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, SSD);
  make_folder(lab);
  for (int run = 0; run < 2; run++) {
    g_autofree char *database = g_strdup_printf("local%d.db", run);
    struct process *client = lab_start(lab,
                                       "run experiment.ini --local --device host --ssd-folder ssd --json "
                                       "--quiet --record %d.rec --out %s",
                                       run, database);
    cr_assert(process_await(client, 60), "the run does not end");
    struct run_sums sums = outcome_check(lab, client, database, "local");
    cr_assert_eq(sums.completed, sums.requests);
    cr_assert_gt(count_found(lab, database), 10);
    g_autofree char *recording = g_strdup_printf("%d.rec", run);
    expect_same_decisions(lab, recording);
    /* Six of the twelve models a server; the second run writes none. */
    const char *written = run == 0 ? "%%, 6 of them written now%%" : "%%, 0 of them written now%%";
    g_autofree char *sql = g_strdup_printf("SELECT count(*) FROM run WHERE notices LIKE '%s'", written);
    cr_assert_eq(outcome_ask(lab, database, sql), 1, "run %d", run);
    g_autofree char *json = process_out(client);
    cr_assert(strstr(json, "\"net_bytes\": 0,") || strstr(json, "\"net_bytes\":0,"), "%s", json);
  }
  g_autofree char *file = lab_path(lab, "ssd/gpu-server-1/tiny-1.dmi");
  cr_assert(g_file_test(file, G_FILE_TEST_IS_REGULAR));
}

/* A wrong byte on the disk fails the run by name. */
Test(ssd, a_wrong_byte_of_a_file_fails_the_run)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, SSD "experiment.initial=cold");
  make_folder(lab);
  const char *words = "run experiment.ini --local --device host --ssd-folder ssd --quiet --out x.db --force";
  struct process *good = lab_start(lab, "%s", words);
  cr_assert(process_await(good, 60) && good->status == 0);
  for (int m = 0; m < 12; m++) {
    g_autofree char *leaf = g_strdup_printf("ssd/gpu-server-%d/tiny-%d.dmi", m % 2, m);
    g_autofree char *path = lab_path(lab, leaf), *bytes = NULL;
    gsize size;
    cr_assert(g_file_get_contents(path, &bytes, &size, NULL), "%s", path);
    bytes[size - 1] ^= 1;
    cr_assert(g_file_set_contents(path, bytes, (gssize)size, NULL));
  }
  struct process *bad = lab_start(lab, "%s", words);
  cr_assert(process_await(bad, 60), "the run does not end");
  outcome_failed(bad, "the parameters in GPU memory are not the model's", "wrong bytes");
}

Test(ssd, without_a_folder_the_system_is_refused)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, SSD);
  struct process *local = lab_start(lab, "run experiment.ini --local --device host --out x.db");
  cr_assert(process_await(local, 30), "the run does not end");
  g_autofree char *log = process_log(local), *database = lab_path(lab, "x.db");
  cr_assert(local->status == 2 && strstr(log, "serverlessllm loads from a local SSD: expected --ssd-folder"),
            "status %d: %s", local->status, log);
  cr_assert_not(g_file_test(database, G_FILE_TEST_EXISTS));

  lab_controller(lab);
  for (int i = 0; i < 2; i++) {
    lab_gpu_server(lab, i);
    lab_memory_server(lab, i);
  }
  struct process *client = lab_client(lab, "y", "");
  cr_assert(process_await(client, 60), "the client does not end");
  outcome_failed(client, "loads from a local SSD: expected --ssd-folder", "cluster");
}

/* The models of a server that is killed have a second copy on the other's SSD. */
Test(ssd, a_cluster_goes_on_from_the_other_copy)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, SSD "cluster.ssd_copies=2");
  make_folder(lab);
  struct process *controller = lab_controller(lab), *gpu[2];
  for (int i = 0; i < 2; i++) {
    gpu[i] = lab_start(lab, "gpu-server --cluster cluster.ini --index %d --ssd-folder ssd --log info", i);
    lab_memory_server(lab, i);
  }
  struct process *client = lab_client(lab, "copies", "");
  cr_assert(process_says(controller, ": begun", 1, 60), "the run does not begin");
  kill(gpu[0]->pid, SIGKILL);
  cr_assert(process_await(client, 60), "the run does not end");
  struct run_sums sums = outcome_check(lab, client, "copies.db", "copies");
  cr_assert_gt(sums.completed, sums.requests * 9 / 10);
  cr_assert_gt(
      outcome_ask(
          lab, "copies.db",
          "SELECT count(*) FROM request WHERE found = 'ssd' AND gpu = 1 AND substr(model, 6) % 2 = 0"),
      5, "models of the server that is gone");
}

/* A disk that fails while the run is on: requests of its models fail with a reason, the others do not. */
Test(ssd, a_disk_that_fails_fails_its_own_requests)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, SSD "experiment.initial=cold;cluster.gpu_model_gb=0.0003");
  make_folder(lab);
  struct process *run =
      lab_start(lab, "run experiment.ini --local --device host --ssd-folder ssd --json --quiet "
                     "--log info --out fails.db");
  cr_assert(process_says(run, "run 1: begun", 1, 60), "the run does not begin");
  for (int m = 0; m < 12; m += 2) {
    g_autofree char *leaf = g_strdup_printf("ssd/gpu-server-0/tiny-%d.dmi", m), *path = lab_path(lab, leaf);
    cr_assert_eq(truncate(path, 2 << 20), 0, "%s", path);
  }
  cr_assert(process_await(run, 60), "the run does not end");
  struct run_sums sums = outcome_check(lab, run, "fails.db", "a disk fails");
  cr_assert(process_says(run, "the file became shorter", 1, 1), "nobody says why");
  cr_assert_gt(sums.lost, 0, "nothing failed");
  cr_assert_eq(
      outcome_ask(lab, "fails.db",
                  "SELECT count(*) FROM request WHERE outcome <> 'completed' AND substr(model, 6) % 2"),
      0, "requests of the other disk's models fail");
}
