/* `run`: an experiment under one or more systems in the simulator. */
#ifndef DM_COMMAND_RUN_H
#define DM_COMMAND_RUN_H

#include "harness/backend.h"

extern const struct backend sim_backend;
extern const struct command command_run, command_validate;

#endif
