/* A cluster on one machine; see local.h. */
#include "backend_real/local.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend_real/control.h"
#include "backend_real/memory_file.h"
#include "backend_real/metrics_http.h"
#include "core/error.h"
#include "harness/backend.h"

#define STOP_MS 5000 /* then SIGKILL */

struct child {
  enum actor_kind kind;
  uint32_t index;
  pid_t pid; /* 0: gone */
};

/* What the processes read: it never lies on a disk, where a parent that is killed would leave it. */
enum local_file {
  FILE_HUB,
  FILE_CONTROLLER_SECRET,
  FILE_PEER_PUBLIC,
  FILE_CLUSTER,
  FILE_CONTROLLER_PUBLIC,
  FILE_PEER_SECRET,
  LOCAL_FILES
};

static const char *const file_names[LOCAL_FILES] = {"controller.ini", "controller.secret", "peer.pub",
                                                    "cluster.ini",    "controller.pub",    "peer.secret"};
static const gboolean is_controllers[LOCAL_FILES] = {
    [FILE_HUB] = TRUE, [FILE_CONTROLLER_SECRET] = TRUE, [FILE_PEER_PUBLIC] = TRUE};

struct local {
  struct memory_file file[LOCAL_FILES];
  char *program, *log, *log_format, *record, *ssd_folder, *rdma_device;
  int gid_index;        /* -1 = chosen */
  char *metrics_host;   /* "HOST:" or "" */
  guint64 metrics_port; /* the next process's; 0: none are served */
  GArray *children;     /* of struct child */
};

/* --- files
 * ----------------------------------------------------------------------------------------------------------*/

static gboolean make_file(struct local *l, enum local_file kind, char *text, GError **error)
{
  gboolean good = memory_file_make(&l->file[kind], file_names[kind], text, error);
  key_text_free(text);
  return good;
}

static gboolean make_keys(struct local *l, GError **error)
{
  struct key_pair controller, peer;
  return key_pair_generate(&controller, error) && key_pair_generate(&peer, error) &&
         make_file(l, FILE_CONTROLLER_SECRET, key_pair_secret_text(&controller), error) &&
         make_file(l, FILE_CONTROLLER_PUBLIC, key_pair_public_text(&controller), error) &&
         make_file(l, FILE_PEER_SECRET, key_pair_secret_text(&peer), error) &&
         make_file(l, FILE_PEER_PUBLIC, key_pair_public_text(&peer), error);
}

static gboolean make_hub_file(struct local *l, GError **error)
{
  char *text =
      g_strdup_printf("[cluster]\ncontroller = 127.0.0.1:0\ncontroller_secret = %s\nauthorized = %s\n",
                      l->file[FILE_CONTROLLER_SECRET].path, l->file[FILE_PEER_PUBLIC].path);
  return make_file(l, FILE_HUB, text, error);
}

static gboolean make_cluster_file(struct local *l, const char *endpoint, GError **error)
{
  char *text = g_strdup_printf("[cluster]\ncontroller = %s\ncontroller_key = %s\nkey = %s\n", endpoint,
                               l->file[FILE_CONTROLLER_PUBLIC].path, l->file[FILE_PEER_SECRET].path);
  return make_file(l, FILE_CLUSTER, text, error);
}

/* In a child: what its role reads. */
static void keep_files(const struct local *l, enum actor_kind kind)
{
  for (int f = 0; f < LOCAL_FILES; f++)
    if (is_controllers[f] == (kind == ACTOR_CONTROLLER))
      memory_file_keep(&l->file[f]);
}

/* --- processes
 * ------------------------------------------------------------------------------------------------------*/

/* fd: stays open in the child under the same number; -1 = none. */
static void keep_open(int fd)
{
  if (fd >= 0)
    fcntl(fd, F_SETFD, 0);
}

static void add(GPtrArray *arguments, const char *option, const char *value)
{
  g_ptr_array_add(arguments, g_strdup(option));
  g_ptr_array_add(arguments, g_strdup(value));
}

static void add_number(GPtrArray *arguments, const char *option, int64_t number)
{
  g_ptr_array_add(arguments, g_strdup(option));
  g_ptr_array_add(arguments, g_strdup_printf("%" G_GINT64_FORMAT, number));
}

