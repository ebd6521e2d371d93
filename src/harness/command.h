/* Commands of both programs (`run`, `trace`, `model`, `report`, `plot`, `explain`): one file each, one line
 * in the registry of command.c. A command gets its own arguments (argv[0] is the command's name) and returns
 * the exit status. */
#ifndef DM_COMMAND_H
#define DM_COMMAND_H

#include <glib.h>

struct command {
  const char *name;
  const char *summary; /* one line of the program's --help */
  /* Returns FALSE with error set: main prints it in one line and maps the code to the exit status. */
  gboolean (*run)(int argc, char **argv, GError **error);
  /* What `PROGRAM NAME --help` prints after "usage: PROGRAM ", with examples. NULL: the command itself sees
   * --help. */
  const char *help;
  /* Of `run`: what a newcomer gives it first. NULL elsewhere. */
  const char *first;
};

extern const struct command command_trace, command_model, command_report, command_plot, command_explain;

/* Dispatches argv[1] over `own` (NULL-terminated; a program's own commands) and the harness's; prints errors
 * as one line on standard error and returns the exit status: 0, 1, 2 or 130. */
int command_main(int argc, char **argv, const struct command *const *own);

/* Parses a command's own options (long and short, anywhere before a "--"), whose variables entries point to;
 * texts are best taken as G_OPTION_ARG_FILENAME, which no locale converts, and so are numbers, for
 * command_integer: GLib's own would read 010 as eight, and leave no value for "not given". Returns the other
 * arguments, without the command's name, NULL-terminated; NULL + DM_ERROR_INPUT. Free with g_strfreev. */
char **command_options(int argc, char **argv, const GOptionEntry *entries, GError **error);
/* What an option --NAME was given as; text NULL: not at all, and *value stays. 0 <= least.
 * FALSE + DM_ERROR_INPUT "--NAME: expected a whole number from LEAST to MOST, found …". */
gboolean command_integer(const char *name, const char *text, gint least, gint most, gint *value,
                         GError **error);
/* DM_ERROR_INPUT "NAME: expected ARGUMENTS; `PROGRAM NAME --help` shows how" unless count lies in [least,
 * most]. */
gboolean command_arguments(char **argv, char **arguments, guint least, guint most, const char *expected,
                           GError **error);

/* Before long work: can files be made in the folder? DM_ERROR_INPUT names `path`, which is to be there. */
gboolean command_can_write_in(const char *folder, const char *path, GError **error);

/* The program's version, from git or the VERSION file at build time. */
const char *program_version(void);

#endif
