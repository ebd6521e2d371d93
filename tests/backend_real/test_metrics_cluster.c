/* Metrics and logs of a real cluster on this machine: a process for each role, host device. What is
 * scraped while they are on is in format and never falls; what stands there in the end is what the runs say.
 */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <glib/gstdio.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend_real/transport_tcp.h"
#include "metrics_lab.h"
#include "spawned.h"

/* The client's samples among themselves. */
static void check_client(const struct metrics_lab *c)
{
  static const char *const sources[] = {"resident", "joined", "host", "ssd", "remote", "process_start"};
  double completed = metrics_lab_value(c, CLIENT, "distmind_client_requests_total{outcome=\"completed\"}"),
         all = 0;
  for (size_t i = 0; i < G_N_ELEMENTS(sources); i++) {
    g_autofree char *sample =
        g_strdup_printf("distmind_client_requests_found_total{source=\"%s\"}", sources[i]);
    all += metrics_lab_value(c, CLIENT, sample);
  }
  cr_assert_eq(all, completed);
  cr_assert_eq(metrics_lab_value(c, CLIENT, "distmind_client_request_duration_seconds_count"), completed);
}

static double figure(const char *json, const char *name)
{
  g_autofree char *key = g_strdup_printf("\"%s\":", name);
  const char *at = strstr(json, key);
  cr_assert(at, "no %s in %s", key, json);
  return g_ascii_strtod(at + strlen(key), NULL);
}

/* What stands above 0 now and then while a run is on, and never above its limit (real-quickstart.ini). */
static const struct gauge {
  int role;
  const char *sample;
  double limit;
} gauges[] = {
    {CONTROLLER, "distmind_requests_in_flight", INFINITY},
    {CLIENT, "distmind_client_requests_in_flight", INFINITY},
    {GPU_0, "distmind_gpu_memory_used_bytes{gpu=\"0\"}", 0.05e9},
    {GPU_0, "distmind_host_cache_used_bytes", 0.08e9},
    {GPU_0, "distmind_gpu_models{gpu=\"0\"}", 24},
    {MEMORY, "distmind_pool_held_bytes", INFINITY},
};

static void look_at_gauges(const struct metrics_lab *c, double *highest)
{
  for (size_t i = 0; i < G_N_ELEMENTS(gauges); i++) {
    const double *seen =
        c->role[gauges[i].role].last
            ? g_hash_table_lookup(c->role[gauges[i].role].last, gauges[i].sample) /* no run, no GPU */
            : NULL;
    cr_assert(!seen || *seen <= gauges[i].limit, "%s: %g", gauges[i].sample, *seen);
    highest[i] = MAX(highest[i], seen ? *seen : 0);
  }
}

/* Runs it, scraping all the while; the JSON object that it prints. highest: the most seen of each gauge. */
static char *run(struct metrics_lab *c, const char *system, double *highest)
{
  g_autofree char *out = metrics_lab_path(c, "run.out");
  metrics_lab_client(c, system, "1", "");
  while (metrics_lab_client_goes_on(c)) {
    metrics_lab_scrape_one(&c->role[CLIENT]);
    metrics_lab_scrape(c);
    look_at_gauges(c, highest);
    if (c->role[CLIENT].last)
      check_client(c);
    g_usleep(20000);
  }
  g_usleep(150000); /* what was rendered before the end is shown no longer */
  metrics_lab_scrape(c);
  char *json = metrics_lab_read(out);
  double completed = metrics_lab_value(c, CLIENT, "distmind_client_requests_total{outcome=\"completed\"}");
  cr_assert(completed > 10 && completed <= figure(json, "completed"), "%g completed: %s", completed, json);
  return json;
}

static double gpus(const struct metrics_lab *c, const char *sample)
{
  return metrics_lab_value(c, GPU_0, sample) + metrics_lab_value(c, GPU_1, sample);
}

