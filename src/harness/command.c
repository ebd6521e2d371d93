/* The dispatcher of commands, `--help`, `--version`, and the one line that an error becomes; see command.h.
 */
#include "harness/command.h"
#include "core/error.h"
#include "harness/nearest.h"
#include "harness/shown.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The harness's commands, the same in both programs: one line a command. */
static const struct command *const harness_commands[] = {
    &command_trace, &command_model, &command_report, &command_plot, &command_explain, NULL,
};

static const struct command *find_command(const GPtrArray *commands, const char *name)
{
  for (guint i = 0; i < commands->len; i++) {
    const struct command *command = commands->pdata[i];
    if (strcmp(command->name, name) == 0)
      return command;
  }
  return NULL;
}

/* Commands of the program and of the harness, in the order of --help, elements not owned. A program's own
 * stands for the harness's of the same name. */
static GPtrArray *all_commands(const struct command *const *own)
{
  GPtrArray *commands = g_ptr_array_new();
  for (; own && *own; own++)
    g_ptr_array_add(commands, (gpointer)*own);
  for (const struct command *const *command = harness_commands; *command; command++)
    if (!find_command(commands, (*command)->name))
      g_ptr_array_add(commands, (gpointer)*command);
  return commands;
}

static void print_help(const GPtrArray *commands)
{
  const char *program = g_get_prgname();
  printf("usage: %s COMMAND [ARGUMENT]...\n\n"
         "Compares serving systems for deep learning under one load, and shows why one wins.\n\ncommands:\n",
         program);
  for (guint i = 0; i < commands->len; i++) {
    const struct command *command = commands->pdata[i];
    printf("  %-13s %s\n", command->name, command->summary);
  }
  printf("\n  %s COMMAND --help   what a command takes, with examples\n  %s --version        the version\n",
         program, program);
  const struct command *run = find_command(commands, "run");
  if (run && run->first)
    printf("\nstart here:\n"
           "  %s run %s --out first.db\n"
           "  %s report first.db\n"
           "  %s plot first.db latency-cdf -o latency.png\n",
           program, run->first, program, program);
  fputs("\nexit status: 0 done, 1 a run failed, 2 bad usage or bad input, 130 interrupted (what was done is "
        "kept)\n",
        stdout);
}

static gboolean unknown_command(const GPtrArray *commands, const char *name, GError **error)
{
  g_autofree const char **names = g_new0(const char *, commands->len + 1);
  for (guint i = 0; i < commands->len; i++)
    names[i] = ((const struct command *)commands->pdata[i])->name;
  const char *kind = name[0] == '-' ? "option" : "command";
  const char *nearest = nearest_word(name, names);
  if (name[0] == '-' || !nearest)
    return input_error(error, NULL, 0, "unknown %s \"%s\"; `%s --help` shows the commands", kind, name,
                       g_get_prgname());
  return input_error(error, NULL, 0, "unknown %s \"%s\", nearest is \"%s\"; `%s --help` shows all", kind,
                     name, nearest, g_get_prgname());
}

static gboolean is_help(const char *argument)
{
  return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static gboolean asks_for_help(int argc, char **argv)
{
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (is_help(argv[i]))
      return TRUE;
  return FALSE;
}

static gboolean run_command(const struct command *command, int argc, char **argv, GError **error)
{
  if (!command->help || !asks_for_help(argc, argv))
    return command->run(argc, argv, error);
  printf("usage: %s %s", g_get_prgname(), command->help);
  return TRUE;
}

static gboolean dispatch(int argc, char **argv, const GPtrArray *commands, GError **error)
{
  if (argc < 2)
    return input_error(error, NULL, 0, "expected a command; `%s --help` shows them", g_get_prgname());
  const char *name = argv[1];
  const struct command *command = find_command(commands, name);
  if (command)
    return run_command(command, argc - 1, argv + 1, error);
  if (strcmp(name, "help") == 0 && argc > 2 && (command = find_command(commands, argv[2])) != NULL) {
    char *help[] = {argv[2], (char[]){"--help"}, NULL};
    return run_command(command, 2, help, error);
  }
  if (is_help(name) || strcmp(name, "help") == 0)
    print_help(commands);
  else if (strcmp(name, "--version") == 0)
    printf("%s %s\n", g_get_prgname(), program_version());
  else
    return unknown_command(commands, name, error);
  return TRUE;
}

/* A stream that is closed would lend its number to the next file that is opened, a database perhaps, and what
 * is printed would be written there. It is opened the wrong way round, so that its use fails as before. A
 * file that may not grow is a failure like a full disk, not a signal that ends the process. */
static void prepare_streams(void)
{
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
      return; /* no /dev/null: the streams above this one would get its number */
  signal(SIGXFSZ, SIG_IGN);
}

/* A table that a full disk cut short is no success. What failed earlier has left no number. */
static gboolean flush_output(GError **error)
{
  gboolean failed = ferror(stdout) != 0;
  if (fflush(stdout) == 0 && !failed)
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "standard output: %s",
              failed ? "cannot be written" : g_strerror(errno));
  return FALSE;
}

static void print_error(const char *program, GError *error)
{
  g_strdelimit(error->message, "\r\n\t", ' ');
  g_autofree char *name = shown_text(program), *text = shown_text(error->message);
  fprintf(stderr, "%s: %s\n", name, text);
}

static int exit_status(const GError *error)
{
  if (error->domain == G_OPTION_ERROR)
    return 2;
  if (error->domain != DM_ERROR)
    return 1;
  return error->code == DM_ERROR_INPUT ? 2 : error->code == DM_ERROR_INTERRUPTED ? 130 : 1;
}

int command_main(int argc, char **argv, const struct command *const *own)
{
  prepare_streams();
  g_autofree char *program = g_path_get_basename(argc > 0 ? argv[0] : "distmind");
  g_set_prgname(program);
  g_autoptr(GPtrArray) commands = all_commands(own);
  g_autoptr(GError) error = NULL;
  if (dispatch(argc, argv, commands, &error) && flush_output(&error))
    return 0;
  fflush(stdout);
  print_error(program, error);
  return exit_status(error);
}
