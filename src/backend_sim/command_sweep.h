/* `sweep`: an experiment over a product of settings; `plan`: the least value that will do. */
#ifndef DM_COMMAND_SWEEP_H
#define DM_COMMAND_SWEEP_H

#include "harness/command.h"

extern const struct command command_sweep, command_plan;

#endif