/* Nothing of a run is left once it is over; servers and client, as the hub sees them. */
static void check_idle(const struct metrics_lab *c)
{
  for (int i = 0; i < ROLES; i++)
    cr_assert_eq(metrics_lab_value(c, i, "distmind_run"), 0, "role %d is in run %g", i,
                 metrics_lab_value(c, i, "distmind_run"));
  cr_assert_eq(metrics_lab_value(c, CONTROLLER, "distmind_requests_in_flight"), 0);
  cr_assert_eq(metrics_lab_value(c, CONTROLLER, "distmind_requests_waiting"), 0);
  cr_assert_eq(metrics_lab_value(c, CONTROLLER, "distmind_peers{role=\"gpu-server\"}"), 2);
  cr_assert_eq(metrics_lab_value(c, CONTROLLER, "distmind_peers{role=\"memory-server\"}"), 1);
  cr_assert_eq(metrics_lab_value(c, CONTROLLER, "distmind_peers_refused_total"), 0);
  cr_assert_eq(metrics_lab_value(c, CONTROLLER, "distmind_peers_expelled_total"), 0);
  cr_assert_eq(metrics_lab_value(c, CONTROLLER, "distmind_members_lost_total"), 0);
  cr_assert_eq(metrics_lab_value(c, MEMORY, "distmind_data_connections_refused_total"), 0);
}

static double found(const struct metrics_lab *c, const char *source)
{
  g_autofree char *sample = g_strdup_printf("distmind_requests_found_total{source=\"%s\"}", source);
  return metrics_lab_value(c, CONTROLLER, sample);
}

/* As many of each reason as the database has. */
static void check_evictions(const struct metrics_lab *c, double all)
{
  static const char *const reasons[][2] = {{"gpu_space", "room for another model"},
                                           {"gpu_models_limit", "limit of models a GPU"},
                                           {"cache_space", "room in the host cache"},
                                           {"cache_shrunk", "cache size was lowered"}};
  g_autofree char *path = metrics_lab_path(c, "run.db");
  sqlite3 *db;
  cr_assert_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  for (size_t i = 0; i < G_N_ELEMENTS(reasons); i++) {
    g_autofree char *sample = g_strdup_printf("distmind_evictions_total{reason=\"%s\"}", reasons[i][0]);
    sqlite3_stmt *ask;
    cr_assert_eq(sqlite3_prepare_v2(db, "SELECT count(*) FROM decision WHERE kind = 'evict' AND reason = ?",
                                    -1, &ask, NULL),
                 SQLITE_OK);
    sqlite3_bind_text(ask, 1, reasons[i][1], -1, SQLITE_STATIC);
    cr_assert_eq(sqlite3_step(ask), SQLITE_ROW);
    cr_assert_eq(gpus(c, sample), sqlite3_column_int(ask, 0), "%s", sample);
    cr_assert(i % 2 == 1 || gpus(c, sample) > 0, "%s: none", sample);
    all -= sqlite3_column_int(ask, 0);
    sqlite3_finalize(ask);
  }
  cr_assert_eq(all, 0);
  sqlite3_close(db);
}

/* The metrics are the first run's figures. */
static void check_first(const struct metrics_lab *c, const char *json)
{
  static const char *const sources[] = {"resident", "joined", "host", "ssd", "remote", "process_start"};
  double completed = figure(json, "completed"), all = 0;
  cr_assert_gt(completed, 50);
  cr_assert_eq(metrics_lab_value(c, CONTROLLER, "distmind_requests_total{outcome=\"completed\"}"), completed);
  cr_assert_eq(metrics_lab_value(c, CONTROLLER, "distmind_request_duration_seconds_count"), completed);
  for (size_t i = 0; i < G_N_ELEMENTS(sources); i++)
    all += found(c, sources[i]);
  cr_assert_eq(all, completed);
  cr_assert_eq(found(c, "resident"), figure(json, "resident"));
  cr_assert_eq(found(c, "remote"), figure(strstr(json, "\"found\""), "remote"));
  cr_assert_eq(gpus(c, "distmind_loads_total{source=\"remote\"}"),
               figure(strstr(json, "\"loads\""), "remote"));
  cr_assert_eq(gpus(c, "distmind_loads_total{source=\"host\"}"), figure(strstr(json, "\"loads\""), "host"));
  double net = gpus(c, "distmind_network_receive_bytes_total");
  cr_assert_eq(net, figure(json, "net_bytes"));
  cr_assert_eq(metrics_lab_value(c, MEMORY, "distmind_network_transmit_bytes_total"), net);
  cr_assert_gt(net, 0);
  cr_assert_eq(gpus(c, "distmind_pcie_bytes_total"), figure(json, "pcie_bytes"));
  check_evictions(c, figure(json, "evictions"));
}

