/* Names of files and folders that hold odd bytes, and streams that are closed: every process opens the same
 * files, and what is printed is text. */
#include "cluster.h"
#include "outcome_check.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Without blanks, at which lab_start cuts its words. The last byte of the second begins a character of four.
 */
static const char *const names[] = {"it's\n\"100%s\"\\", "\xff\xf0", "\x1b[31m;#|"};

/* The parameters of the lab's profile: a tensor a layer. */
static void write_safetensors(const ClusterLab *lab)
{
  g_autoptr(GString) header = g_string_new("{"), file = g_string_new(NULL);
  guint64 at = 0;
  for (int i = 0; i < 12; i++) {
    guint64 bytes = 20000 + 4 * (guint64)i;
    g_string_append_printf(header,
                           "%s\"layer%02d.w\":{\"dtype\":\"F32\",\"shape\":[%u],\"data_offsets\":[%u,%u]}",
                           i > 0 ? "," : "", i, (guint)(bytes / 4), (guint)at, (guint)(at + bytes));
    at += bytes;
  }
  g_string_append_c(header, '}');
  guint64 length = GUINT64_TO_LE(header->len);
  g_string_append_len(file, (const char *)&length, sizeof length);
  g_string_append_len(file, header->str, (gssize)header->len);
  g_string_set_size(file, file->len + at);
  memset(file->str + file->len - at, 1, at);
  g_autofree char *path = lab_path(lab, "m.safetensors");
  cr_assert(g_file_set_contents(path, file->str, (gssize)file->len, NULL));
}

static void expect_good(struct process *process, const char *what)
{
  cr_assert(process_await(process, 60), "%s: it does not end", what);
  g_autofree char *log = process_log(process);
  cr_assert_eq(process->status, 0, "%s: status %d: %s", what, process->status, log);
}

/* Each line of the log is a JSON object's, and valid. */
static void expect_json_lines(const struct process *process)
{
  g_autofree char *log = process_log(process);
  g_auto(GStrv) lines = g_strsplit(g_strchomp(log), "\n", -1);
  cr_assert(g_utf8_validate(log, -1, NULL));
  for (char **line = lines; *line; line++)
    cr_assert(g_str_has_prefix(*line, "{\"time\":") && g_str_has_suffix(*line, "}"), "%s", *line);
}

Test(odd, files_and_folders_have_any_names)
{
  for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
    const char *name = names[i];
    g_autoptr(ClusterLab) lab = lab_new();
    lab_experiment(lab,
                   "workload.duration_s=0.2;experiment.systems=distmind\\;serverlessllm;cluster.ssd_gb=1");
    write_safetensors(lab);
    g_autofree char *plain = lab_path(lab, "experiment.ini"), *leaf = g_strconcat(name, ".ini", NULL);
    g_autofree char *odd = lab_path(lab, leaf), *folder = lab_path(lab, name);
    cr_assert(g_rename(plain, odd) == 0 && g_mkdir(folder, 0700) == 0);
    expect_good(lab_start(lab, "model pack m.safetensors -o %s/tiny-0.dmi", name), "pack");
    struct process *run =
        lab_start(lab,
                  "run %s.ini --local --device host --transport tcp --quiet --out %s.db --record %s.rec "
                  "--images %s --ssd-folder %s --log info --log-format json",
                  name, name, name, name, name);
    expect_good(run, "run");
    expect_json_lines(run);
    g_autofree char *out = process_out(run);
    char *results = strstr(out, "\nresults: "); /* the last line is the name as it is */
    cr_assert_not_null(results);
    *results = '\0';
    cr_assert(g_utf8_validate(out, -1, NULL) && !strchr(out, '\x1b') && strstr(out, "packed in"), "%s", out);
    g_autofree char *recording = g_strconcat(folder, ".rec", NULL),
                    *ssd = g_strconcat(folder, "/gpu-server-0", NULL);
    cr_assert(g_file_test(recording, G_FILE_TEST_IS_REGULAR) && g_file_test(ssd, G_FILE_TEST_IS_DIR));
  }
}

/* A server that cannot begin its file would be waited for. */
Test(odd, a_recording_needs_room_for_names)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "");
  g_autofree char *name = g_strnfill(235, 'r');
  struct process *run =
      lab_start(lab, "run experiment.ini --local --device host --out x.db --record %s", name);
  cr_assert(process_await(run, 20), "it does not end");
  g_autofree char *log = process_log(run);
  const char *newline = strchr(log, '\n');
  cr_assert(run->status == 2 && strstr(log, "expected a name of at most 229 bytes, found 235") && newline &&
                !newline[1],
            "status %d: %s", run->status, log);
}

/* A name cannot begin a line of its own, nor reach the terminal. */
Test(odd, logs_are_lines)
{
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "workload.duration_s=0.1");
  g_autofree char *plain = lab_path(lab, "experiment.ini"), *odd = lab_path(lab, "x\nlie\x1b[2J\xff.ini");
  cr_assert_eq(g_rename(plain, odd), 0);
  struct process *run =
      lab_start(lab, "run x\nlie\x1b[2J\xff.ini --local --device host --quiet --out x.db --log info");
  expect_good(run, "run");
  g_autofree char *log = process_log(run);
  cr_assert(strstr(log, "x\\x0alie\\x1b[2J\\xff.ini under distmind"), "%s", log);
  g_auto(GStrv) lines = g_strsplit(g_strchomp(log), "\n", -1);
  for (char **line = lines; *line; line++)
    cr_assert(g_ascii_isdigit(**line) && g_utf8_validate(*line, -1, NULL) && !strchr(*line, '\x1b'), "%s",
              *line);
}

/* The words of a shell, with $0 for the program. */
static int shell(const ClusterLab *lab, const char *script, char **err)
{
  g_autofree char *self = g_file_read_link("/proc/self/exe", NULL), *tests = g_path_get_dirname(self);
  g_autofree char *build = g_path_get_dirname(tests),
                  *program = g_build_filename(build, "distmind-real", NULL);
  g_autofree char *folder = lab_path(lab, "");
  char *argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, (char *)script, program, NULL};
  int status;
  cr_assert(g_spawn_sync(folder, argv, NULL, 0, NULL, NULL, NULL, err, &status, NULL));
  cr_assert(WIFEXITED(status), "%s: ended by signal %d", script, WTERMSIG(status));
  return WEXITSTATUS(status);
}

/* A socket or a recording that took the number of a closed stream would get what is logged. */
Test(odd, streams_may_be_closed)
{
  static const struct {
    const char *streams;
    int status;
  } cases[] = {{"2>&-", 0}, {"<&- 2>&-", 0}, {"<&- >&- 2>&-", 1}, {"2>/dev/full", 0}, {">/dev/full 2>&-", 1}};
  g_autoptr(ClusterLab) lab = lab_new();
  lab_experiment(lab, "workload.duration_s=0.1");
  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autofree char *err = NULL;
    g_autofree char *script =
        g_strconcat("exec \"$0\" run experiment.ini --local --device host --transport tcp --force "
                    "--out x.db --record x.rec --log debug --json ",
                    cases[i].streams, NULL);
    int status = shell(lab, script, &err);
    cr_assert_eq(status, cases[i].status, "%s: status %d: %s", cases[i].streams, status, err);
    cr_assert_gt(outcome_ask(lab, "x.db", "SELECT requests FROM run WHERE ended IS NOT NULL"), 0);
  }
}
