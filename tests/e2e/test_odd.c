/* Names and texts that hold odd bytes, and surroundings that lack what programs take for granted: what is
 * asked for is done, or refused in one line. */
#include "program.h"
#include "sweeps.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHORT_RUN "--system", "ideal", "--set", "workload.duration_s=0.2"

/* Names that some reader on the way takes for more than a name. */
static const char *const names[] = {
    "a b",           "it's",  "q\"uote",     "back\\slash", "new\nline",          "tab\tname",  "100%s%n",
    "semi;c",        "-dash", "esc\x1b[31m", "\xff\xfe",    "caf\xc3\xa9",        "$(touch x)", "`touch x`",
    "|touch pwned;", "~",     "file:x",      ":memory:",    "file:x?mode=memory", "none",       "a#b"};

/* The name behind "./": what begins with a dash would be an option. */
static char *argument_of(const char *name)
{
  return g_strconcat("./", name, NULL);
}

static void expect_done(const ProgramOutcome *outcome, const char *what)
{
  cr_assert(outcome->status == 0 && *outcome->err == '\0', "%s: status %d: %s", what, outcome->status,
            outcome->err);
}

static void expect_alone(const char *folder, const char *const *files, const char *what)
{
  guint count = 0;
  g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
  for (const char *name = g_dir_read_name(dir); name; name = g_dir_read_name(dir), count++)
    cr_assert(g_strv_contains(files, name), "%s left behind: %s", what, name);
  cr_assert_eq(count, g_strv_length((char **)files), "%s: %u files", what, count);
}

/* gnuplot takes a file's name that begins with "|" for a command, and a database's "file:" is an address for
 * SQLite. */
Test(odd, files_have_the_names_that_were_given)
{
  for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
    g_autoptr(Folder) folder = folder_new();
    sweeps_write_experiment(folder);
    g_autofree char *database = g_strconcat(names[i], ".db", NULL),
                    *figure = g_strconcat(names[i], ".svg", NULL);
    g_autofree char *argument = argument_of(database);
    g_autoptr(ProgramOutcome) run = program_run(folder, "run", "x.ini", SHORT_RUN, "--out", database, NULL);
    expect_done(run, database);
    g_autoptr(ProgramOutcome) report = program_run(folder, "report", argument, NULL);
    expect_done(report, database);
    g_autoptr(ProgramOutcome) plot = program_run(folder, "plot", argument, "found", "-o", figure, NULL);
    expect_done(plot, figure);
    expect_alone(folder, (const char *const[]){"x.ini", database, figure, NULL}, names[i]);
  }
}

Test(odd, a_database_may_be_called_like_an_address)
{
  static const char *const databases[] = {"file:x.db", ":memory:", "file:x.db?mode=memory"};
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  for (gsize i = 0; i < G_N_ELEMENTS(databases); i++) {
    g_autoptr(ProgramOutcome) run =
        program_run(folder, "run", "x.ini", SHORT_RUN, "--out", databases[i], NULL);
    expect_done(run, databases[i]);
    g_autoptr(ProgramOutcome) report = program_run(folder, "report", databases[i], NULL);
    expect_done(report, databases[i]);
    g_autoptr(ProgramOutcome) sweep =
        program_run(folder, "sweep", "x.ini", SHORT_RUN, "--vary", "experiment.seed=1,2", "--quiet",
                    "--force", "--out", databases[i], NULL);
    expect_done(sweep, databases[i]);
  }
  expect_alone(folder, (const char *const[]){"x.ini", databases[0], databases[1], databases[2], NULL},
               "addresses");
}

