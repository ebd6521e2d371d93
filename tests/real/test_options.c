/* Options and events that cannot be heeded are refused: exit status 2, one line, no database. */
#include "cluster.h"
#include "outcome_check.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

static const struct {
  const char *words, *message;
} refused[] = {
    {"run experiment.ini --local --transport udp", "expected a transport (auto, verbs, tcp), found \"udp\""},
    {"run experiment.ini --local --device hots", "unknown device \"hots\", nearest is \"host\""},
    {"run experiment.ini --cluster cluster.ini --device hots", "unknown device \"hots\""},
    {"client experiment.ini --cluster cluster.ini --device hots", "unknown device \"hots\""},
    {"client experiment.ini", "client: expected --cluster CLUSTER.ini"},
    {"client experiment.ini --local", "client: expected --cluster CLUSTER.ini"},
    {"run experiment.ini --local --transport tcp --rdma-device mlx5_0", "neither with --transport tcp"},
    {"run experiment.ini --local --pace 1 --gid-index 3", "nor with --pace"},
    {"run experiment.ini --local --gid-index 65536",
     "--gid-index: expected a whole number from 0 to 65535, found \"65536\""},
    {"run experiment.ini --local --images images", "expected images of the experiment's models"},
    {"run experiment.ini --local --device host --record none/x", "none/x: cannot write: No such file"},
    {"run experiment.ini --local --device host --record x.rec --metrics 65535", "none after 65535"},
    {"run experiment.ini --local --system mps",
     "system mps needs GPUs shared in space, which this world lacks"},
    {"run experiment.ini --local --system distmind,ideal",
     "system ideal needs unbounded memory, which this world lacks"},
    {"keygen images/", "expected NAME, the files' name without its end, found \"images/\""},
    {"gpu-server --cluster cluster.ini", "expected --index N"},
    {"memory-server --cluster cluster.ini --address 127.0.0.1", "expected --index N"},
    {"memory-server --cluster cluster.ini --index 0", "expected --address HOST[:PORT]"},
    {"memory-server --cluster cluster.ini --index 0 --address 127.0.0.1:99999",
     "--address: expected HOST:PORT or [IPV6]:PORT"},
    {"memory-server --cluster cluster.ini --index 0 --address 0.0.0.0",
     "expected an address at which GPU servers reach this machine"},
    {"memory-server --cluster cluster.ini --index 0 --address *:7800",
     "expected an address at which GPU servers reach this machine"},
    {"controller --cluster cluster.ini --index 0", "options of servers"},
    {"gpu-server --cluster cluster.ini --index 0 --address 10.0.0.1", "option of memory servers"},
    {"gpu-server --cluster cluster.ini --index 0 --first-gpu -1",
     "--first-gpu: expected a whole number from 0 to 65535, found \"-1\""},
    {"gpu-server --cluster cluster.ini --index 0 --ssd-folder absent", "expected a folder on an SSD"},
    {"memory-server --cluster cluster.ini --index 0 --ssd-folder .", "options of GPU servers"},
    {"controller --cluster cluster.ini --ssd-folder .", "options of servers"},
};

/* What stands for "not given" inside is a number like any other outside. */
static const struct {
  const char *words, *message;
} numbers[] = {
    {"run experiment.ini --local --gid-index -1", "--gid-index: expected a whole number from 0 to 65535"},
    {"gpu-server --cluster cluster.ini --index 0 --gid-index -1", "--gid-index: expected a whole number"},
    {"memory-server --cluster cluster.ini --index 65536 --address 127.0.0.1", "found \"65536\""},
    {"controller --cluster cluster.ini --index -1", "--index: expected a whole number from 0 to 65535"},
    {"gpu-server --cluster cluster.ini --index 0x1", "found \"0x1\""},
    {"gpu-server --cluster cluster.ini --index 4294967296", "found \"4294967296\""},
    {"controller --cluster cluster.ini --first-gpu 0", "options of servers"},
    {"memory-server --cluster cluster.ini --index 0 --address 127.0.0.1 --first-gpu 0",
     "options of GPU servers"},
    {"controller --cluster cluster.ini --metrics-fd -5", "--metrics-fd: expected a whole number"},
    {"controller --cluster cluster.ini --listening-fd -1", "--listening-fd: expected a whole number"},
    {"controller --cluster cluster.ini --parent 0", "--parent: expected a whole number from 1"},
    {"run experiment.ini --local --pace nan", "--pace: expected Gbit/s"},
    {"run experiment.ini --local --pace inf", "found \"inf\""},
    {"run experiment.ini --local --pace 1e-300", "or from 0.001 to 10000, found \"1e-300\""},
    {"run experiment.ini --local --pace 0x10", "found \"0x10\""},
    {"run experiment.ini --local --pace=", "found \"\""},
    {"calibrate -o c.ini --device host --pace -nan", "found \"-nan\""},
    {"calibrate -o c.ini --device host --pace 10001", "found \"10001\""},
    {"model show resnet152 --memory-servers 0x4", "--memory-servers: expected a whole number from 1 to 64"},
};

Test(options, numbers_out_of_range_are_refused)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "");
  for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++) {
    struct process *process = lab_start(lab, "%s", numbers[i].words);
    cr_assert(process_await(process, 30), "%s does not end", numbers[i].words);
    g_autofree char *log = process_log(process);
    const char *newline = strchr(log, '\n');
    cr_assert(process->status == 2 && strstr(log, numbers[i].message) && newline && newline[1] == '\0',
              "%s: status %d: %s", numbers[i].words, process->status, log);
  }
}

