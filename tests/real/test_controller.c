/* Where a controller listens: without keys on this machine alone, and it says so. */
#include "cluster.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>

#define LISTENING "controller: listening on tcp://"
#define WITHOUT   "without keys: for processes of this machine, whoever runs them"

static struct process *start(ClusterLab *lab, const char *address, const char *keys)
{
  g_autofree char *path = lab_path(lab, "cluster.ini");
  g_autofree char *text = g_strdup_printf("[cluster]\ncontroller = %s\n%s", address, keys);
  cr_assert(g_file_set_contents(path, text, -1, NULL));
  return lab_start(lab, "controller --cluster cluster.ini --log info");
}

Test(controller, without_keys_it_says_whom_it_hears)
{
  g_autoptr(ClusterLab) lab = lab_new();
  struct process *controller = start(lab, "127.0.0.1:0", "");
  cr_assert(process_says(controller, WITHOUT, 1, 30), "it does not say so");
  g_autofree char *log = process_log(controller);
  cr_assert(strstr(log, LISTENING "127.0.0.1:"), "%s", log);
}

Test(controller, without_keys_it_listens_to_no_other_machine)
{
  static const char *const open[] = {"0.0.0.0:0", "*:0", "[::]:0", "192.0.2.1:7000", "tcp://0.0.0.0:7000"};
  g_autoptr(ClusterLab) lab = lab_new();
  for (gsize i = 0; i < G_N_ELEMENTS(open); i++) {
    struct process *controller = start(lab, open[i], "");
    cr_assert(process_await(controller, 30), "%s: it goes on", open[i]);
    g_autofree char *log = process_log(controller);
    const char *newline = strchr(log, '\n');
    cr_assert(controller->status == 2 && newline && newline[1] == '\0' &&
                  strstr(log, " can be reached from other machines, and needs keys: see `keygen --help`"),
              "%s: status %d: %s", open[i], controller->status, log);
  }
}

Test(controller, with_keys_it_listens_everywhere)
{
  g_autoptr(ClusterLab) lab = lab_new();
  g_autofree char *peers = lab_path(lab, "peers");
  cr_assert_eq(g_mkdir(peers, 0700), 0);
  struct process *keygen = lab_start(lab, "keygen controller");
  cr_assert(process_await(keygen, 30) && keygen->status == 0, "no keys");
  struct process *controller =
      start(lab, "0.0.0.0:0", "controller_secret = controller.secret\nauthorized = peers\n");
  cr_assert(process_says(controller, LISTENING "0.0.0.0:", 1, 30), "it does not listen");
  kill(controller->pid, SIGTERM);
  cr_assert(process_await(controller, 30) && controller->status == 0, "it does not end");
  g_autofree char *log = process_log(controller);
  cr_assert_not(strstr(log, WITHOUT), "%s", log);
}