/* Of all that can be done with an experiment in a folder of that name. */
Test(odd, folders_may_be_called_anything)
{
  for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
    g_autoptr(Folder) folder = folder_new();
    g_autofree char *inner = g_build_filename(folder, names[i], NULL), *path = argument_of(names[i]);
    cr_assert_eq(g_mkdir(inner, 0700), 0);
    folder_write(inner, "own.ini", "[hardware]\ngpu = h200\n");
    folder_write(inner, "t.csv", "arrival_s\n0\n0.1\n");
    folder_write(inner, "x.ini",
                 "[experiment]\nsystems = ideal\n[cluster]\nhardware = own.ini\ngpu_servers = 1;1*own.ini\n"
                 "[models]\nresnet152 = 2\n[workload]\nkind = trace\ntrace = t.csv\n"
                 "[events]\nmore = at 0.05 add gpu_server 1 of own.ini\n");
    g_autofree char *file = g_build_filename(path, "x.ini", NULL),
                    *printed = g_build_filename(path, "p.ini", NULL);
    g_autoptr(ProgramOutcome) run = program_run(folder, "run", file, "--json", "--out", "x.db", NULL);
    expect_done(run, names[i]);
    g_autoptr(ProgramOutcome) config = program_run(folder, "run", file, "--print-config", NULL);
    expect_done(config, names[i]);
    folder_write(inner, "p.ini", config->out);
    g_autoptr(ProgramOutcome) again = program_run(folder, "run", printed, "--json", "--out", "y.db", NULL);
    expect_done(again, names[i]);
    g_autofree char *first = sweeps_without_wall_s(run->out), *second = sweeps_without_wall_s(again->out);
    cr_assert_str_eq(first, second, "%s: what --print-config prints is another experiment", names[i]);
  }
}

/* Results of an experiment without --out lie in results/, whatever it is called. */
Test(odd, an_experiment_may_have_any_name)
{
  static const struct {
    const char *name, *file;
  } cases[] = {{"none", "none.db"},
               {"../../up", "_._.._up.db"},
               {".hidden", "_hidden.db"},
               {"a/b", "a_b.db"},
               {"it's \"100%\"", "it's \"100%\".db"}};
  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autoptr(Folder) folder = folder_new();
    sweeps_write_experiment(folder);
    g_autofree char *set = g_strconcat("experiment.name=", cases[i].name, NULL);
    g_autoptr(ProgramOutcome) run = program_run(folder, "run", "x.ini", SHORT_RUN, "--set", set, NULL);
    expect_done(run, cases[i].name);
    cr_assert(g_str_has_prefix(run->out, cases[i].name), "%s", run->out);
    g_autofree char *path = g_build_filename(folder, "results", cases[i].file, NULL);
    cr_assert(g_file_test(path, G_FILE_TEST_EXISTS), "%s: %s", cases[i].name, run->out);
  }
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autofree char *name = g_strnfill(300, 'n'), *set = g_strconcat("experiment.name=", name, NULL);
  g_autoptr(ProgramOutcome) sweep = program_run(folder, "sweep", "x.ini", SHORT_RUN, "--vary",
                                                "experiment.seed=1", "--quiet", "--set", set, NULL);
  expect_done(sweep, "a long name");
}

/* gnuplot reads a tic's label as a format of numbers. */
Test(odd, values_of_an_axis_are_labels_as_they_stand)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autoptr(ProgramOutcome) sweep = program_run(folder, "sweep", "x.ini", SHORT_RUN, "--quiet", "--out",
                                                "x.db", "--vary", "experiment.name=100%zz,a%%b,it's", NULL);
  expect_done(sweep, "sweep");
  g_autoptr(ProgramOutcome) plot = program_run(folder, "plot", "x.db", "sweep", "-o", "x.svg", NULL);
  expect_done(plot, "plot");
  g_autofree char *path = g_build_filename(folder, "x.svg", NULL), *text = NULL;
  cr_assert(g_file_get_contents(path, &text, NULL, NULL));
  cr_assert(strstr(text, "100%zz") && strstr(text, "a%%b") && strstr(text, "it's"), "labels changed");
}

