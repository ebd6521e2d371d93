/* The command `rerun`. */
#ifndef DM_COMMAND_RERUN_H
#define DM_COMMAND_RERUN_H

#include "harness/command.h"

extern const struct command command_rerun;

#endif
