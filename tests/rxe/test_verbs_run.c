/* Runs of whole clusters over verbs: every byte of every model is checked by the servers themselves, and a
 * wrong one fails the run. */
#include "rxe_lab.h"

#include <criterion/criterion.h>
#include <signal.h>

#define SERVERS 4 /* of real-verbs.ini: two GPU servers, two memory servers */

struct figures {
  struct run_sums sums;
  gint64 net_bytes;
  guint64 packets; /* that the RDMA devices took in meanwhile */
};

static struct figures run_over(ClusterLab *lab, const char *transport, const char *taken)
{
  g_autofree char *experiment = rxe_experiment("real-verbs.ini"),
                  *database = g_strconcat(transport, ".db", NULL);
  guint64 before = rxe_packets();
  struct process *client = rxe_run(lab, experiment, transport, database, "");
  struct figures f = {.sums = outcome_check(lab, client, database, transport)};
  f.packets = rxe_packets() - before;
  f.net_bytes = outcome_ask(lab, database, "SELECT net_bytes FROM run");
  g_autofree char *log = process_log(client);
  cr_assert_eq(f.sums.completed, f.sums.requests, "over %s: %s", transport, log);
  cr_assert_gt(f.net_bytes, 0, "over %s nothing was loaded", transport);
  cr_assert_eq(rxe_servers_using(lab, database, taken), SERVERS, "over %s: servers that say they use %s",
               transport, taken);
  return f;
}

static void expect_over_devices(const struct figures *f, const char *transport)
{
  cr_assert_geq(f->packets, (guint64)f->net_bytes / RXE_PAYLOAD,
                "over %s: %" G_GINT64_FORMAT " bytes in %" G_GUINT64_FORMAT " packets", transport,
                f->net_bytes, f->packets);
}

/* What was asked for, and answered, is a function of the experiment. */
Test(verbs_run, verbs_and_auto_go_over_the_devices_and_tcp_comes_to_the_same)
{
  g_autoptr(ClusterLab) lab = lab_new();
  struct figures verbs = run_over(lab, "verbs", "verbs");
  expect_over_devices(&verbs, "verbs");
  struct figures chosen = run_over(lab, "auto", "verbs");
  expect_over_devices(&chosen, "auto");
  struct figures tcp = run_over(lab, "tcp", "tcp");
  cr_assert_eq(tcp.packets, 0, "TCP took the RDMA devices");
  cr_assert_eq(verbs.sums.requests, tcp.sums.requests);
  cr_assert_eq(chosen.sums.requests, tcp.sums.requests);
}

/* As on a machine with two NICs on one network: reads are striped over both. */
Test(verbs_run, two_devices_share_the_reads)
{
  g_autoptr(ClusterLab) lab = lab_new();
  g_autofree char *experiment = rxe_experiment("real-verbs.ini");
  g_autofree char *both = g_strdup_printf("--rdma-device %s,%s", rxe_device(0), rxe_device(1));
  guint64 before[] = {rxe_packets_of(0), rxe_packets_of(1)};
  struct process *client = rxe_run(lab, experiment, "verbs", "both.db", both);
  struct run_sums sums = outcome_check(lab, client, "both.db", "two devices");
  cr_assert_eq(sums.completed, sums.requests);
  for (int d = 0; d < RXE_DEVICES; d++)
    cr_assert_gt(rxe_packets_of(d), before[d], "nothing goes over %s", rxe_device(d));
}

/* A process a server, memory servers on the two addresses: each is reached over the pair. */
Test(verbs_run, servers_on_the_two_ends_of_the_pair)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "cluster.heartbeat_ms=3000;workload.rate_rps=15;workload.duration_s=3");
  struct process *controller = lab_controller(lab);
  for (int i = 0; i < 2; i++) {
    lab_gpu_server(lab, i);
    lab_start(lab, "memory-server --cluster cluster.ini --index %d --address %s --log info", i,
              rxe_address(i));
  }
  guint64 packets = rxe_packets(), bytes = rxe_pair_bytes();
  struct process *client = lab_client(lab, "pair", "--transport verbs");
  cr_assert(process_await(client, 120), "the run does not end");
  struct run_sums sums = outcome_check(lab, client, "pair.db", "over the pair");
  cr_assert_eq(sums.completed, sums.requests);
  guint64 net_bytes = (guint64)outcome_ask(lab, "pair.db", "SELECT net_bytes FROM run");
  cr_assert_geq(rxe_packets() - packets, net_bytes / RXE_PAYLOAD);
  cr_assert_geq(rxe_pair_bytes() - bytes, net_bytes / 2,
                "of %" G_GUINT64_FORMAT " bytes, few went over the pair", net_bytes);
  kill(controller->pid, SIGTERM);
  cr_assert(process_await(controller, 20) && controller->status == 0, "the controller ends with %d",
            controller->status);
}
