/* Files that commands write: one that is there is refused before any work, and replaced only with --force. */
#include "program.h"
#include "sweeps.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#define PRECIOUS "not to be lost\n"

static ProgramOutcome *run_words(const char *folder, const char *words)
{
  g_auto(GStrv) arguments = g_strsplit(words, " ", -1);
  return program_finish(program_start(folder, (const char *const *)arguments));
}

/* An experiment, a database, a trace and a trace's spec. */
static char *filled_folder(void)
{
  char *folder = folder_new();
  sweeps_write_experiment(folder);
  folder_write(folder, "t.csv", "arrival_s\n0\n0.5\n1\n");
  folder_write(folder, "spec.ini",
               "[trace]\nkind = poisson\nseed = 1\nduration_s = 5\nrate_rps = 5\n[models]\nresnet152 = 2\n");
  g_autoptr(ProgramOutcome) outcome = run_words(folder, "run x.ini --system ideal --out x.db --quiet");
  cr_assert_eq(outcome->status, 0, "%s", outcome->err);
  return folder;
}

static const struct {
  const char *words, *file;
} writers[] = {
    {"run x.ini --system ideal --quiet --out kept.db", "kept.db"},
    {"run x.ini --system ideal --quiet --out new.db --timeline kept.json", "kept.json"},
    {"run x.ini --system ideal --quiet --out new.db --set output.timeline=kept.json", "kept.json"},
    {"sweep x.ini --vary cluster.gpu_servers=1,2 --system ideal --quiet --out kept.db", "kept.db"},
    {"trace convert t.csv -o kept.csv", "kept.csv"},
    {"trace synth spec.ini -o kept.csv", "kept.csv"},
};

/* What is in the folder, but for what the commands themselves make. */
static void expect_kept(const char *folder, const char *file, const char *before, const char *words)
{
  g_autofree char *path = g_build_filename(folder, file, NULL), *text = NULL, *after = folder_list(folder);
  cr_assert(g_file_get_contents(path, &text, NULL, NULL));
  cr_assert_str_eq(text, PRECIOUS, "%s replaced it", words);
  cr_assert_str_eq(after, before, "%s left behind: %s", words, after);
}

Test(outputs, what_is_there_needs_force)
{
  g_autoptr(Folder) folder = filled_folder();
  for (gsize i = 0; i < G_N_ELEMENTS(writers); i++) {
    gboolean sweep = g_str_has_prefix(writers[i].words, "sweep");
    folder_write(folder, writers[i].file, PRECIOUS);
    g_autofree char *before = folder_list(folder);
    g_autoptr(ProgramOutcome) refused = run_words(folder, writers[i].words);
    /* A sweep goes on with its own database: it looks whose it is. */
    expect_refused(refused, writers[i].file, sweep ? "not a database" : "exists already", NULL);
    expect_kept(folder, writers[i].file, before, writers[i].words);
    g_autofree char *forced = g_strconcat(writers[i].words, " --force", NULL);
    g_autoptr(ProgramOutcome) done = run_words(folder, forced);
    cr_assert_eq(done->status, 0, "%s: %s", forced, done->err);
    g_autofree char *path = g_build_filename(folder, writers[i].file, NULL), *text = NULL;
    gsize length = 0;
    cr_assert(g_file_get_contents(path, &text, &length, NULL));
    cr_assert(length > 10 && strncmp(text, PRECIOUS, strlen(PRECIOUS)) != 0, "%s did not write", forced);
    g_unlink(path);
    g_autofree char *made = g_build_filename(folder, "new.db", NULL);
    g_unlink(made);
  }
}

