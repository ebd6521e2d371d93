/* `rerun`: the core, fed again with what a real run was told, must do again what it did; see rerun.h. */
#include "backend_sim/command_rerun.h"

#include <stdio.h>

#include "backend_sim/rerun.h"
#include "core/error.h"

static void tell(const char *line)
{
  printf("%s\n", line);
}

static gboolean rerun_all(char **files, gboolean quiet, GError **error)
{
  struct rerun_totals totals = {0};
  for (char **file = files; *file; file++)
    if (!rerun_file(*file, &totals, quiet ? NULL : tell, error))
      return FALSE;
  if (totals.inputs == 0)
    return input_error(error, files[0], 0, "expected what an actor was told, found none");
  printf("same decisions: %" G_GUINT64_FORMAT " inputs, %" G_GUINT64_FORMAT " outputs of %u actors",
         totals.inputs, totals.outputs, totals.actors);
  if (totals.cut > 0)
    printf("; %u of them cut off", totals.cut);
  printf("\n");
  return TRUE;
}

static gboolean run_command(int argc, char **argv, GError **error)
{
  gboolean quiet = FALSE;
  const GOptionEntry options[] = {
      {"quiet", 0, 0, G_OPTION_ARG_NONE, &quiet, NULL, NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL},
  };
  g_auto(GStrv) files = command_options(argc, argv, options, error);
  return files && command_arguments(argv, files, 1, G_MAXUINT, "FILE...", error) &&
         rerun_all(files, quiet, error);
}

const struct command command_rerun = {
    .name = "rerun",
    .summary = "feed a recorded real run to the core again: it must decide the same",
    .run = run_command,
    .help = "rerun FILE... [--quiet]\n"
            "\n"
            "FILE is what `distmind-real run --record FILE` wrote: every input of every actor (start, "
            "messages, timers,\n"
            "completions, lost peers) with its clock, and all that the actor did on it. The inputs are fed "
            "to the core\n"
            "again, actor by actor, and what it does is compared with what it did, in order and to the last "
            "byte. Says\n"
            "how much was the same, or names the first difference: actor, time, input, what was expected, "
            "what was\n"
            "found. The experiment is in FILE; its profiles and hardware files must be those of the run.\n"
            "\n"
            "  --quiet           no line for each actor\n"
            "\n"
            "A server that was killed is compared as far as its recording goes. Servers of other machines "
            "keep their\n"
            "own files (`gpu-server --record FILE`): name them all.\n"
            "\n"
            "exit status: 0 the same, 1 something differs, 2 FILE is damaged or none of these\n"
            "\n"
            "Example:\n"
            "  distmind-real run experiments/real-quickstart.ini --local --record quick.rec\n"
            "  distmind-sim rerun quick.rec\n",
};