static const struct {
  const char *words, *value, *message;
} refused[] = {
    {"run x.ini --timeline", "a#b.json", "--timeline: expected UTF-8 text without \"#\""},
    {"run x.ini --timeline", "a\nb",
     "--timeline: expected UTF-8 text without \"#\" or control characters, found \"a\\x0ab\""},
    {"run x.ini --trace", "\xff.csv",
     "--trace: expected UTF-8 text without \"#\" or control characters, found \"\\xff.csv\""},
    {"run x.ini --system", "a\tb", "--system: expected UTF-8 text"},
    {"run x.ini --seed", "#", "--seed: expected UTF-8 text"},
    {"sweep x.ini --vary experiment.seed=1 --trace", "a#", "--trace: expected UTF-8 text"},
    {"sweep x.ini --vary", "experiment.seed=1#", "--vary: expected KEY=A,B"},
    {"plan x.ini --hold slo_attainment>=1 --vary", "experiment.seed=\x80", "--vary: expected KEY=A,B"},
    {"validate x.ini --profiles", "#", "--profiles: expected UTF-8 text"},
    {"run x.ini --set", "models.a b=1", "expected a key of letters, digits"},
    {"run x.ini --set", "events.[x]=at 1 fail gpu_server 0", "expected a key of letters, digits"},
    {"run", "esc\x1b[2J\xff.ini", "esc\\x1b[2J\\xff.ini: cannot open"},
    {"run x.ini", "--\xff", "--\\xff"},
};

Test(odd, what_cannot_be_is_refused_by_the_name_that_was_typed)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  for (gsize i = 0; i < G_N_ELEMENTS(refused); i++) {
    g_autofree char *line = g_strconcat(refused[i].words, " ?", NULL);
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    char **last = words + g_strv_length(words) - 1;
    g_free(*last);
    *last = g_strdup(refused[i].value);
    g_autoptr(ProgramOutcome) outcome = program_finish(program_start(folder, (const char *const *)words));
    expect_refused(outcome, refused[i].message, NULL);
    cr_assert(g_utf8_validate(outcome->err, -1, NULL));
  }
  g_autofree char *deep = g_strnfill(2100, 'p');
  g_autoptr(ProgramOutcome) longer = program_run(folder, "run", "x.ini", "--trace", deep, NULL);
  expect_refused(longer, "--trace: expected at most 2048 bytes, found 2100", NULL);
  g_autofree char *name = g_strnfill(240, 'n');
  const char *over = "expected a name of at most 239 bytes, found 240";
  g_autoptr(ProgramOutcome) room = program_run(folder, "run", "x.ini", "--out", name, NULL);
  expect_refused(room, over, NULL);
  g_autoptr(ProgramOutcome) sweep =
      program_run(folder, "sweep", "x.ini", "--vary", "experiment.seed=1", "--out", name, NULL);
  expect_refused(sweep, over, NULL);
  g_autofree char *left = folder_list(folder);
  cr_assert_str_eq(left, "x.ini", "left behind: %s", left);
  g_autofree char *leaf = g_strnfill(240, 'q'), *far = g_build_filename(folder, leaf, leaf, "x.db", NULL);
  g_autofree char *parent = g_path_get_dirname(far);
  cr_assert_eq(g_mkdir_with_parents(parent, 0700), 0);
  g_autoptr(ProgramOutcome) limit = program_run(folder, "run", "x.ini", SHORT_RUN, "--out", far, NULL);
  expect_refused(limit, "SQLite takes no path of over", NULL);
}

Test(odd, a_trace_may_be_called_anything_and_hold_any_names)
{
  g_autoptr(Folder) folder = folder_new();
  folder_write(folder, "t.csv",
               "gr\xc3\xb6\xc3\x9f"
               "e,m\n0,a\n1,\"b\x1b\"\n");
  g_autoptr(ProgramOutcome) convert =
      program_run(folder, "trace", "convert", "t.csv", "-o", "-o.csv", "--time-column",
                  "gr\xc3\xb6\xc3\x9f"
                  "e",
                  "--model-column", "m", NULL);
  expect_done(convert, "a column beyond ASCII");
  g_autoptr(ProgramOutcome) info = program_run(folder, "trace", "info", "--", "-o.csv", NULL);
  expect_done(info, "a name like an option");
  cr_assert_not(strchr(info->out, '\x1b'), "%s", info->out);
}

