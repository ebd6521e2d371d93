/* `controller`, `gpu-server`, `memory-server`: one role of a cluster each, until told to go. */
#include "backend_real/command_role.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "backend_real/cluster_file.h"
#include "backend_real/coordinator.h"
#include "backend_real/log.h"
#include "backend_real/server.h"
#include "backend_real/transport.h"
#include "backend_real/transport_tcp_socket.h"
#include "core/error.h"

enum number { INDEX, FIRST_GPU, GID_INDEX, PARENT, LISTENING_FD, METRICS_FD, NUMBERS };

/* Options of whole numbers. The last three are for children of `run --local`. */
static const struct {
  const char *name;
  gint least, most, otherwise; /* otherwise: where it is not given */
} numbers[NUMBERS] = {[INDEX] = {"index", 0, 0xffff, -1},
                      [FIRST_GPU] = {"first-gpu", 0, 0xffff, 0},
                      [GID_INDEX] = {"gid-index", 0, 0xffff, -1},
                      [PARENT] = {"parent", 1, G_MAXINT, 0},
                      [LISTENING_FD] = {"listening-fd", 0, G_MAXINT, -1},
                      [METRICS_FD] = {"metrics-fd", 0, G_MAXINT, -1}};

struct arguments {
  char *cluster, *address, *log, *log_format, *metrics, *record, *ssd_folder, *rdma_device;
  char *number_text[NUMBERS]; /* NULL: not given */
  gint number[NUMBERS];
};

static void arguments_clear(struct arguments *a)
{
  g_free(a->cluster);
  g_free(a->address);
  g_free(a->log);
  g_free(a->log_format);
  g_free(a->metrics);
  g_free(a->record);
  g_free(a->ssd_folder);
  g_free(a->rdma_device);
  for (int i = 0; i < NUMBERS; i++)
    g_free(a->number_text[i]);
}

/* A child of `run --local` ends with its parent, even one that was killed. */
static gboolean tie_to_parent(gint parent, GError **error)
{
  if (parent == 0)
    return TRUE;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent)
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "process %d, which began this one, has ended", parent);
  return FALSE;
}

static gboolean numbers_read(struct arguments *a, GError **error)
{
  for (int i = 0; i < NUMBERS; i++) {
    a->number[i] = numbers[i].otherwise;
    if (!command_integer(numbers[i].name, a->number_text[i], numbers[i].least, numbers[i].most, &a->number[i],
                         error))
      return FALSE;
  }
  return TRUE;
}

static gboolean arguments_read(int argc, char **argv, struct arguments *a, GError **error)
{
  const GOptionEntry entries[] = {
      {"cluster", 0, 0, G_OPTION_ARG_FILENAME, &a->cluster, NULL, NULL},
      {"index", 0, 0, G_OPTION_ARG_FILENAME, &a->number_text[INDEX], NULL, NULL},
      {"address", 0, 0, G_OPTION_ARG_FILENAME, &a->address, NULL, NULL},
      {"first-gpu", 0, 0, G_OPTION_ARG_FILENAME, &a->number_text[FIRST_GPU], NULL, NULL},
      {"rdma-device", 0, 0, G_OPTION_ARG_FILENAME, &a->rdma_device, NULL, NULL},
      {"gid-index", 0, 0, G_OPTION_ARG_FILENAME, &a->number_text[GID_INDEX], NULL, NULL},
      {"log", 0, 0, G_OPTION_ARG_FILENAME, &a->log, NULL, NULL},
      {"log-format", 0, 0, G_OPTION_ARG_FILENAME, &a->log_format, NULL, NULL},
      {"ssd-folder", 0, 0, G_OPTION_ARG_FILENAME, &a->ssd_folder, NULL, NULL},
      {"metrics", 0, 0, G_OPTION_ARG_FILENAME, &a->metrics, NULL, NULL},
      {"metrics-fd", 0, 0, G_OPTION_ARG_FILENAME, &a->number_text[METRICS_FD], NULL, NULL},
      {"record", 0, 0, G_OPTION_ARG_FILENAME, &a->record, NULL, NULL},
      {"parent", 0, 0, G_OPTION_ARG_FILENAME, &a->number_text[PARENT], NULL, NULL},
      {"listening-fd", 0, 0, G_OPTION_ARG_FILENAME, &a->number_text[LISTENING_FD], NULL, NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL},
  };
  g_auto(GStrv) rest = command_options(argc, argv, entries, error);
  if (!rest || !command_arguments(argv, rest, 0, 0, "no argument", error) || !numbers_read(a, error))
    return FALSE;
  if (!a->cluster)
    return input_error(error, NULL, 0, "%s: expected --cluster CLUSTER.ini; `%s %s --help` shows how",
                       argv[0], g_get_prgname(), argv[0]);
  return log_setup(a->log ? a->log : "info", a->log_format, error) && tie_to_parent(a->number[PARENT], error);
}

