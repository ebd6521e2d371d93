/* `run` in the real world: a cluster on this machine, or one that is there. */
#include "backend_real/command_run.h"

#include <glib/gstdio.h>
#include <signal.h>
#include "backend_real/client.h"
#include "backend_real/commands.h"
#include "backend_real/images.h"
#include "backend_real/device.h"
#include "backend_real/local.h"
#include "backend_real/local_record.h"
#include "backend_real/log.h"
#include "backend_real/metrics_http.h"
#include "backend_real/real_world.h"
#include "backend_real/transport.h"
#include "core/error.h"
#include "harness/output_file.h"

/* One command a process: its options and what it opened. */
static struct {
  gboolean local_wanted, share_gpus, is_client; /* is_client: the command is `client` */
  char *cluster, *device, *transport, *images, *log, *log_format, *metrics, *record, *ssd_folder,
      *rdma_device, *gid_index_text, *pace_text;
  gint gid_index; /* -1: not given */
  double pace;
  struct local *local;
  struct client *client;
  struct recording *recording;
  struct client_options options;
  GError *record_error; /* what went wrong with the recording at the end */
} real = {.gid_index = -1};

static const GOptionEntry options[] = {
    {"local", 0, 0, G_OPTION_ARG_NONE, &real.local_wanted, NULL, NULL},
    {"cluster", 0, 0, G_OPTION_ARG_FILENAME, &real.cluster, NULL, NULL},
    {"device", 0, 0, G_OPTION_ARG_FILENAME, &real.device, NULL, NULL},
    {"transport", 0, 0, G_OPTION_ARG_FILENAME, &real.transport, NULL, NULL},
    {"rdma-device", 0, 0, G_OPTION_ARG_FILENAME, &real.rdma_device, NULL, NULL},
    {"gid-index", 0, 0, G_OPTION_ARG_FILENAME, &real.gid_index_text, NULL, NULL},
    {"pace", 0, 0, G_OPTION_ARG_FILENAME, &real.pace_text, NULL, NULL},
    {"images", 0, 0, G_OPTION_ARG_FILENAME, &real.images, NULL, NULL},
    {"ssd-folder", 0, 0, G_OPTION_ARG_FILENAME, &real.ssd_folder, NULL, NULL},
    {"share-gpus", 0, 0, G_OPTION_ARG_NONE, &real.share_gpus, NULL, NULL},
    {"log", 0, 0, G_OPTION_ARG_FILENAME, &real.log, NULL, NULL},
    {"log-format", 0, 0, G_OPTION_ARG_FILENAME, &real.log_format, NULL, NULL},
    {"metrics", 0, 0, G_OPTION_ARG_FILENAME, &real.metrics, NULL, NULL},
    {"record", 0, 0, G_OPTION_ARG_FILENAME, &real.record, NULL, NULL},
    {NULL, 0, 0, 0, NULL, NULL, NULL},
};

static gboolean always(const struct experiment *experiment)
{
  (void)experiment;
  return TRUE;
}

/* Of a cluster, each GPU server knows its own folder. */
static gboolean ssd_check(const struct experiment *base, GError **error)
{
  if (real.ssd_folder && !real.local_wanted)
    return input_error(error, NULL, 0,
                       "--ssd-folder: goes with --local; of a cluster each gpu-server has "
                       "its own");
  if (real.ssd_folder && !g_file_test(real.ssd_folder, G_FILE_TEST_IS_DIR))
    return input_error(error, NULL, 0, "--ssd-folder: expected a folder on an SSD, found \"%s\"",
                       real.ssd_folder);
  for (char **name = base->systems; *name && !real.ssd_folder && real.local_wanted; name++)
    if (system_by_name(*name)->needs & WORLD_SSD)
      return input_error(error, base->path, 0,
                         "system %s loads from a local SSD: expected --ssd-folder FOLDER, a folder there "
                         "that its models are written to",
                         *name);
  return TRUE;
}

/* On this machine it can be told before any process starts; of a cluster each server tells. */
static gboolean choices_check(GError **error)
{
  const char *device = real.device ? real.device : "auto",
             *transport = real.transport ? real.transport : "auto";
  if (!device_name_check(device, error) || !transport_name_check(transport, error))
    return FALSE;
  return !real.local_wanted || (device_by_name(device, error) && transport_by_name(transport, error));
}