/* What a database holds of paths are bytes: the hardware file lies in a folder whose name is no UTF-8. */
Test(odd, validate_finds_what_the_run_found)
{
  g_autoptr(Folder) folder = folder_new();
  g_autofree char *inner = g_build_filename(folder, "\xff", NULL),
                  *database = g_build_filename(folder, "x.db", NULL);
  cr_assert_eq(g_mkdir(inner, 0700), 0);
  sweeps_write_experiment(inner);
  folder_write(inner, "own.ini", "[hardware]\ngpu = h200\n");
  g_autoptr(ProgramOutcome) run =
      program_run(folder, "run", "\xff/x.ini", SHORT_RUN, "--set", "cluster.gpu_servers=1*own.ini", "--quiet",
                  "--out", "x.db", NULL);
  expect_done(run, "run");
  sqlite3 *db;
  cr_assert_eq(sqlite3_open(database, &db), SQLITE_OK);
  cr_assert_eq(sqlite3_exec(db, "UPDATE run SET backend = 'real'", NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
  g_autoptr(ProgramOutcome) validate = program_run(folder, "validate", "x.db", "--json", NULL);
  expect_done(validate, "validate");
}

/* --- surroundings */

/* The words of a shell, with $0 for the program. */
static ProgramOutcome *shell(const char *folder, const char *script)
{
  const char *program = g_getenv("DISTMIND_SIM");
  char *argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, (char *)script,
                  (char *)(program ? program : DM_SOURCE_DIR "/build/distmind-sim"), NULL};
  ProgramOutcome *outcome = g_new0(ProgramOutcome, 1);
  int status;
  cr_assert(g_spawn_sync(folder, argv, NULL, 0, NULL, NULL, &outcome->out, &outcome->err, &status, NULL));
  cr_assert(WIFEXITED(status), "%s: ended by signal %d", script, WTERMSIG(status));
  outcome->status = WEXITSTATUS(status);
  return outcome;
}

static const struct {
  const char *script;
  int status;
  const char *error; /* all that the program says, but for its name */
} streams[] = {
    {"exec \"$0\" run x.ini --system ideal --quiet --force --out x.db >&-", 1,
     "standard output: Bad file descriptor\n"},
    {"exec \"$0\" run x.ini --system ideal --quiet --force --out x.db <&- >&-", 1,
     "standard output: Bad file descriptor\n"},
    {"exec \"$0\" run x.ini --system ideal --force --out x.db --timeline x.json 2>&- <&-", 0, ""},
    {"exec \"$0\" run x.ini --system ideal --force --out x.db >/dev/full", 1,
     "standard output: No space left on device\n"},
    {"exec \"$0\" run x.ini --print-config >/dev/full", 1, "standard output: cannot be written\n"},
    {"exec \"$0\" trace --help >/dev/full", 1, "cannot write to standard output\n"},
};

Test(odd, streams_that_are_closed_or_full)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  for (gsize i = 0; i < G_N_ELEMENTS(streams); i++) {
    g_autoptr(ProgramOutcome) outcome = shell(folder, streams[i].script);
    cr_assert(outcome->status == streams[i].status && g_str_has_suffix(outcome->err, streams[i].error) &&
                  (*streams[i].error != '\0') == (*outcome->err != '\0'),
              "%s: status %d: %s", streams[i].script, outcome->status, outcome->err);
  }
  g_autoptr(ProgramOutcome) report = program_run(folder, "report", "x.db", NULL);
  expect_done(report, "what was stored without streams");
}

/* Nobody writes to it. */
Test(odd, a_named_pipe_is_not_waited_for, .timeout = 60)
{
  static const char *const lines[] = {"run p",
                                      "run x.ini --set cluster.hardware=p",
                                      "run x.ini --set models.profile_dir=d",
                                      "sweep p --vary experiment.seed=1",
                                      "trace info p",
                                      "trace synth p -o t.csv",
                                      "rerun p",
                                      "report p",
                                      "model show ./d/resnet152.csv",
                                      "model show gpt2 --hardware ./p"};
  g_autoptr(Folder) folder = folder_new();
  g_autofree char *pipe = g_build_filename(folder, "p", NULL), *inner = g_build_filename(folder, "d", NULL);
  g_autofree char *profile = g_build_filename(inner, "resnet152.csv", NULL);
  sweeps_write_experiment(folder);
  cr_assert(mkfifo(pipe, 0600) == 0 && g_mkdir(inner, 0700) == 0 && mkfifo(profile, 0600) == 0);
  for (gsize i = 0; i < G_N_ELEMENTS(lines); i++) {
    g_auto(GStrv) words = g_strsplit(lines[i], " ", -1);
    g_autoptr(ProgramOutcome) outcome = program_finish(program_start(folder, (const char *const *)words));
    expect_refused(outcome, NULL);
  }
}