/* Opened here, so that a port that is taken is an error of this command; the child serves it. */
static gboolean next_metrics(struct local *l, int *fd, GError **error)
{
  *fd = -1;
  if (l->metrics_port == 0)
    return TRUE;
  g_autofree char *address = g_strdup_printf("%s%" G_GUINT64_FORMAT, l->metrics_host, l->metrics_port);
  if (l->metrics_port > 65535)
    return input_error(error, NULL, 0,
                       "--metrics: a port for each process is needed, and there is none after 65535");
  *fd = metrics_listen(address, error);
  l->metrics_port++;
  return *fd >= 0;
}

/* Starts a role with its own options, and takes them. report_fd as keep_open has it. */
static gboolean spawn(struct local *l, enum actor_kind kind, uint32_t index, GPtrArray *own, int report_fd,
                      GError **error)
{
  g_autoptr(GPtrArray) arguments = own;
  int metrics_fd;
  if (!next_metrics(l, &metrics_fd, error))
    return FALSE;
  g_ptr_array_insert(arguments, 0, g_strdup(l->program));
  g_ptr_array_insert(arguments, 1, g_strdup(peer_name(ACTOR(kind, index))));
  add_number(arguments, "--parent", getpid());
  add(arguments, "--log", l->log);
  if (l->log_format)
    add(arguments, "--log-format", l->log_format);
  if (l->record)
    add(arguments, "--record", l->record);
  if (metrics_fd >= 0)
    add_number(arguments, "--metrics-fd", metrics_fd);
  g_ptr_array_add(arguments, NULL);
  pid_t pid = fork();
  if (pid == 0) {
    keep_files(l, kind);
    keep_open(report_fd);
    keep_open(metrics_fd);
    signal(SIGINT, SIG_IGN); /* Ctrl-C is for the parent, which ends its children in order */
    execv(l->program, (char **)arguments->pdata);
    _exit(127);
  }
  if (metrics_fd >= 0)
    close(metrics_fd);
  if (pid < 0) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "fork: %s", g_strerror(errno));
    return FALSE;
  }
  struct child child = {kind, index, pid};
  g_array_append_val(l->children, child);
  return TRUE;
}

/* The controller's first line says where it listens. */
static char *read_endpoint(int fd, GError **error)
{
  char line[256] = "";
  struct pollfd wait = {.fd = fd, .events = POLLIN};
  ssize_t size = poll(&wait, 1, 10000) == 1 ? read(fd, line, sizeof line - 1) : -1;
  if (size > 0)
    return g_strdup(g_strstrip(line));
  if (backend_interrupted())
    g_set_error(error, DM_ERROR, DM_ERROR_INTERRUPTED, "interrupted before the controller's process started");
  else
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "the controller's process did not start");
  return NULL;
}

static gboolean start_controller(struct local *l, GError **error)
{
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "pipe: %s", g_strerror(errno));
    return FALSE;
  }
  GPtrArray *arguments = g_ptr_array_new_with_free_func(g_free);
  add(arguments, "--cluster", l->file[FILE_HUB].path);
  add_number(arguments, "--listening-fd", ends[1]);
  gboolean good = spawn(l, ACTOR_CONTROLLER, 0, arguments, ends[1], error);
  close(ends[1]);
  g_autofree char *endpoint = good ? read_endpoint(ends[0], error) : NULL;
  close(ends[0]);
  return endpoint && make_cluster_file(l, endpoint, error);
}

/* One that has ended is nobody. */
static struct child *find(struct local *l, enum actor_kind kind, uint32_t index)
{
  for (guint i = 0; i < l->children->len; i++) {
    struct child *child = &g_array_index(l->children, struct child, i);
    if (child->pid != 0 && waitpid(child->pid, NULL, WNOHANG) != 0)
      child->pid = 0;
    if (child->kind == kind && child->index == index && child->pid != 0)
      return child;
  }
  return NULL;
}