static gboolean rdma_check(GError **error)
{
  if (!command_integer("gid-index", real.gid_index_text, 0, 0xffff, &real.gid_index, error))
    return FALSE;
  if (!real.rdma_device && !real.gid_index_text)
    return TRUE;
  if (!real.local_wanted)
    return input_error(error, NULL, 0,
                       "--rdma-device, --gid-index: go with --local; of a cluster each server has its own");
  if (g_strcmp0(real.transport, "tcp") == 0 || real.pace > 0)
    return input_error(
        error, NULL, 0,
        "--rdma-device, --gid-index: go with RDMA, neither with --transport tcp nor with --pace");
  return transport_by_name("verbs", error) != NULL;
}

static gboolean options_check(const struct experiment *base, GError **error)
{
  if (real.is_client && (real.local_wanted || !real.cluster))
    return input_error(error, NULL, 0,
                       "client: expected --cluster CLUSTER.ini; `%s run --local` starts servers itself",
                       g_get_prgname());
  if (real.local_wanted == (real.cluster != NULL))
    return input_error(error, NULL, 0,
                       "run: expected --local (a cluster on this machine) or --cluster CLUSTER.ini");
  if (!pace_option(real.pace_text, &real.pace, error))
    return FALSE;
  if (real.images && !g_file_test(real.images, G_FILE_TEST_IS_DIR))
    return input_error(error, NULL, 0, "--images: expected a folder of packed images, found \"%s\"",
                       real.images);
  if (!choices_check(error) || !rdma_check(error) || !ssd_check(base, error))
    return FALSE;
  if (!log_setup(real.log ? real.log : "warning", real.log_format, error))
    return FALSE;
  if (real.is_client)
    log_process(ACTOR(ACTOR_CLIENT, 0));
  return TRUE;
}

/* --- a cluster on this machine
 * ----------------------------------------------------------------------------------------------*/

static gboolean ensure(const struct setup *setup, enum actor_kind kind, uint32_t index, GError **error)
{
  uint32_t first_gpu = kind == ACTOR_GPU_SERVER ? setup->config.server[index].first_gpu : 0;
  return local_ensure(real.local, kind, index, first_gpu, error);
}

/* Those that are added later must not be there yet: the run of the system before may have added them. */
static gboolean ensure_all(const struct setup *setup, GError **error)
{
  for (uint32_t i = setup->config.memory_servers_at_start; i < MEMORY_SERVERS_MAX; i++)
    local_end(real.local, ACTOR_MEMORY_SERVER, i);
  for (uint32_t i = setup->config.servers_at_start; i < GPU_SERVERS_MAX; i++)
    local_end(real.local, ACTOR_GPU_SERVER, i);
  for (uint32_t i = 0; i < setup->config.memory_servers_at_start; i++)
    if (!ensure(setup, ACTOR_MEMORY_SERVER, i, error))
      return FALSE;
  for (uint32_t i = 0; i < setup->config.servers_at_start; i++)
    if (!ensure(setup, ACTOR_GPU_SERVER, i, error))
      return FALSE;
  return TRUE;
}

/* fail: SIGKILL. add: the next places of the pool get a process. */
static gboolean local_event(void *context, const struct experiment_event *event, GError **error)
{
  const struct setup *setup = context;
  enum actor_kind kind = event->member == MEMBER_GPU_SERVER ? ACTOR_GPU_SERVER : ACTOR_MEMORY_SERVER;
  if (event->kind == EVENT_FAIL) {
    local_signal(real.local, kind, event->number, SIGKILL);
    return TRUE;
  }
  uint32_t places = kind == ACTOR_GPU_SERVER ? setup->config.servers : setup->config.memory_servers;
  uint32_t wanted = event->number;
  for (uint32_t i = kind == ACTOR_GPU_SERVER ? setup->config.servers_at_start
                                             : setup->config.memory_servers_at_start;
       i < places && wanted > 0; i++)
    if (!local_has(real.local, kind, i)) {
      wanted--;
      if (!ensure(setup, kind, i, error))
        return FALSE;
    }
  return TRUE;
}

