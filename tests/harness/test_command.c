/* The dispatcher: exit statuses, one line for an error, help that teaches. */
#include "harness/command.h"
#include "core/error.h"
#include "fixture.h"
#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static gboolean fail_with(int argc, char **argv, GError **error)
{
  int code = argc > 1 ? (int)g_ascii_strtoll(argv[1], NULL, 10) : 0;
  g_set_error(error, DM_ERROR, code, "line one\nline two");
  return FALSE;
}

static const struct command command_fail = {
    .name = "fail", .summary = "fails", .run = fail_with, .help = "fail CODE\n\nFails with that code.\n"};
static const struct command *const own[] = {&command_fail, NULL};

struct answer {
  int status;
  char *out, *err;
};

/* Runs a command line in a process of its own. */
static struct answer answer_of(const char *line)
{
  char *folder = fixture_folder();
  g_autofree char *out = g_build_filename(folder, "out", NULL), *err = g_build_filename(folder, "err", NULL);
  pid_t child = fork();
  if (child == 0) {
    g_auto(GStrv) argv = g_strsplit(line, " ", -1);
    if (!freopen(out, "w", stdout) || !freopen(err, "w", stderr))
      _exit(99);
    int status = command_main((int)g_strv_length(argv), argv, own);
    fflush(NULL);
    _exit(status);
  }
  struct answer answer;
  waitpid(child, &answer.status, 0);
  cr_assert(WIFEXITED(answer.status), "%s crashed", line);
  answer.status = WEXITSTATUS(answer.status);
  answer.out = fixture_read(out);
  answer.err = fixture_read(err);
  fixture_remove(folder);
  return answer;
}

static void expect(const char *line, int status, const char *out, const char *err)
{
  struct answer answer = answer_of(line);
  cr_assert_eq(answer.status, status, "%s: exit %d\n%s%s", line, answer.status, answer.out, answer.err);
  cr_assert(strstr(answer.out, out), "%s printed\n%s", line, answer.out);
  cr_assert(strstr(answer.err, err), "%s complained\n%s", line, answer.err);
  if (status == 0) {
    cr_assert_str_eq(answer.err, "");
  } else {
    cr_assert(g_str_has_prefix(answer.err, "distmind-sim: "), "%s", answer.err);
    cr_assert_eq(strchr(answer.err, '\n') - answer.err, (long)strlen(answer.err) - 1, "not one line: %s",
                 answer.err);
    cr_assert_str_eq(answer.out, "");
  }
  g_free(answer.out);
  g_free(answer.err);
}

Test(command, exit_status_is_the_errors)
{
  expect("build/distmind-sim fail 0", 2, "", "line one line two");
  expect("distmind-sim fail 1", 1, "", "line one line two");
  expect("distmind-sim fail 2", 130, "", "line one line two");
}

Test(command, bad_usage_names_what_is_near)
{
  expect("distmind-sim", 2, "", "--help");
  expect("distmind-sim repor", 2, "", "nearest is \"report\"");
  expect("distmind-sim --frob", 2, "", "unknown option \"--frob\"");
  expect("distmind-sim report", 2, "", "expected one FILE.db");
  expect("distmind-sim report a b", 2, "", "unexpected argument \"b\"");
  expect("distmind-sim report --frob a", 2, "", "--frob");
  expect("distmind-sim report --json --decisions a", 2, "", "exclude each other");
  expect("distmind-sim report /nonexistent.db", 2, "", "/nonexistent.db: no such file");
  expect("distmind-sim plot /nonexistent.db found", 2, "", "expected -o");
  expect("distmind-sim explain x.db -5", 2, "", "explain");
  expect("distmind-sim explain x.db five", 2, "", "found \"five\"");
  expect("distmind-sim explain x.db 99999999999999999999999", 2, "", "expected the number of a request");
}

Test(command, help_teaches)
{
  expect("distmind-sim --help", 0, "report", "");
  expect("distmind-sim help", 0, "exit status", "");
  expect("distmind-sim report --help", 0, "examples:", "");
  expect("distmind-sim help plot", 0, "latency-cdf", "");
  expect("distmind-sim explain x --help", 0, "--system S", "");
  expect("distmind-sim fail --help", 0, "usage: distmind-sim fail CODE", "");
  expect("distmind-sim --version", 0, program_version(), "");
}

Test(command, works_on_a_database)
{
  char *folder = fixture_folder();
  g_autofree char *path = fixture_database(folder, (struct fixture_options){0});
  g_autofree char *report = g_strdup_printf("distmind-sim report %s", path);
  expect(report, 0, "49.50*", "");
  g_autofree char *json = g_strdup_printf("distmind-sim report --json %s", path);
  struct report_run runs[FIXTURE_SYSTEMS];
  fixture_runs(runs);
  g_autofree char *wanted = report_json(runs, FIXTURE_SYSTEMS);
  expect(json, 0, wanted, "");
  g_autofree char *decisions = g_strdup_printf("distmind-sim report %s --decisions", path);
  expect(decisions, 0, "distmind preempt  inference needs the GPU                                   1\n", "");
  g_autofree char *explain = g_strdup_printf("distmind-sim explain %s 500 --system=distmind", path);
  expect(explain, 0, "request 500 of distmind", "");
  g_autofree char *figure = g_strdup_printf("distmind-sim plot %s found -o %s/f.svg", path, folder);
  expect(figure, 0, "", "");
  fixture_remove(folder);
}

Test(command, options_stop_at_two_dashes)
{
  gboolean flag = FALSE;
  const GOptionEntry entries[] = {{"flag", 0, 0, G_OPTION_ARG_NONE, &flag, NULL, NULL}, {NULL}};
  char *argv[] = {(char[]){"x"}, (char[]){"a"}, (char[]){"--flag"}, (char[]){"--"}, (char[]){"--b"}, NULL};
  g_auto(GStrv) rest = command_options(5, argv, entries, NULL);
  cr_assert(flag);
  cr_assert_eq(g_strv_length(rest), 2);
  cr_assert_str_eq(rest[1], "--b");
}

Test(command, full_disk_is_a_failure)
{
  pid_t child = fork();
  if (child == 0) {
    char *argv[] = {(char[]){"distmind-sim"}, (char[]){"--help"}, NULL};
    if (!freopen("/dev/full", "w", stdout) || !freopen("/dev/null", "w", stderr))
      _exit(99);
    _exit(command_main(2, argv, own));
  }
  int status;
  waitpid(child, &status, 0);
  cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}
