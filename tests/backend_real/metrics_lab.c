/* A cluster whose processes serve metrics; see metrics_lab.h. */
#include "metrics_lab.h"

#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <glib/gstdio.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "metrics_check.h"
#include "spawned.h"

char *metrics_lab_path(const struct metrics_lab *c, const char *name)
{
  return g_build_filename(c->folder, name, NULL);
}

char *metrics_lab_read(const char *path)
{
  char *text = NULL;
  cr_assert(g_file_get_contents(path, &text, NULL, NULL), "%s", path);
  return text;
}

/* Waits until the log has `after`; what follows it, up to `end`. */
char *metrics_lab_await(const struct role *role, const char *after, const char *end)
{
  gint64 until = g_get_monotonic_time() + METRICS_LAB_AWAIT_S * G_USEC_PER_SEC;
  do {
    g_autofree char *text = metrics_lab_read(role->log);
    const char *at = strstr(text, after), *from = at ? at + strlen(after) : NULL;
    if (from && strpbrk(from, end))
      return g_strndup(from, strcspn(from, end));
    g_usleep(5000);
  } while (g_get_monotonic_time() < until);
  cr_assert_fail("no \"%s\" in %s", after, role->log);
  return NULL;
}

static GPid start(const char *words, const char *out, const char *err)
{
  g_autofree char *path = spawned_path("distmind-real"), *line = g_strdup_printf("%s %s", path, words);
  g_auto(GStrv) argv = g_strsplit(line, " ", -1);
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
    if ((out && !freopen(out, "w", stdout)) || !freopen(err, "w", stderr))
      _exit(126);
    execv(argv[0], argv);
    _exit(127);
  }
  cr_assert_gt(pid, 0);
  return pid;
}

static void start_role(struct metrics_lab *c, int number, const char *words)
{
  struct role *role = &c->role[number];
  g_autofree char *name = g_strdup_printf("role%d.log", number);
  g_autofree char *line = g_strdup_printf("%s --metrics 0 --log-format json", words);
  role->log = metrics_lab_path(c, name);
  cr_assert(g_file_set_contents(role->log, "", 0, NULL));
  role->pid = start(line, NULL, role->log);
  g_autofree char *port = metrics_lab_await(role, "metrics on http://127.0.0.1:", "/");
  role->port = atoi(port);
}

/* One that was free a moment ago. */
static int free_port(void)
{
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  cr_assert_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
  close(fd);
  return ntohs(address.sin_port);
}

struct metrics_lab *metrics_lab_new(void)
{
  struct metrics_lab *c = g_new0(struct metrics_lab, 1);
  c->folder = g_dir_make_tmp("distmind-metrics-XXXXXX", NULL);
  g_autofree char *hub = metrics_lab_path(c, "hub.ini");
  cr_assert(g_file_set_contents(hub, "[cluster]\ncontroller = 127.0.0.1:0\n", -1, NULL));
  g_autofree char *controller = g_strdup_printf("controller --cluster %s", hub);
  start_role(c, CONTROLLER, controller);
  g_autofree char *endpoint = metrics_lab_await(&c->role[CONTROLLER], "listening on tcp://", "\"");
  g_autofree char *text = g_strdup_printf("[cluster]\ncontroller = %s\n", endpoint);
  c->file = metrics_lab_path(c, "cluster.ini");
  cr_assert(g_file_set_contents(c->file, text, -1, NULL));
  c->data_port = free_port();
  g_autofree char *memory =
      g_strdup_printf("memory-server --cluster %s --index 0 --address 127.0.0.1:%d", c->file, c->data_port);
  g_autofree char *gpu_0 = g_strdup_printf("gpu-server --cluster %s --index 0", c->file);
  g_autofree char *gpu_1 = g_strdup_printf("gpu-server --cluster %s --index 1", c->file);
  start_role(c, MEMORY, memory);
  start_role(c, GPU_0, gpu_0);
  start_role(c, GPU_1, gpu_1);
  return c;
}