/* --- the backend
 * ----------------------------------------------------------------------------------------------------*/

static const char *record_output(void)
{
  return real.local_wanted ? real.record : NULL;
}

static gboolean record_open(gboolean force, GError **error)
{
  if (!real.record)
    return TRUE;
  /* Told before any process starts: the run would wait for one that cannot begin its file. */
  if (!output_name_check(real.record, ".memory-server-65535.10000", error))
    return FALSE;
  /* A cluster's roles may write beside each other, and none replaces a file. */
  if (real.local_wanted && !local_record_clear(real.record, force, error))
    return FALSE;
  real.recording = recording_create(real.record, ACTOR(ACTOR_CLIENT, 0), error);
  return real.recording != NULL;
}

/* After all processes have ended. Of runs of which none began, nothing is kept. */
static void record_close(gboolean began)
{
  if (!real.recording)
    return;
  g_autofree char *own = g_strdup(recording_path(real.recording));
  gboolean good = recording_close(real.recording, &real.record_error);
  if (!began) {
    g_unlink(own);
    if (real.local_wanted)
      local_record_clear(real.record, TRUE, &real.record_error);
  } else if (good && real.local_wanted)
    local_record_join(real.record, &real.record_error);
}

static gboolean real_open(const struct experiment *base, char **sets, gboolean force, GError **error)
{
  if (!options_check(base, error) || !record_open(force, error))
    return FALSE;
  real.options = (struct client_options){.device = real.device ? real.device : "auto",
                                         .transport = real.transport ? real.transport : "auto",
                                         .image_folder = real.images ? real.images : "",
                                         .pace_gbit_s = real.pace,
                                         .share_gpus = real.share_gpus,
                                         .sets = sets,
                                         .recording = real.recording};
  if (real.local_wanted) {
    struct local_options local = {.log = real.log ? real.log : "warning",
                                  .log_format = real.log_format,
                                  .metrics = real.metrics,
                                  .ssd_folder = real.ssd_folder,
                                  .record = real.record,
                                  .rdma_device = real.rdma_device,
                                  .gid_index = real.gid_index};
    real.local = local_start(&local, error);
    if (!real.local)
      return FALSE;
    real.options.event = local_event;
  }
  g_autoptr(ClusterFile) file =
      cluster_file_load(real.local ? local_cluster_file(real.local) : real.cluster, error);
  int metrics = -1;
  if (!file || (real.metrics && !real.local && (metrics = metrics_listen(real.metrics, error)) < 0))
    return FALSE;
  real.client = client_new(file, metrics, error);
  return real.client != NULL;
}

/* Here before any process starts; on other machines each server looks at its own. */
static gboolean images_check(const struct catalog *catalog, GError **error)
{
  if (images_packed(catalog, real.images) == 0) {
    g_autofree char *name = catalog_model_name(catalog, 0);
    return input_error(error, NULL, 0,
                       "--images: expected images of the experiment's models (%s.dmi, ...) in %s, found none",
                       name, real.images);
  }
  struct images *images = images_new(catalog, real.images, error);
  images_free(images);
  return images != NULL;
}

static gboolean real_run(const struct setup *setup, const struct run_info *info,
                         const struct run_outputs *outputs, struct figures *figures, char **notices,
                         GError **error)
{
  if (real.images && !images_check(setup->catalog, error))
    return FALSE;
  if (real.local && !ensure_all(setup, error))
    return FALSE;
  real.options.context = (void *)setup;
  return client_run(real.client, &real.options, setup, info, outputs, figures, notices, error);
}

/* The client, the controller, and a process a server; what runs on other machines wants no core of this one.
 */
static uint32_t processes(const struct setup *setup)
{
  const struct config *config = &setup->config;
  return real.local_wanted ? 2 + config->servers_at_start + config->memory_servers_at_start : 1;
}

static void real_close(void)
{
  gboolean began = client_began(real.client);
  client_free(real.client);
  local_stop(real.local);
  record_close(began);
  g_free(real.record);
  g_free(real.cluster);
  g_free(real.device);
  g_free(real.transport);
  g_free(real.rdma_device);
  g_free(real.gid_index_text);
  g_free(real.pace_text);
  g_free(real.images);
  g_free(real.ssd_folder);
  g_free(real.log);
  g_free(real.log_format);
  g_free(real.metrics);
}

