/* Runs tests that were built against tests/tsan/criterion: `PROGRAM [SUITE|NAME...]`, all tests without. Each
 * test in a process of its own; ends with a line like Criterion's own. A race that ThreadSanitizer reports
 * makes it exit with 66, which counts as a failure.
 *
 *   gcc -std=gnu17 -O1 -g -fsanitize=thread -c tests/tsan/locks.c tests/tsan/runner.c    (with -Itests/tsan)
 *   gcc -std=gnu17 -O1 -g @tests/tsan/flags -Itests/tsan -Isrc -D_GNU_SOURCE SOURCES TESTS locks.o runner.o
 */
#include <criterion/criterion.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAILED = 1, SKIPPED = 77 };

static struct tsan_test *first_test;
static int failures;

/* GLib's logger and allocator have locks of their own that are out of sight too. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
  return "race:g_log_writer_format_fields\nrace:tzset_internal\nrace:g_slice_*\n";
}

void tsan_test_add(struct tsan_test *test)
{
  struct tsan_test **at = &first_test;
  while (*at && (strcmp((*at)->suite, test->suite) < 0 ||
                 (strcmp((*at)->suite, test->suite) == 0 && strcmp((*at)->name, test->name) < 0)))
    at = &(*at)->next;
  test->next = *at;
  *at = test;
}

void tsan_fail(int fatal, const char *file, int line, const char *expression, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  fprintf(stderr, "%s:%d: not so: %s: ", file, line, expression);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
  if (fatal)
    _exit(FAILED);
}

void tsan_skip(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  _exit(SKIPPED);
}

static int run(const struct tsan_test *test)
{
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    test->run();
    exit(failures ? FAILED : 0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    return FAILED;
  return WIFEXITED(status) ? WEXITSTATUS(status) : FAILED;
}

static int chosen(const struct tsan_test *test, int count, char **names)
{
  for (int i = 0; i < count; i++)
    if (strcmp(test->suite, names[i]) == 0 || strcmp(test->name, names[i]) == 0)
      return 1;
  return count == 0;
}

int main(int argc, char **argv)
{
  int tested = 0, failing = 0;
  for (const struct tsan_test *test = first_test; test; test = test->next) {
    if (!chosen(test, argc - 1, argv + 1))
      continue;
    int status = run(test);
    const char *word = status == 0 ? "PASS" : status == SKIPPED ? "SKIP" : "FAIL";
    fprintf(stderr, "[%s] %s::%s\n", word, test->suite, test->name);
    tested += status != SKIPPED;
    failing += status != 0 && status != SKIPPED;
  }
  fprintf(stderr, "[====] Synthesis: Tested: %d | Passing: %d | Failing: %d | Crashing: 0 \n", tested,
          tested - failing, failing);
  return failing > 0;
}