/* Each line is an object that says who speaks; with a run's number while one is on. */
static void check_log(const struct role *role, const char *name)
{
  g_autofree char *text = metrics_lab_read(role->log), *field = g_strdup_printf("\"role\":\"%s\"", name);
  g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
  for (char **line = lines; *line && **line; line++) {
    cr_assert(g_str_has_prefix(*line, "{\"time\":\"20") && g_str_has_suffix(*line, "}"), "%s", *line);
    cr_assert(strstr(*line, field) && strstr(*line, "\"level\":\"info\""), "%s", *line);
  }
  cr_assert(strstr(text, "\"run\":\"2\""), "%s", text);
}

Test(metrics_cluster, two_runs)
{
  struct metrics_lab *c = metrics_lab_new();
  double highest[G_N_ELEMENTS(gauges)] = {0};
  g_autofree char *first = run(c, "distmind", highest);
  check_first(c, first);
  check_idle(c);
  g_autofree char *second = run(c, "pipeswitch", highest);
  check_idle(c);
  cr_assert_eq(metrics_lab_value(c, CONTROLLER, "distmind_requests_total{outcome=\"completed\"}"),
               figure(first, "completed") + figure(second, "completed"));
  cr_assert_eq(gpus(c, "distmind_pcie_bytes_total"),
               figure(first, "pcie_bytes") + figure(second, "pcie_bytes"));
  for (size_t i = 0; i < G_N_ELEMENTS(gauges); i++)
    cr_assert_gt(highest[i], 0, "no scrape saw any of %s", gauges[i].sample);
  check_log(&c->role[CONTROLLER], "controller");
  check_log(&c->role[GPU_1], "gpu-server");
  metrics_lab_free(c);
}

static void await_readers(struct metrics_lab *c, double connections)
{
  gint64 until = g_get_monotonic_time() + METRICS_LAB_AWAIT_S * G_USEC_PER_SEC;
  double seen;
  do {
    g_usleep(20000);
    metrics_lab_scrape_one(&c->role[MEMORY]);
    seen =
        c->role[MEMORY].last ? metrics_lab_value(c, MEMORY, "distmind_data_connections{end=\"shelf\"}") : 0;
  } while (seen != connections && g_get_monotonic_time() < until);
  cr_assert_eq(seen, connections, "%g connections, not %g", seen, connections);
}

/* Somebody who sends what is no ticket: closed without a word. */
static void knock(int port, char byte)
{
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  char nothing[256];
  memset(nothing, byte, sizeof nothing);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  cr_assert_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0, "port %d", port);
  cr_assert_eq(send(fd, nothing, sizeof nothing, MSG_NOSIGNAL), (ssize_t)sizeof nothing);
  cr_assert_leq(recv(fd, nothing, sizeof nothing, 0), 0);
  close(fd);
}

/* A GPU server that hangs keeps its data connections; once the controller has lost it, the memory server
 * closes them. When it goes on it is let in anew. */
