/* scripts/device_bundle.sh: what it says at its end, and that a bundle runs from where it lies. */
#include "../harness/temporary.h"

#include <criterion/criterion.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <string.h>

#define SCRIPT DM_SOURCE_DIR "/scripts/device_bundle.sh"

struct ended {
  int status; /* exit status */
  char *out, *err;
};
typedef struct ended Ended; /* for g_auto */

static void ended_clear(Ended *ended)
{
  g_free(ended->out);
  g_free(ended->err);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Ended, ended_clear)

/* In `folder`, with `first` before the folders of PATH. */
static Ended ended_of(const char *folder, const char *first, const char *program, const char *a,
                      const char *b)
{
  const char *argv[] = {program, a, b, NULL};
  g_autofree char *path = g_strconcat(first, ":", g_getenv("PATH"), NULL);
  g_auto(GStrv) environment = g_environ_setenv(g_get_environ(), "PATH", path, TRUE);
  g_autoptr(GError) error = NULL;
  Ended ended = {0};
  int status;
  cr_assert(g_spawn_sync(folder, (char **)argv, environment, G_SPAWN_DEFAULT, NULL, NULL, &ended.out,
                         &ended.err, &status, &error),
            "%s", error ? error->message : "");
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

static void need(const char *tool)
{
  g_autofree char *path = g_find_program_in_path(tool);
  if (!path)
    cr_skip_test("no %s", tool);
}

/* The program under test, bundled into FOLDER/bundle, with what is in FOLDER/tools before other tools. */
static Ended bundle(const char *folder)
{
  g_autofree char *self = g_file_read_link("/proc/self/exe", NULL), *tests = g_path_get_dirname(self);
  g_autofree char *build = g_path_get_dirname(tests), *tools = g_build_filename(folder, "tools", NULL);
  g_autofree char *program = g_build_filename(build, "distmind-real", NULL);
  g_autofree char *to = g_build_filename(folder, "bundle", NULL);
  return ended_of(folder, tools, SCRIPT, program, to);
}

/* The last two lines: what the bundle needs, and how it is run. Returns the version that it needs as M * 1000
 * + N. */
static int expect_last_lines(const Ended *bundled, const char *prefix)
{
  int megabytes, major, minor;
  const char *needs = strstr(bundled->out, "/bundle: ");
  cr_assert(needs && bundled->status == 0, "status %d: %s%s", bundled->status, bundled->out, bundled->err);
  cr_assert_eq(sscanf(needs, "/bundle: %d MB, needs %*[A-Za-z_ ]%d.%d", &megabytes, &major, &minor), 3, "%s",
               needs);
  cr_assert(strstr(needs, prefix), "%s", needs);
  cr_assert(megabytes > 0 && strstr(needs, " or newer\n"), "%s", needs);
  cr_assert(g_str_has_suffix(bundled->out,
                             "\ncopy it to the other machine; there: bundle/run distmind-real doctor\n"),
            "%s", bundled->out);
  return major * 1000 + minor;
}

static int own_version(void)
{
  int major, minor;
  cr_assert_eq(sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor), 2);
  return major * 1000 + minor;
}

/* From another folder, as the last line says. */
Test(bundle, runs_as_its_last_line_says)
{
  need("ldd");
  need("objdump");
  char *folder = temporary_folder();
  g_autofree char *run = g_build_filename(folder, "bundle/run", NULL);
  g_auto(Ended) bundled = bundle(folder);
  int needs = expect_last_lines(&bundled, " MB, needs GLIBC_");
  cr_assert(needs >= 2000 && needs <= own_version(), "needs %d, runs on %d", needs, own_version());
  g_auto(Ended) help = ended_of("/", folder, run, "distmind-real", "--help");
  cr_assert(help.status == 0 && strstr(help.out, "\n  doctor "), "status %d: %s%s", help.status, help.out,
            help.err);
  g_auto(Ended) doctor = ended_of("/", folder, run, "distmind-real", "doctor");
  cr_assert(doctor.status <= 1 && strlen(doctor.out) > 100 && *doctor.err == '\0', "status %d: %s%s",
            doctor.status, doctor.out, doctor.err);
  g_auto(Ended) none = ended_of("/", folder, run, "distmind-reel", NULL);
  cr_assert(none.status == 2 && strstr(none.err, "programs: distmind-real\n"), "status %d: %s", none.status,
            none.err);
  temporary_folder_remove(folder);
}

/* Then the version of this machine is what is known to be enough. */
Test(bundle, is_made_without_objdump)
{
  need("ldd");
  char *folder = temporary_folder();
  g_autofree char *tools = g_build_filename(folder, "tools", NULL);
  g_autofree char *objdump = g_build_filename(tools, "objdump", NULL);
  cr_assert_eq(g_mkdir(tools, 0700), 0);
  cr_assert(g_file_set_contents(objdump, "#!/bin/sh\nexit 127\n", -1, NULL) && g_chmod(objdump, 0700) == 0);
  g_auto(Ended) bundled = bundle(folder);
  cr_assert_eq(expect_last_lines(&bundled, " MB, needs glibc "), own_version());
  temporary_folder_remove(folder);
}
