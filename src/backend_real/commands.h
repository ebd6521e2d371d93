/* The commands of distmind-real beside the harness's own: one file each, one line in commands.c. */
#ifndef DM_REAL_COMMANDS_H
#define DM_REAL_COMMANDS_H

#include "harness/command.h"

extern const struct command command_client, command_keygen, command_real_model, command_calibrate,
    command_doctor;

extern const struct command *const real_commands[]; /* NULL-terminated */

/* --pace as it was given (NULL: not at all): *gbit_s, 0 = not paced. FALSE + DM_ERROR_INPUT. */
gboolean pace_option(const char *text, double *gbit_s, GError **error);

#endif