static const struct backend backend = {.name = "real",
                                       .options = options,
                                       .capabilities = REAL_CAPABILITIES,
                                       .needs_heartbeats = always,
                                       .processes = processes,
                                       .output = record_output,
                                       .open = real_open,
                                       .run = real_run,
                                       .close = real_close};

static gboolean run_command(int argc, char **argv, GError **error)
{
  gboolean good = backend_run_command(&backend, argc, argv, error);
  if (good && real.record_error) {
    g_propagate_error(error, g_steal_pointer(&real.record_error));
    good = FALSE;
  }
  g_clear_error(&real.record_error);
  return good;
}

gboolean command_run_client(int argc, char **argv, GError **error)
{
  real.is_client = TRUE;
  return run_command(argc, argv, error);
}

const struct command command_run = {
    .name = "run",
    .summary = "run an experiment on real processes, links and GPUs",
    .first = "experiments/real-quickstart.ini --local",
    .run = run_command,
    .help =
        "run EXPERIMENT.ini --local|--cluster CLUSTER.ini [--device auto|cuda|host] [--transport "
        "auto|verbs|tcp]\n"
        "           [--rdma-device D] [--gid-index I] [--pace GBIT_S] [--images FOLDER] [--ssd-folder "
        "FOLDER]\n"
        "           [--share-gpus] [--metrics [HOST:]PORT] [--log LEVELS] [--log-format text|json]\n"
        "           [--record FILE]\n"
        "           [--system A,B] [--set SECTION.KEY=VALUE]... [--trace FILE] [--seed N]\n"
        "           [--out FILE.db] [--force] [--timeline FILE.json] [--json] [--quiet] [--print-config]\n"
        "\n"
        "Runs the experiment under each of its systems, in real time, and prints the comparison table: the "
        "same\n"
        "table, JSON and database as distmind-sim's. Which devices and transports were really used stands "
        "under "
        "it.\n"
        "\n"
        "  --local           controller, memory servers and GPU servers as processes on this machine\n"
        "  --cluster FILE    the cluster of this controller (see `distmind-real controller --help`)\n"
        "  --device D        cuda: GPUs; host: the processor stands in for them; auto (default): cuda if "
        "there is "
        "one\n"
        "  --transport T     verbs (RDMA) or tcp; auto (default): the best that all servers have\n"
        "  --rdma-device D   with --local: RDMA devices of its servers, NAME[:PORT],...; default: the first "
        "active\n"
        "  --gid-index I     with --local: of the port; default: the one of the local address\n"
        "  --pace GBIT_S     limits each server's traffic, so that loopback behaves like a NIC of that rate\n"
        "  --images FOLDER   packed images NAME.dmi of the models (`model pack`); bytes of others are "
        "generated\n"
        "  --ssd-folder F    with --local: on this machine's SSD, for systems that load from it "
        "(serverlessllm):\n"
        "                    models are written to F/gpu-server-N where they are not there yet, and stay\n"
        "  --share-gpus      several GPU servers may use one GPU\n"
        "  --metrics A       Prometheus metrics at http://A/metrics, [HOST:]PORT, loopback without HOST: "
        "with\n"
        "                    --local the controller's, and at the ports that follow those of its servers, "
        "memory\n"
        "                    before GPU; with --cluster this client's\n"
        "  --log LEVELS      error, warning (default), info or debug; of some domains another, as in\n"
        "                    info,control=debug\n"
        "  --log-format F    text (default) or json\n"
        "  --record FILE     notes all that the core is told and does, in all processes, for `distmind-sim "
        "rerun FILE`;\n"
        "                    with --cluster: this client's alone, in FILE.client (other roles have --record "
        "too);\n"
        "                    an existing one needs --force\n"
        "  --system A,B      only these systems (distmind, pipeswitch, ray, serverlessllm)\n" RUN_OPTIONS_HELP
        "\n"
        "Examples:\n"
        "  distmind-real run experiments/real-quickstart.ini --local\n"
        "  distmind-real run experiments/real-quickstart.ini --local --device host --pace 10 --json\n",
};