gboolean local_ensure(struct local *l, enum actor_kind kind, uint32_t index, uint32_t first_gpu,
                      GError **error)
{
  if (find(l, kind, index))
    return TRUE;
  GPtrArray *arguments = g_ptr_array_new_with_free_func(g_free);
  add(arguments, "--cluster", l->file[FILE_CLUSTER].path);
  add_number(arguments, "--index", index);
  if (l->rdma_device)
    add(arguments, "--rdma-device", l->rdma_device);
  if (l->gid_index >= 0)
    add_number(arguments, "--gid-index", l->gid_index);
  if (kind == ACTOR_GPU_SERVER)
    add_number(arguments, "--first-gpu", first_gpu);
  else
    add(arguments, "--address", "127.0.0.1");
  if (kind == ACTOR_GPU_SERVER && l->ssd_folder)
    add(arguments, "--ssd-folder", l->ssd_folder);
  return spawn(l, kind, index, arguments, -1, error);
}

gboolean local_has(struct local *l, enum actor_kind kind, uint32_t index)
{
  return find(l, kind, index) != NULL;
}

gboolean local_signal(struct local *l, enum actor_kind kind, uint32_t index, int signal_number)
{
  const struct child *child = find(l, kind, index);
  return child && kill(child->pid, signal_number) == 0;
}

/* --- begin and end
 * --------------------------------------------------------------------------------------------------*/

/* [HOST:]PORT, cut in two. */
static gboolean read_metrics(struct local *l, const char *address, GError **error)
{
  const char *colon = strrchr(address, ':'), *port = colon ? colon + 1 : address;
  l->metrics_host = g_strndup(address, (gsize)(port - address));
  if (!g_ascii_string_to_unsigned(port, 10, 1, 65535, &l->metrics_port, NULL))
    return input_error(error, NULL, 0,
                       "--metrics: expected [HOST:]PORT with a port from 1 to 65535, found \"%s\"", address);
  return TRUE;
}

struct local *local_start(const struct local_options *options, GError **error)
{
  struct local *l = g_new0(struct local, 1);
  for (int f = 0; f < LOCAL_FILES; f++)
    l->file[f].fd = -1;
  l->children = g_array_new(FALSE, FALSE, sizeof(struct child));
  l->log = g_strdup(options->log);
  l->log_format = g_strdup(options->log_format);
  l->record = g_strdup(options->record);
  l->ssd_folder = g_strdup(options->ssd_folder);
  l->rdma_device = g_strdup(options->rdma_device);
  l->gid_index = options->gid_index;
  gboolean good = !options->metrics || read_metrics(l, options->metrics, error);
  l->program = good ? g_file_read_link("/proc/self/exe", error) : NULL;
  if (l->program && make_keys(l, error) && make_hub_file(l, error) && start_controller(l, error))
    return l;
  local_stop(l);
  return NULL;
}

/* Waits until the child has ended; FALSE: it did not in time. */
static gboolean reap(struct child *child, int wait_ms, int *status)
{
  for (int waited = 0; waitpid(child->pid, status, WNOHANG) == 0; waited += 5) {
    if (waited >= wait_ms)
      return FALSE;
    g_usleep(5000);
  }
  return TRUE;
}

static void end_child(struct child *child)
{
  int status = 0;
  if (child->pid == 0)
    return;
  kill(child->pid, SIGCONT);
  if (!reap(child, STOP_MS, &status)) {
    kill(child->pid, SIGKILL);
    waitpid(child->pid, &status, 0);
  }
  child->pid = 0;
}

void local_stop(struct local *l)
{
  if (!l)
    return;
  /* Servers first: they say good-bye to a controller that is still there. */
  for (guint i = 1; i < l->children->len; i++)
    if (g_array_index(l->children, struct child, i).pid != 0)
      kill(g_array_index(l->children, struct child, i).pid, SIGTERM);
  for (guint i = 1; i < l->children->len; i++)
    end_child(&g_array_index(l->children, struct child, i));
  local_end(l, ACTOR_CONTROLLER, 0);
  for (int f = 0; f < LOCAL_FILES; f++)
    memory_file_close(&l->file[f]);
  g_array_unref(l->children);
  g_free(l->program);
  g_free(l->log);
  g_free(l->log_format);
  g_free(l->metrics_host);
  g_free(l->record);
  g_free(l->ssd_folder);
  g_free(l->rdma_device);
  g_free(l);
}

void local_end(struct local *l, enum actor_kind kind, uint32_t index)
{
  struct child *child = find(l, kind, index);
  if (!child)
    return;
  kill(child->pid, SIGTERM);
  end_child(child);
}

const char *local_cluster_file(const struct local *l)
{
  return l->file[FILE_CLUSTER].path;
}
