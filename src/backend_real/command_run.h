/* `run`: an experiment under one or more systems on real processes. */
#ifndef DM_REAL_COMMAND_RUN_H
#define DM_REAL_COMMAND_RUN_H

#include "harness/command.h"

extern const struct command command_run;

/* The same of a cluster that is there, by --cluster alone. */
gboolean command_run_client(int argc, char **argv, GError **error);

#endif