/* The check comes first: none of the inputs is there. */
Test(outputs, before_any_input_is_read)
{
  static const char *const words[] = {"trace convert none.csv -o kept.csv",
                                      "trace synth none.ini -o kept.csv"};
  g_autoptr(Folder) folder = folder_new();
  folder_write(folder, "kept.csv", PRECIOUS);
  for (gsize i = 0; i < G_N_ELEMENTS(words); i++) {
    g_autoptr(ProgramOutcome) refused = run_words(folder, words[i]);
    expect_refused(refused, "kept.csv: exists already", "--force", NULL);
    expect_kept(folder, "kept.csv", "kept.csv", words[i]);
    g_autofree char *forced = g_strconcat(words[i], " --force", NULL);
    g_autoptr(ProgramOutcome) none = run_words(folder, forced);
    expect_refused(none, "none.", NULL);
    expect_kept(folder, "kept.csv", "kept.csv", forced);
  }
}

/* A figure can be drawn again from what it was drawn from. */
Test(outputs, figures_are_replaced)
{
  static const char *const words[] = {
      "plot x.db found -o kept.svg",
      "plan x.ini --vary cluster.gpu_servers=1,2 --hold requests>=1 --system ideal --quiet --out new.db "
      "--plot kept.svg"};
  g_autoptr(Folder) folder = filled_folder();
  g_autofree char *path = g_build_filename(folder, "kept.svg", NULL);
  for (gsize i = 0; i < G_N_ELEMENTS(words); i++) {
    g_autofree char *text = NULL;
    folder_write(folder, "kept.svg", PRECIOUS);
    g_autoptr(ProgramOutcome) done = run_words(folder, words[i]);
    cr_assert_eq(done->status, 0, "%s: %s", words[i], done->err);
    cr_assert(g_file_get_contents(path, &text, NULL, NULL));
    cr_expect(strstr(text, "<svg"), "%s did not write", words[i]);
  }
}

/* The rename at the end would fail after all the work, or take the place of what is no file. */
Test(outputs, no_folder_and_no_pipe_is_replaced)
{
  static const struct {
    const char *words, *message;
  } cases[] = {
      {"run x.ini --system ideal --force --out sub",
       "sub: expected the name of a file to write, found a folder"},
      {"run x.ini --system ideal --force --out new.db --timeline sub", "found a folder"},
      {"run x.ini --system ideal --force --out new.db --timeline none/t.json", "none/t.json: cannot write"},
      {"run x.ini --system ideal --force --out new.db --timeline ./new.db", "another name for each file"},
      {"run x.ini --system ideal --force --out=", "found \"\""},
      {"plan x.ini --vary cluster.gpu_servers=1,2 --hold requests>=1 --out new.db --plot x.ini/p.svg",
       "x.ini/p.svg: cannot write: Not a directory"},
      {"plot x.db found -o sub.svg", "found a folder"},
      {"sweep x.ini --vary cluster.gpu_servers=1,2 --system ideal --force --out sub", "found a folder"},
      {"plan x.ini --vary cluster.gpu_servers=1,2 --hold requests>=1 --force --out p.svg --plot p.svg",
       "another name for each file"},
      {"trace convert t.csv --force -o pipe",
       "pipe: expected the name of a file to write, found a device or pipe"},
  };
  g_autoptr(Folder) folder = filled_folder();
  static const char *const folders[] = {"sub", "sub.svg"};
  g_autofree char *pipe = g_build_filename(folder, "pipe", NULL);
  cr_assert_eq(mkfifo(pipe, 0600), 0);
  for (gsize i = 0; i < G_N_ELEMENTS(folders); i++) {
    g_autofree char *path = g_build_filename(folder, folders[i], NULL);
    cr_assert_eq(g_mkdir(path, 0700), 0);
  }
  g_autofree char *before = folder_list(folder);
  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autoptr(ProgramOutcome) outcome = run_words(folder, cases[i].words);
    expect_refused(outcome, cases[i].message, NULL);
    g_autofree char *after = folder_list(folder);
    cr_assert_str_eq(after, before, "%s left behind: %s", cases[i].words, after);
  }
  for (gsize i = 0; i < G_N_ELEMENTS(folders); i++) {
    g_autofree char *path = g_build_filename(folder, folders[i], NULL);
    g_rmdir(path);
  }
}
