/* The roles of a cluster as commands. */
#ifndef DM_COMMAND_ROLE_H
#define DM_COMMAND_ROLE_H

#include "harness/command.h"

extern const struct command command_controller, command_gpu_server, command_memory_server;

#endif
