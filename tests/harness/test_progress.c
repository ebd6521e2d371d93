/* The progress bar. */
#include "harness/progress.h"
#include "core/units.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Test(progress, line_shows_time_rate_and_what_is_left)
{
  g_autofree char *line = progress_line("distmind", 15 * NS_PER_S, 60 * NS_PER_S, 3000000, 2, 100);
  cr_assert_str_eq(line,
                   "distmind [#######.......................]  25%  15.0 / 60.0 s  1.50 M req/s  6 s left");
  g_autofree char *unknown = progress_line("mps", 15 * NS_PER_S, 0, 3000, 2, 100);
  cr_assert_str_eq(unknown, "mps 15.0 s  1500 req/s");
  g_autofree char *beyond = progress_line("mps", 61 * NS_PER_S, 60 * NS_PER_S, 0, 120, 100);
  cr_assert(strstr(beyond, "100%") && strstr(beyond, "0 s left"));
}

Test(progress, share_line_shows_part_and_what_is_left)
{
  g_autofree char *line = progress_share_line("pack", 0.25, 2, 100);
  cr_assert_str_eq(line, "pack [#######.......................]  25%  6 s left");
  g_autofree char *none = progress_share_line("pack", 0, 2, 100);
  cr_assert_str_eq(none, "pack [..............................]   0%");
  g_autofree char *beyond = progress_share_line("pack", 1.5, 2, 100);
  cr_assert(strstr(beyond, "] 100%  0 s left"));
}

Test(progress, line_fits_any_width)
{
  for (unsigned width = 1; width < 120; width++) {
    g_autofree char *share = progress_share_line("pack", 0.5, 7200, width);
    cr_assert_leq(strlen(share), width);
    g_autofree char *line = progress_line("serverlessllm", 1, 3600 * NS_PER_S, 1, 7200, width);
    cr_assert_leq(strlen(line), width);
  }
}

/* Standard error made a terminal, for what follows; returns the other end. Where the machine has no
 * pseudo-terminals (a container without /dev/pts) the test is skipped aloud. */
static int terminal_as_stderr(int *saved)
{
  int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  gboolean usable = master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0;
  const char *name = usable ? ptsname(master) : NULL;
  int slave = name ? open(name, O_RDWR | O_NOCTTY) : -1;
  if (slave < 0) {
    fprintf(stderr, "SKIPPED: no pseudo-terminal: %s\n", g_strerror(errno));
    cr_skip_test("no pseudo-terminal (/dev/pts)");
  }
  *saved = dup(STDERR_FILENO);
  dup2(slave, STDERR_FILENO);
  close(slave);
  return master;
}

static char *drawn(int quiet)
{
  int saved, master = terminal_as_stderr(&saved);
  struct progress *progress = progress_new(NS_PER_S, "ideal", quiet);
  for (int64_t i = 0; i < 100000; i++)
    progress_update(progress, i * 10000, (uint64_t)i);
  progress_free(progress);
  char text[4096];
  size_t length = 0;
  for (ssize_t more; (more = read(master, text + length, sizeof text - 1 - length)) > 0;)
    length += (size_t)more;
  text[length] = '\0';
  dup2(saved, STDERR_FILENO);
  close(saved);
  close(master);
  return g_strdup(text);
}

Test(progress, is_throttled_and_cleans_up_on_a_terminal)
{
  g_autofree char *text = drawn(FALSE);
  size_t draws = 0;
  for (const char *at = text; (at = strstr(at, "ideal")); at++)
    draws++;
  cr_assert(draws >= 1 && draws < 30, "%zu draws", draws);
  cr_assert(g_str_has_suffix(text, "\r\033[K"), "the bar is left on the screen");
}

Test(progress, is_silent_when_told)
{
  g_autofree char *text = drawn(TRUE);
  cr_assert_str_eq(text, "");
  progress_free(NULL);
}