/* Each ends on SIGTERM with exit status 0. */
void metrics_lab_free(struct metrics_lab *c)
{
  for (int i = ROLES; i-- > 0;) {
    int status = -1;
    kill(c->role[i].pid, SIGTERM);
    cr_assert_eq(waitpid(c->role[i].pid, &status, 0), c->role[i].pid);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "role %d: status %d", i, status);
    g_remove(c->role[i].log);
    g_free(c->role[i].log);
    g_clear_pointer(&c->role[i].last, g_hash_table_unref);
  }
  g_free(c->role[CLIENT].log);
  g_clear_pointer(&c->role[CLIENT].last, g_hash_table_unref);
  static const char *const names[] = {"hub.ini", "cluster.ini", "run.db", "run.out", "run.err"};
  for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
    g_autofree char *path = metrics_lab_path(c, names[i]);
    g_remove(path);
  }
  g_rmdir(c->folder);
  g_free(c->folder);
  g_free(c->file);
  g_free(c);
}

/* NULL: nobody is there, or goes in the midst of it. */
static char *get(int port)
{
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  g_autoptr(GString) text = g_string_new(NULL);
  char part[4096];
  ssize_t got = -1;
  if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
      send(fd, request, sizeof request - 1, MSG_NOSIGNAL) == (ssize_t)sizeof request - 1)
    while ((got = recv(fd, part, sizeof part, 0)) > 0)
      g_string_append_len(text, part, got);
  close(fd);
  if (got != 0 || text->len == 0)
    return NULL;
  const char *body = strstr(text->str, "\r\n\r\n");
  cr_assert(g_str_has_prefix(text->str, "HTTP/1.1 200 OK\r\n") && body, "%s", text->str);
  return g_strdup(body + 4);
}

void metrics_lab_scrape_one(struct role *role)
{
  g_autofree char *text = get(role->port);
  if (!text)
    return;
  GHashTable *samples = metrics_check(text);
  if (role->last) {
    metrics_check_grown(role->last, samples);
    g_hash_table_unref(role->last);
  }
  role->last = samples;
}

void metrics_lab_scrape(struct metrics_lab *c)
{
  for (int i = 0; i < ROLES; i++) {
    GHashTable *before = c->role[i].last;
    metrics_lab_scrape_one(&c->role[i]);
    cr_assert_neq(c->role[i].last, before, "role %d says nothing on port %d", i, c->role[i].port);
  }
}

/* A client's run of so many seconds. */
void metrics_lab_client(struct metrics_lab *c, const char *system, const char *seconds, const char *more)
{
  struct role *client = &c->role[CLIENT];
  g_autofree char *out = metrics_lab_path(c, "run.out"), *db = metrics_lab_path(c, "run.db");
  g_autofree char *words = g_strdup_printf(
      "client " DM_SOURCE_DIR "/experiments/real-quickstart.ini --cluster %s --device host --system %s --set "
      "workload.duration_s=%s --set cluster.memory_servers=1 --set cluster.heartbeat_ms=5000 --json --quiet "
      "--out %s --force --metrics 0 --log error,metrics=info --set output.decisions=all%s",
      c->file, system, seconds, db, more);
  g_free(client->log);
  client->log = metrics_lab_path(c, "run.err");
  cr_assert(g_file_set_contents(client->log, "", 0, NULL));
  g_clear_pointer(&client->last, g_hash_table_unref);
  client->pid = start(words, out, client->log);
  g_autofree char *port = metrics_lab_await(client, "metrics on http://127.0.0.1:", "/");
  client->port = atoi(port);
}

gboolean metrics_lab_client_goes_on(struct metrics_lab *c)
{
  int status;
  if (waitpid(c->role[CLIENT].pid, &status, WNOHANG) == 0)
    return TRUE;
  g_autofree char *text = metrics_lab_read(c->role[CLIENT].log);
  cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", text);
  return FALSE;
}

double metrics_lab_value(const struct metrics_lab *c, int role, const char *sample)
{
  return metrics_value(c->role[role].last, sample);
}
