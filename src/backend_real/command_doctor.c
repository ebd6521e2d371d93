/* `doctor`: what this machine has of what runs need, and what to do about what is missing. */
#include "backend_real/commands.h"
#include "backend_real/doctor.h"

static gboolean run_doctor(int argc, char **argv, GError **error)
{
  gboolean json = FALSE;
  const GOptionEntry entries[] = {{"json", 0, 0, G_OPTION_ARG_NONE, &json, NULL, NULL}, {NULL}};
  g_auto(GStrv) rest = command_options(argc, argv, entries, error);
  if (!rest || !command_arguments(argv, rest, 0, 0, "no argument", error))
    return FALSE;
  g_autoptr(Doctor) doctor = doctor_new_here();
  if (!json) {
    doctor_print(doctor, stdout);
    return TRUE;
  }
  g_autoptr(JsonWriter) writer = json_writer_new();
  doctor_json(doctor, writer);
  g_autofree char *text = json_writer_text(writer);
  fputs(text, stdout);
  return TRUE;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "what this machine has of what runs need, and what to do about what is missing",
    .run = run_doctor,
    .help =
        "doctor [--json]\n"
        "\n"
        "Looks at this machine and changes nothing: processors, memory and NUMA nodes; huge pages; limits "
        "on\n"
        "locked memory and open files; GPUs, and whether their memory can be exported for GPUDirect; RDMA\n"
        "devices with their state, GIDs and what they can do; how far each is from each GPU; which device,\n"
        "transport and RDMA devices `auto` takes. Under it, what is missing or risky, each with what to do.\n"
        "Run it as the user that will run servers, on each kind of machine: limits and rights are the "
        "user's.\n"
        "\n"
        "  --json   the same facts as one JSON object; what is unknown is null\n"
        "\n"
        "How to read it:\n"
        "  machine       \"0-7 of 0-15\": the processors that this process may use, of those that are "
        "online\n"
        "  GPUs          dma-buf yes: GPU memory can be registered with RDMA devices that can dma-buf too; "
        "then\n"
        "                [pipeline] path = gpudirect works\n"
        "  RDMA devices  MTU is the payload of a packet, reads are what a queue pair has under way; "
        "--rdma-device\n"
        "                takes the names under \"port\", --gid-index the numbers under \"GID\"\n"
        "  ways          from \"same switch\", where bytes do not reach the processor, to \"other NUMA "
        "node\"\n"
        "  what auto takes here   the RDMA devices by which peers are read that are reached from an address; "
        "of\n"
        "                these, a server of one GPU takes those nearest to it\n"
        "\n"
        "Exit status: 0, also where nothing is found; 2 bad usage.\n"
        "\n"
        "Examples:\n"
        "  distmind-real doctor\n"
        "  distmind-real doctor --json | jq '.advice'\n"
        "  systemd-run --uid=distmind --pipe -p LimitMEMLOCK=infinity distmind-real doctor\n",
};
