/* Commands of both programs (`run`, `trace`, `model`, `report`, `plot`, `explain`): one file each, one line in the
 * registry of command.c. A command gets its own arguments (argv[0] is the command's name) and returns the exit status. */
#ifndef DM_COMMAND_H
#define DM_COMMAND_H

#include <glib.h>

struct command {
  const char *name;
  const char *summary; /* one line of the program's --help */
  /* Returns FALSE with error set: main prints it in one line and maps the code to the exit status. */
  gboolean (*run)(int argc, char **argv, GError **error);
};

extern const struct command command_trace, command_model, command_report, command_plot, command_explain;

/* Dispatches argv[1] over `own` (NULL-terminated; a program's own commands) and the harness's; prints errors as one line
 * on standard error and returns the exit status: 0, 1, 2 or 130. */
int command_main(int argc, char **argv, const struct command *const *own);

/* The program's version, from git or the VERSION file at build time. */
const char *program_version(void);

#endif