static void expect_text(const ClusterLab *lab, const char *file, const char *wanted)
{
  g_autofree char *path = lab_path(lab, file), *text = NULL;
  cr_assert(g_file_get_contents(path, &text, NULL, NULL) && strcmp(text, wanted) == 0, "%s was replaced",
            file);
}

/* As distmind-sim has it; before any server is started. */
Test(options, files_that_are_there_need_force)
{
  static const char *const words[] = {
      "run experiment.ini --local --device host --out x.db --timeline kept",
      "run experiment.ini --local --device host --out x.db --record kept",
      "run experiment.ini --local --device host --out kept",
      "run experiment.ini --cluster cluster.ini --out x.db --timeline kept",
      "model pack none.safetensors -o kept",
      "calibrate --device host -o kept",
  };
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "");
  g_autofree char *kept = lab_path(lab, "kept"), *database = lab_path(lab, "x.db");
  cr_assert(g_file_set_contents(kept, "precious", -1, NULL));
  for (gsize i = 0; i < G_N_ELEMENTS(words); i++) {
    struct process *process = lab_start(lab, "%s", words[i]);
    cr_assert(process_await(process, 30), "%s does not end", words[i]);
    g_autofree char *log = process_log(process);
    cr_assert(process->status == 2 && strstr(log, "kept: exists already") && strstr(log, "--force"),
              "%s: status %d: %s", words[i], process->status, log);
    expect_text(lab, "kept", "precious");
    cr_assert_not(g_file_test(database, G_FILE_TEST_EXISTS));
  }
  struct process *twice = lab_start(lab, "run experiment.ini --local --device host --out x.db --record x.db");
  cr_assert(process_await(twice, 30) && twice->status == 2, "the recording takes the database's place");
}

/* An earlier recording stays until the new one is whole. */
Test(options, a_run_that_fails_keeps_the_old_recording)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "");
  g_autofree char *kept = lab_path(lab, "kept");
  cr_assert(g_file_set_contents(kept, "precious", -1, NULL));
  struct process *process =
      lab_start(lab, "run experiment.ini --local --device host --out x.db --record kept "
                     "--force --metrics 65535");
  cr_assert(process_await(process, 30) && process->status == 2);
  expect_text(lab, "kept", "precious");
}

Test(options, that_cannot_be_heeded_are_refused)
{
  g_autoptr(ClusterLab) lab = lab_new();
  g_autofree char *images = lab_path(lab, "images"), *recording = lab_path(lab, "x.rec");
  cr_assert_eq(g_mkdir(images, 0700), 0);
  lab_experiment(lab, "");
  for (gsize i = 0; i < G_N_ELEMENTS(refused); i++) {
    gboolean run = g_str_has_prefix(refused[i].words, "run");
    struct process *process = lab_start(lab, "%s%s", refused[i].words, run ? " --out x.db" : "");
    cr_assert(process_await(process, 30), "%s does not end", refused[i].words);
    g_autofree char *log = process_log(process), *database = lab_path(lab, "x.db");
    const char *newline = strchr(log, '\n');
    cr_assert(process->status == 2 && strstr(log, refused[i].message) && newline && newline[1] == '\0',
              "%s: status %d: %s", refused[i].words, process->status, log);
    cr_assert_not(g_file_test(database, G_FILE_TEST_EXISTS) || g_file_test(recording, G_FILE_TEST_EXISTS));
  }
}

/* Names need not be UTF-8: every process opens the same file. */
Test(options, paths_are_bytes)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "workload.duration_s=0.2");
  g_autofree char *path = lab_path(lab, "experiment.ini"), *odd = lab_path(lab, "\xff.ini");
  if (rename(path, odd) != 0)
    cr_skip_test("this file system has no such names");
  struct process *run = lab_start(lab, "run \xff.ini --local --device host --json --quiet --out x\xfe.db");
  cr_assert(process_await(run, 60), "the run does not end");
  outcome_check(lab, run, "x\xfe.db", "paths");
}

static void expect_event_refused(const ClusterLab *lab, struct process *process, const char *message)
{
  cr_assert(process_await(process, 30), "it does not end");
  g_autofree char *log = process_log(process), *database = lab_path(lab, "x.db");
  const char *newline = strchr(log, '\n');
  cr_assert(process->status == 2 && strstr(log, message) && newline && newline[1] == '\0', "status %d: %s",
            process->status, log);
  cr_assert_not(g_file_test(database, G_FILE_TEST_EXISTS));
}

/* Values that change in mid-run are the simulator's; processes are started and killed by --local alone. */
Test(options, events_that_cannot_be_had_are_refused)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "events.a=at 0.1 set cluster.nic_gbit_s 5");
  expect_event_refused(lab, lab_start(lab, "run experiment.ini --local --device host --quiet --out x.db"),
                       "event a: expected one that can be had here (add, remove, fail), found set");
  lab_controller(lab);
  lab_experiment(lab, "events.b=at 0.1 remove gpu_server 0;events.c=at 0.2 fail gpu_server 1");
  expect_event_refused(
      lab, lab_client(lab, "x", ""),
      "event c: expected one that can be had here (remove; add and fail need --local), found fail");
}
