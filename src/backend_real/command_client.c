/* `client`: the fourth role of a cluster, beside controller, GPU servers and memory servers: drives an
 * experiment's requests through them. What `run --cluster` does. */
#include "backend_real/command_run.h"
#include "backend_real/commands.h"
#include "harness/backend.h"

const struct command command_client = {
    .name = "client",
    .summary = "drive an experiment's requests through a running cluster",
    .run = command_run_client,
    .help =
        "client EXPERIMENT.ini --cluster CLUSTER.ini [--device auto|cuda|host] [--transport auto|verbs|tcp]\n"
        "           [--pace GBIT_S] [--images FOLDER] [--share-gpus] [--metrics [HOST:]PORT] [--log LEVELS]\n"
        "           [--log-format text|json] [--record FILE]\n"
        "           [--system A,B] [--set SECTION.KEY=VALUE]... [--trace FILE] [--seed N]\n"
        "           [--out FILE.db] [--force] [--timeline FILE.json] [--json] [--quiet] [--print-config]\n"
        "\n"
        "Runs the experiment under each of its systems on the servers that are linked with the controller, "
        "and\n"
        "prints the comparison table, with the devices and transports that were really used: `distmind-real "
        "run\n"
        "--cluster`, by the name of its role. It waits for servers of the experiment that have not come "
        "yet.\n"
        "\n"
        "  --cluster FILE    the controller's address, its public key and this client's secret one:\n"
        "                    [cluster] controller, controller_key, key\n"
        "  --device D        which devices GPU servers open: cuda, host, or auto (default): cuda where there "
        "is one\n"
        "  --transport T     verbs (RDMA) or tcp; auto (default): the best that all servers have\n"
        "  --pace GBIT_S     limits each server's traffic\n"
        "  --images FOLDER   of packed images NAME.dmi of the models, at each server; bytes of others are "
        "generated\n"
        "  --share-gpus      several GPU servers may use one GPU\n"
        "  --metrics A       serve Prometheus metrics at http://A/metrics: [HOST:]PORT, loopback without "
        "HOST\n"
        "  --log LEVELS      error, warning (default), info or debug; of some domains another, as in\n"
        "                    info,control=debug\n"
        "  --log-format F    text (default) or json\n"
        "  --record FILE     notes what this client is told and does, in FILE.client, for `distmind-sim "
        "rerun`\n"
        "  --system A,B      only these systems (distmind, pipeswitch, ray, serverlessllm)\n" RUN_OPTIONS_HELP
        "\n"
        "Example:\n"
        "  distmind-real client experiments/real-quickstart.ini --cluster cluster.ini\n",
};