/* *fd: where metrics are served, -1 = nowhere. */
static gboolean metrics_socket(const struct arguments *a, int *fd, GError **error)
{
  *fd = a->metrics ? metrics_listen(a->metrics, error) : a->number[METRICS_FD];
  return !a->metrics || *fd >= 0;
}

/* --- the controller
 * -------------------------------------------------------------------------------------------------*/

static void tell_endpoint(void *context, const char *endpoint)
{
  const struct arguments *a = context;
  if (a->number[LISTENING_FD] >= 0) {
    dprintf(a->number[LISTENING_FD], "%s\n", endpoint);
    close(a->number[LISTENING_FD]);
  }
}

static gboolean run_controller(int argc, char **argv, GError **error)
{
  struct arguments a = {NULL};
  struct key_pair keys;
  struct hub_config hub;
  int metrics;
  gboolean good = arguments_read(argc, argv, &a, error);
  if (good && (a.address || a.rdma_device || a.ssd_folder || a.number_text[INDEX] ||
               a.number_text[FIRST_GPU] || a.number_text[GID_INDEX]))
    good = input_error(error, NULL, 0,
                       "controller: --index, --address, --first-gpu, --rdma-device, --gid-index and "
                       "--ssd-folder are options of servers");
  g_autoptr(ClusterFile) file = good ? cluster_file_load(a.cluster, error) : NULL;
  log_process(ACTOR(ACTOR_CONTROLLER, 0));
  good = file && cluster_file_hub(file, &keys, &hub, error) && metrics_socket(&a, &metrics, error) &&
         coordinator_run(&hub, metrics, a.record, tell_endpoint, &a, error);
  arguments_clear(&a);
  return good;
}

/* --- servers
 * --------------------------------------------------------------------------------------------------------*/

/* While whoever began it looks on: a run, which would find it out as well, may be hours away. */
static gboolean check_address(const char *address, GError **error)
{
  if (!address)
    return input_error(error, NULL, 0,
                       "memory-server: expected --address HOST[:PORT], where GPU servers reach it");
  g_autofree char *whole = server_data_address(address);
  int fd = socket_listen(whole, error);
  if (fd < 0) {
    g_prefix_error(error, "--address: ");
    return FALSE;
  }
  g_autofree char *bound = socket_address(fd);
  close(fd);
  return !(g_str_has_prefix(bound, "0.0.0.0:") || g_str_has_prefix(bound, "[::]:")) ||
         input_error(error, NULL, 0,
                     "--address: expected an address at which GPU servers reach this machine, found \"%s\"",
                     address);
}

static gboolean check_server(enum actor_kind kind, const struct arguments *a, GError **error)
{
  if (!a->number_text[INDEX])
    return input_error(error, NULL, 0, "%s: expected --index N, its place in its pool, from 0",
                       peer_name(ACTOR(kind, 0)));
  if (kind == ACTOR_GPU_SERVER && a->address)
    return input_error(error, NULL, 0, "gpu-server: --address is an option of memory servers");
  if (kind == ACTOR_MEMORY_SERVER && (a->number_text[FIRST_GPU] || a->ssd_folder))
    return input_error(error, NULL, 0,
                       "memory-server: --first-gpu and --ssd-folder are options of GPU servers");
  if (a->ssd_folder && !g_file_test(a->ssd_folder, G_FILE_TEST_IS_DIR))
    return input_error(error, NULL, 0, "--ssd-folder: expected a folder on an SSD, found \"%s\"",
                       a->ssd_folder);
  if ((a->rdma_device || a->number_text[GID_INDEX]) && !transport_by_name("verbs", error))
    return FALSE;
  return kind != ACTOR_MEMORY_SERVER || check_address(a->address, error);
}

static gboolean run_server(enum actor_kind kind, int argc, char **argv, GError **error)
{
  struct arguments a = {NULL};
  struct link_keys keys;
  struct server_options options = {.kind = kind};
  gboolean good = arguments_read(argc, argv, &a, error) && check_server(kind, &a, error);
  g_autoptr(ClusterFile) file = good ? cluster_file_load(a.cluster, error) : NULL;
  good = file && cluster_file_link(file, &keys, &options.link, error) &&
         metrics_socket(&a, &options.metrics, error);
  if (good) {
    log_process(ACTOR(kind, (uint32_t)a.number[INDEX]));
    options.index = (uint32_t)a.number[INDEX];
    options.first_gpu = (uint32_t)a.number[FIRST_GPU];
    options.record = a.record;
    options.ssd_folder = a.ssd_folder;
    options.rdma_device = a.rdma_device;
    options.gid_index = a.number[GID_INDEX];
    options.data_address = a.address;
    good = server_run(&options, error);
  }
  arguments_clear(&a);
  return good;
}