/* A limit on the size of files stands for a disk that is full. */
Test(odd, a_full_disk_leaves_nothing)
{
  static const char *const scripts[] = {
      "ulimit -f 8; exec \"$0\" run x.ini --system ideal --quiet --out y.db",
      "ulimit -f 8; exec \"$0\" sweep x.ini --system ideal --vary experiment.seed=1 --quiet --out y.db "
      "--force",
      "ulimit -f 2; exec \"$0\" plot x.db found -o y.png",
      "ulimit -f 2; exec \"$0\" plot x.db found -o y.svg",
      "ulimit -f 2; exec \"$0\" trace synth s.ini -o y.csv",
  };
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  folder_write(folder, "s.ini",
               "[trace]\nkind = poisson\nduration_s = 100\nrate_rps = 20\n[models]\nresnet152 = 2\n");
  g_autoptr(ProgramOutcome) run =
      program_run(folder, "run", "x.ini", SHORT_RUN, "--quiet", "--out", "x.db", NULL);
  expect_done(run, "x.db");
  for (gsize i = 0; i < G_N_ELEMENTS(scripts); i++) {
    g_autoptr(ProgramOutcome) outcome = shell(folder, scripts[i]);
    const char *newline = strchr(outcome->err, '\n');
    cr_assert((outcome->status == 1 || outcome->status == 2) && newline, "%s: status %d: %s", scripts[i],
              outcome->status, outcome->err);
    g_autofree char *left = folder_list(folder);
    cr_assert_str_eq(left, "s.ini x.db x.ini", "%s left behind: %s", scripts[i], left);
  }
}

/* A stand-in that keeps what it is told: Slurm puts numbers where the output's name has "%". */
Test(odd, slurm_is_told_names_as_they_stand)
{
  g_autoptr(Folder) folder = folder_new();
  sweeps_write_experiment(folder);
  g_autofree char *plain = g_build_filename(folder, "x.ini", NULL),
                  *dash = g_build_filename(folder, "-x.ini", NULL);
  cr_assert_eq(g_rename(plain, dash), 0);
  folder_write(folder, "sbatch",
               "#!/bin/sh\nfor word; do :; done\nprintf '%s\\n' \"$@\" >told\ncp \"$word\" script\necho 7\n");
  g_autofree char *sbatch = g_build_filename(folder, "sbatch", NULL);
  cr_assert_eq(g_chmod(sbatch, 0700), 0);
  g_autofree char *path = g_strconcat(folder, ":", g_getenv("PATH"), NULL);
  g_setenv("PATH", path, TRUE);
  g_autoptr(ProgramOutcome) sweep =
      program_run(folder, "sweep", "--vary", "experiment.seed=1", "--system", "ideal", "--slurm", "--detach",
                  "--out", "50%a.db", "--", "-x.ini", NULL);
  cr_assert_eq(sweep->status, 0, "%s", sweep->err);
  g_autofree char *told_path = g_build_filename(folder, "told", NULL), *told = NULL;
  g_autofree char *script_path = g_build_filename(folder, "script", NULL), *script = NULL;
  cr_assert(g_file_get_contents(told_path, &told, NULL, NULL) &&
            g_file_get_contents(script_path, &script, NULL, NULL));
  cr_assert(strstr(told, "/50%%a.db.tasks/slurm-%a.out\n"), "%s", told);
  cr_assert(strstr(script, "'./-x.ini'"), "%s", script);
}
