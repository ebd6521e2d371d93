/* Which lines are written at which level, and what stands in them. Each test reads its process's standard
 * error. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend_real/control_log.h"
#include "backend_real/log.h"
#include "core/error.h"

static int file = -1, kept;

static void capture(void)
{
  g_autofree char *name = NULL;
  file = g_file_open_tmp("distmind-log-XXXXXX", &name, NULL);
  cr_assert_geq(file, 0);
  unlink(name);
  kept = dup(STDERR_FILENO);
  dup2(file, STDERR_FILENO);
}

/* All that was written since. */
static char *captured(void)
{
  fflush(stderr);
  dup2(kept, STDERR_FILENO);
  off_t size = lseek(file, 0, SEEK_END);
  char *text = g_malloc0((gsize)size + 1);
  cr_assert_eq(pread(file, text, (size_t)size, 0), size);
  close(file);
  close(kept);
  return text;
}

static const char *const domains[] = {NULL, "control", "transport", "metrics", "GLib", "elsewhere"};

static void write_all(void)
{
  static const GLogLevelFlags levels[] = {G_LOG_LEVEL_CRITICAL, G_LOG_LEVEL_WARNING, G_LOG_LEVEL_MESSAGE,
                                          G_LOG_LEVEL_INFO, G_LOG_LEVEL_DEBUG};
  for (size_t d = 0; d < G_N_ELEMENTS(domains); d++)
    for (size_t l = 0; l < G_N_ELEMENTS(levels); l++)
      g_log(domains[d], levels[l], "<%s %d>", domains[d] ? domains[d] : "none", (int)l);
}

/* expected[d]: how many of the five levels of domain d are written, worst first. */
static void expect_levels(const char *levels, const int expected[6])
{
  g_autoptr(GError) error = NULL;
  g_log_set_always_fatal(G_LOG_FATAL_MASK);
  cr_assert(log_setup(levels, NULL, &error), "%s", error ? error->message : "");
  capture();
  write_all();
  g_autofree char *text = captured();
  for (int d = 0; d < 6; d++)
    for (int l = 0; l < 5; l++) {
      g_autofree char *line = g_strdup_printf("<%s %d>\n", domains[d] ? domains[d] : "none", l);
      cr_expect_eq(strstr(text, line) != NULL, l < expected[d], "%s: %s", levels, line);
    }
}

Test(log, error)
{
  expect_levels("error", (const int[]){1, 1, 1, 1, 1, 1});
}

Test(log, warning)
{
  expect_levels("warning", (const int[]){2, 2, 2, 2, 2, 2});
}

Test(log, info)
{
  expect_levels("info", (const int[]){4, 4, 4, 4, 4, 4});
}

Test(log, debug)
{
  expect_levels("debug", (const int[]){5, 5, 5, 5, 5, 5});
}

Test(log, by_domain)
{
  expect_levels("warning,control=debug,roles=info,transport=error,metrics=warning",
                (const int[]){4, 5, 1, 2, 2, 2});
}

Test(log, text_line)
{
  cr_assert(log_setup("info", "text", NULL));
  log_process(ACTOR(ACTOR_MEMORY_SERVER, 12));
  capture();
  g_log("transport", G_LOG_LEVEL_MESSAGE, "hello");
  g_autofree char *text = captured();
  g_autofree char *rest = g_strdup_printf(" info memory-server 12[%d] transport: hello\n", (int)getpid());
  cr_assert(g_regex_match_simple("^\\d\\d:\\d\\d:\\d\\d\\.\\d\\d\\d ", text, 0, 0), "%s", text);
  cr_assert_str_eq(text + strlen("00:00:00.000"), rest);
}

/* Any text is a string of JSON; the fields of the process and of the message stand beside it. */
Test(log, json_line)
{
  cr_assert(log_setup("info", "json", NULL));
  log_process(ACTOR(ACTOR_GPU_SERVER, 3));
  log_run(17);
  capture();
  control_log_peer(ACTOR(ACTOR_MEMORY_SERVER, 5), "says \"\n\x01\xff\"");
  log_run(0);
  g_log(NULL, G_LOG_LEVEL_WARNING, "plain");
  g_autofree char *text = captured();
  g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
  cr_assert_eq(g_strv_length(lines), 3, "%s", text);
  static const char *const first[] = {"\"level\":\"info\"", "\"domain\":\"control\"",
                                      "\"peer\":\"memory server 5\"", "\"run\":\"17\"",
                                      "says \\\"\\n\\u0001\xef\xbf\xbd\\\"\""};
  for (size_t i = 0; i < G_N_ELEMENTS(first); i++)
    cr_expect(strstr(lines[0], first[i]), "no %s in %s", first[i], lines[0]);
  cr_expect(strstr(lines[1], "\"level\":\"warning\""), "%s", lines[1]);
  cr_expect(strstr(lines[1], "\"message\":\"plain\"") &&
                strstr(lines[1], "\"role\":\"gpu-server\",\"index\":\"3\"}"),
            "%s", lines[1]);
  cr_expect_null(strstr(lines[1], "\"run\""), "%s", lines[1]);
}