static gboolean run_gpu_server(int argc, char **argv, GError **error)
{
  return run_server(ACTOR_GPU_SERVER, argc, argv, error);
}

static gboolean run_memory_server(int argc, char **argv, GError **error)
{
  return run_server(ACTOR_MEMORY_SERVER, argc, argv, error);
}

#define COMMON_HELP                                                                                          \
  "  --cluster FILE    where the controller listens, and keys (`distmind-real keygen` makes them):\n"        \
  "                      [cluster]\n"                                                                        \
  "                      controller = 10.0.0.1:7700\n"                                                       \
  "                      controller_key = controller.pub\n"                                                  \
  "                      controller_secret = controller.secret   # read by the controller alone\n"           \
  "                      authorized = peers                      # its folder of public keys\n"              \
  "                      key = peer.secret                       # read by all others\n"                     \
  "  --log LEVELS      error, warning, info (default) or debug; of some domains another:\n"                  \
  "                    info,control=debug,transport=warning (also roles, metrics, GLib)\n"                   \
  "  --log-format F    text (default) or json, one object a line; under systemd the journal gets all\n"      \
  "                    fields anyway\n"                                                                      \
  "  --metrics A       serve Prometheus metrics at http://A/metrics: [HOST:]PORT, loopback without HOST\n"   \
  "  --record FILE     notes all that its part of the core is told and does, in a new file "                 \
  "FILE.ROLE-INDEX,\n"                                                                                       \
  "                    for `distmind-sim rerun`\n"                                                           \
  "\nEnds on SIGTERM. "

#define RDMA_HELP                                                                                            \
  "  --rdma-device D   RDMA devices to use, NAME[:PORT],...; default: those on the route to the peer (a "    \
  "GPU\n"                                                                                                    \
  "                    server of one GPU: of these, those nearest to it); on loopback the first active "     \
  "one\n"                                                                                                    \
  "  --gid-index I     of its port; default: the one of the local address (RoCE v2 before v1)\n"

const struct command command_controller = {
    .name = "controller",
    .summary = "the controller of a cluster: all other roles link to it",
    .run = run_controller,
    .help =
        "controller --cluster CLUSTER.ini [--metrics [HOST:]PORT] [--log LEVELS] [--log-format text|json]\n"
        "           [--record FILE]\n\n"
        "Listens for servers and clients, and serves one run after another.\n\n" COMMON_HELP
        "Without keys it listens on loopback only.\n\n"
        "Example:\n  mkdir -p peers && distmind-real keygen controller && distmind-real keygen peers/gpu0\n"
        "  distmind-real controller --cluster cluster.ini\n",
};

const struct command command_gpu_server = {
    .name = "gpu-server",
    .summary = "a server of the GPU pool",
    .run = run_gpu_server,
    .help =
        "gpu-server --cluster CLUSTER.ini --index N [--first-gpu G] [--ssd-folder FOLDER]\n"
        "           [--rdma-device D] [--gid-index I] [--metrics [HOST:]PORT] [--log LEVELS]\n"
        "           [--log-format text|json] [--record FILE]\n\n"
        "Computes requests on this machine's GPUs, with models that it loads from the memory servers.\n\n"
        "  --index N         its place in the GPU pool, from 0\n"
        "  --first-gpu G     first of its GPUs on this machine (default 0)\n"
        "  --ssd-folder F    on this machine's SSD, for systems that load from it (serverlessllm): models\n"
        "                    are written to F/gpu-server-N where they are not there yet, and stay\n" RDMA_HELP
            COMMON_HELP "It may be started while a run is on, if the experiment has a place for it.\n\n"
        "Example:\n  distmind-real gpu-server --cluster cluster.ini --index 0\n",
};

const struct command command_memory_server = {
    .name = "memory-server",
    .summary = "a server of the memory pool",
    .run = run_memory_server,
    .help = "memory-server --cluster CLUSTER.ini --index N --address HOST[:PORT]\n"
            "           [--rdma-device D] [--gid-index I] [--metrics [HOST:]PORT] [--log LEVELS]\n"
            "           [--log-format text|json] [--record FILE]\n\n"
            "Holds shards of the models in memory; GPU servers read them.\n\n"
            "  --index N         its place in the memory pool, from 0\n"
            "  --address A       where GPU servers reach it: data is authenticated by tickets, not "
            "encrypted\n" RDMA_HELP COMMON_HELP
            "It may be started while a run is on, if the experiment has a place for it.\n\n"
            "Example:\n  distmind-real memory-server --cluster cluster.ini --index 0 --address 10.0.0.2\n",
};
