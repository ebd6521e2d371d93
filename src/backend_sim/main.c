/* distmind-sim: the simulator's program. */
#include "backend_sim/command_rerun.h"
#include "backend_sim/command_run.h"
#include "backend_sim/command_sweep.h"
#include "harness/command.h"

int main(int argc, char **argv)
{
  static const struct command *const own[] = {&command_run,      &command_sweep, &command_plan,
                                              &command_validate, &command_rerun, NULL};
  return command_main(argc, argv, own);
}
