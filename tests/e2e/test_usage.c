/* What a user meets first: help, the version, and wrong usage. */
#include "program.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

Test(usage, version_is_one_line_with_the_number)
{
  g_autoptr(Folder) folder = folder_new();
  g_autofree char *version = NULL;
  cr_assert(g_file_get_contents(DM_SOURCE_DIR "/VERSION", &version, NULL, NULL));
  g_autoptr(ProgramOutcome) outcome = program_run(folder, "--version", NULL);
  cr_assert_eq(outcome->status, 0);
  cr_assert(strstr(outcome->out, g_strstrip(version)), "no %s in: %s", version, outcome->out);
  cr_assert_eq(strchr(outcome->out, '\n') - outcome->out + 1, (ptrdiff_t)strlen(outcome->out));
}

Test(usage, help_lists_the_commands_and_each_has_its_own)
{
  static const char *const commands[] = {"run",   "sweep",  "plan", "trace",
                                         "model", "report", "plot", "explain"};
  g_autoptr(Folder) folder = folder_new();
  g_autoptr(ProgramOutcome) all = program_run(folder, "--help", NULL);
  cr_assert_eq(all->status, 0);
  for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
    cr_expect(strstr(all->out, commands[i]), "--help does not name %s", commands[i]);
    g_autoptr(ProgramOutcome) own = program_run(folder, commands[i], "--help", NULL);
    cr_expect_eq(own->status, 0, "%s --help: exit status %d", commands[i], own->status);
    cr_expect(strstr(own->out, commands[i]), "%s --help does not say how it is called", commands[i]);
    cr_expect_str_empty(own->err);
  }
}

Test(usage, help_of_run_names_every_option)
{
  static const char *const options[] = {"--system", "--set",      "--trace", "--seed",  "--out",
                                        "--force",  "--timeline", "--json",  "--quiet", "--print-config"};
  g_autoptr(Folder) folder = folder_new();
  g_autoptr(ProgramOutcome) outcome = program_run(folder, "run", "--help", NULL);
  for (gsize i = 0; i < G_N_ELEMENTS(options); i++)
    cr_expect(strstr(outcome->out, options[i]), "run --help does not name %s", options[i]);
}

static void expect_named(const char *command, const char *const *options)
{
  g_autoptr(Folder) folder = folder_new();
  g_autoptr(ProgramOutcome) outcome = program_run(folder, command, "--help", NULL);
  for (; *options; options++)
    cr_expect(strstr(outcome->out, *options), "%s --help does not name %s", command, *options);
  g_auto(GStrv) lines = g_strsplit(outcome->out, "\n", -1);
  for (char **line = lines; *line; line++)
    cr_expect_leq(g_utf8_strlen(*line, -1), 130, "%s --help: a long line: %s", command, *line);
}

Test(usage, help_of_what_draws_names_every_option)
{
  static const char *const plot[] = {"-o", "--x", "--y", NULL};
  static const char *const validate[] = {"--hardware", "--profiles", "--system", "--set",
                                         "--json",     "--plot",     NULL};
  expect_named("plot", plot);
  expect_named("validate", validate);
}

Test(usage, help_of_sweep_and_plan_names_every_option)
{
  static const char *const sweep[] = {"--vary",          "--system", "--set",   "--trace",  "--seed",
                                      "--repeat",        "--out",    "--force", "--jobs",   "--json",
                                      "--quiet",         "--slurm",  "--merge", "--detach", "--share",
                                      "--slurm-options", NULL};
  static const char *const plan[] = {"--vary", "--hold",  "--most",  "--plot", "--system",
                                     "--set",  "--trace", "--seed",  "--out",  "--force",
                                     "--jobs", "--json",  "--quiet", NULL};
  expect_named("sweep", sweep);
  expect_named("plan", plan);
}

Test(usage, a_wrong_call_is_refused_in_one_line)
{
  g_autoptr(Folder) folder = folder_new();
  g_autoptr(ProgramOutcome) command = program_run(folder, "rum", NULL);
  expect_refused(command, "rum", "run", NULL);
  g_autoptr(ProgramOutcome) option = program_run(folder, "run", "--no-such-option", NULL);
  expect_refused(option, "--no-such-option", NULL);
  g_autoptr(ProgramOutcome) nothing = program_run(folder, "run", NULL);
  expect_refused(nothing, "run", NULL);
  g_autoptr(ProgramOutcome) missing = program_run(folder, "report", "no-such.db", NULL);
  expect_refused(missing, "no-such.db", NULL);
  g_autofree char *left = folder_list(folder);
  cr_assert_str_empty(left, "left behind: %s", left);
}

/* By the name under which they are shipped, in any folder; one of that name that is there comes first. */
Test(usage, shipped_experiments_are_found_from_anywhere)
{
  g_autoptr(Folder) folder = folder_new();
  g_autoptr(ProgramOutcome) shipped =
      program_run(folder, "run", "experiments/quickstart.ini", "--print-config", NULL);
  cr_assert_eq(shipped->status, 0, "%s", shipped->err);
  cr_assert(strstr(shipped->out, "name = quickstart"), "%s", shipped->out);
  g_autoptr(ProgramOutcome) run = program_run(folder, "run", "experiments/quickstart.ini", "--quiet", "--out",
                                              "here.db", "--set", "workload.limit=50", NULL);
  cr_assert_eq(run->status, 0, "%s", run->err);
  g_autofree char *own = g_build_filename(folder, "experiments", NULL);
  cr_assert_eq(g_mkdir(own, 0700), 0);
  folder_write(folder, "experiments/quickstart.ini", "[experiment]\nname = my own\nsystem = ideal\n");
  g_autoptr(ProgramOutcome) mine =
      program_run(folder, "run", "experiments/quickstart.ini", "--print-config", NULL);
  expect_refused(mine, "experiments/quickstart.ini:3", NULL);
  g_autoptr(ProgramOutcome) none = program_run(folder, "run", "experiments/quickestart.ini", NULL);
  expect_refused(none, "experiments/quickestart.ini", NULL);
}
