/* `run` in the simulator. */
#include "backend_sim/command_run.h"

#include "backend_sim/run.h"
#include "backend_sim/sim.h"

static gboolean can_fall_silent(const struct experiment *e)
{
  for (uint32_t i = 0; i < e->events; i++)
    if (e->event[i].kind == EVENT_FAIL)
      return TRUE;
  return FALSE;
}

const struct backend sim_backend = {
    .name = "sim",
    .capabilities = SIM_CAPABILITIES,
    .needs_heartbeats = can_fall_silent,
    .run = run_system,
};

static gboolean run_command(int argc, char **argv, GError **error)
{
  return backend_run_command(&sim_backend, argc, argv, error);
}

static const char help[] =
    "run EXPERIMENT.ini [--system A,B] [--set SECTION.KEY=VALUE]... [--trace FILE] [--seed N]\n"
    "           [--out FILE.db] [--force] [--timeline FILE.json] [--json] [--quiet] [--print-config]\n"
    "\n"
    "Runs the experiment under each of its systems, in virtual time, and prints the comparison table. Every\n"
    "request, the usage series and the figures go into a result database (report, plot and explain read "
    "it).\n"
    "\n"
    "  --system A,B      only these systems (ideal, ideal-shared, distmind, pipeswitch, mps, ray, "
    "serverlessllm)\n" RUN_OPTIONS_HELP "\n"
    "Examples:\n"
    "  distmind-sim run experiments/quickstart.ini\n"
    "  distmind-sim run experiments/quickstart.ini --system distmind,ray --set models.resnet152=64 --out "
    "/tmp/x.db\n"
    "  distmind-sim run experiments/quickstart.ini --set output.decisions=all --out a.db && distmind-sim "
    "explain a.db 17\n";

const struct command command_run = {
    .name = "run",
    .summary = "run an experiment under its serving systems and compare them",
    .run = run_command,
    .help = help,
    .first = "experiments/quickstart.ini",
};
