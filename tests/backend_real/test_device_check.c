/* The program that checks a device (tests/device), on the host device: whole, and with arguments that are
 * wrong.
 */
#include <criterion/criterion.h>
#include <string.h>

#include <glib.h>

struct outcome {
  int status;
  char *out, *err;
};

/* Beside the folder of this program: build/tests/backend_real, build/device_check. */
static struct outcome run(const char *words)
{
  g_autofree char *self = g_file_read_link("/proc/self/exe", NULL), *tests = g_path_get_dirname(self);
  g_autofree char *build = g_path_get_dirname(tests),
                  *line = g_strdup_printf("%s/device_check %s", build, words);
  g_auto(GStrv) argv = g_strsplit(line, " ", -1);
  struct outcome outcome = {0};
  g_autoptr(GError) error = NULL;
  int wait_status;
  cr_assert(g_spawn_sync(NULL, argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, &outcome.out, &outcome.err,
                         &wait_status, &error),
            "%s: %s", line, error ? error->message : "");
  outcome.status = g_spawn_check_wait_status(wait_status, &error) ? 0 : error->code;
  return outcome;
}

static void outcome_clear(struct outcome *outcome)
{
  g_free(outcome->out);
  g_free(outcome->err);
}

Test(device_check, host_device_passes)
{
  struct outcome outcome = run("--device host --gpus 2 --mb 16 --quick");
  cr_assert_eq(outcome.status, 0, "%s%s", outcome.out, outcome.err);
  cr_assert(strstr(outcome.out, "GPU 1: host: "));
  cr_assert(strstr(outcome.out, "GPU 1: wrong checksums: 10 of 10 refused"));
  cr_assert(strstr(outcome.out, "GB/s together"));
  cr_assert(g_str_has_suffix(outcome.out, "\nall checks passed\n"), "%s", outcome.out);
  cr_assert_str_eq(outcome.err, "");
  outcome_clear(&outcome);
}

Test(device_check, bad_usage)
{
  static const char *const words[] = {"--device gpu", "--gpus 0", "--gpus x", "--mb 15", "--what", "more"};
  for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
    struct outcome outcome = run(words[i]);
    cr_assert_eq(outcome.status, 2, "%s", words[i]);
    cr_assert_str_eq(outcome.out, "");
    cr_assert(g_str_has_prefix(outcome.err, "device_check: ") && strchr(outcome.err, '\n')[1] == 0, "%s",
              outcome.err);
    outcome_clear(&outcome);
  }
}