Test(metrics_cluster, who_is_lost_may_read_no_longer)
{
  struct metrics_lab *c = metrics_lab_new();
  metrics_lab_client(c, "distmind", "9", " --pace 2");
  await_readers(c, 2 * TCP_CONNECTIONS);
  knock(c->data_port, 0);
  knock(c->data_port, 'x');
  g_usleep(150000); /* as in run() */
  metrics_lab_scrape(c);
  cr_assert_eq(metrics_lab_value(c, MEMORY, "distmind_data_connections_refused_total"), 2);
  kill(c->role[GPU_0].pid, SIGSTOP);
  g_free(metrics_lab_await(&c->role[MEMORY], "gpu-server 0 may read no longer", "\""));
  await_readers(c, TCP_CONNECTIONS);
  kill(c->role[GPU_0].pid, SIGCONT);
  await_readers(c, 2 * TCP_CONNECTIONS);
  double loads = 0;
  while (metrics_lab_client_goes_on(c)) {
    metrics_lab_scrape(c);
    loads += metrics_lab_value(c, GPU_1, "distmind_loads_in_flight{source=\"remote\"}");
    g_usleep(20000);
  }
  cr_assert_gt(loads, 0, "no scrape saw a load in flight");
  g_usleep(150000); /* as in run() */
  metrics_lab_scrape(c);
  /* Before it heard that its link was lost, the one that hung may have come with an old ticket. */
  cr_assert_geq(metrics_lab_value(c, MEMORY, "distmind_data_connections_refused_total"), 2);
  cr_assert_gt(metrics_lab_value(c, CONTROLLER, "distmind_request_retries_total"), 0);
  cr_assert_eq(metrics_lab_value(c, CONTROLLER, "distmind_members_lost_total"), 1);
  cr_assert_eq(metrics_lab_value(c, CONTROLLER, "distmind_peers_lost_total"), 2,
               "the server and, in the end, the client");
  cr_assert_eq(metrics_lab_value(c, CONTROLLER, "distmind_requests_total{outcome=\"lost\"}"), 0);
  metrics_lab_free(c);
}

/* Everything that `run --local` starts, on ports that follow one another; a port that is taken is an error.
 */
Test(metrics_cluster, local_port_taken)
{
  g_autofree char *folder = g_dir_make_tmp("distmind-metrics-XXXXXX", NULL);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  cr_assert_eq(listen(fd, 1), 0);
  cr_assert_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
  g_autofree char *words = g_strdup_printf("run " DM_SOURCE_DIR "/experiments/real-quickstart.ini --local "
                                           "--device host --quiet --out %s/x.db --metrics 127.0.0.1:%d",
                                           folder, ntohs(address.sin_port));
  g_autoptr(Spawned) run = spawn("distmind-real", words);
  cr_assert_eq(run->status, 1, "%s%s", run->out, run->err);
  cr_assert(strstr(run->err, "--metrics: cannot listen on 127.0.0.1:"), "%s", run->err);
  g_autofree char *cluster = g_build_filename(folder, "cluster.ini", NULL);
  cr_assert(g_file_set_contents(cluster, "[cluster]\ncontroller = 127.0.0.1:1\n", -1, NULL));
  g_autofree char *client =
      g_strdup_printf("client " DM_SOURCE_DIR "/experiments/real-quickstart.ini --cluster %s --out %s/x.db "
                      "--metrics 127.0.0.1:%d",
                      cluster, folder, ntohs(address.sin_port));
  g_autoptr(Spawned) refused = spawn("distmind-real", client);
  cr_assert_eq(refused->status, 1, "%s%s", refused->out, refused->err);
  cr_assert(strstr(refused->err, "--metrics: cannot listen on 127.0.0.1:"), "%s", refused->err);
  g_remove(cluster);
  cr_assert_eq(g_rmdir(folder), 0, "%s is not empty", folder);
  close(fd);
}

Test(metrics_cluster, bad_options)
{
  static const char *const bad[][2] = {
      {"gpu-server --cluster x --log loud", "--log: expected error, warning, info or debug, found \"loud\""},
      {"gpu-server --cluster x --log info,transport", "--log: expected DOMAIN=LEVEL after the comma"},
      {"gpu-server --cluster x --log info,nobody=debug", "found \"nobody=debug\""},
      {"gpu-server --cluster x --log-format xml", "--log-format: expected text or json, found \"xml\""},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
    g_autoptr(Spawned) run = spawn("distmind-real", bad[i][0]);
    expect_refusal(run, bad[i][1]);
  }
}
