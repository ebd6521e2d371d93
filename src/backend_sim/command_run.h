/* `run`: an experiment under one or more systems in the simulator. */
#ifndef DM_COMMAND_RUN_H
#define DM_COMMAND_RUN_H

#include "harness/command.h"

extern const struct command command_run;

#endif
