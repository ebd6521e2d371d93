/* Runs tests that were built against tests/tsan/criterion: `PROGRAM [SUITE...]`, all suites without. Each
 * test in a process of its own, as many at once as there are processors; ends with a line like Criterion's
 * own. A race that ThreadSanitizer reports makes it exit with 66, which counts as a failure. */
#include <criterion/criterion.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FAILED = 1, SKIPPED = 77, TEST_LIMIT_S = 120 };

static struct tsan_test *first_test, *current;
static int failures;

/* GLib's logger and allocator take locks of their own that are out of sight too. ZeroMQ's threads hand
 * messages over by atomics of a library that is not instrumented: what it does itself says nothing; our use
 * of it, from one thread, is looked at all the same. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
  return "race:g_log_writer_format_fields\nrace:tzset_internal\nrace:g_slice_*\ncalled_from_lib:libzmq.so\n"
         "race:libzmq.so\ncalled_from_lib:libsodium.so\n";
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
  fprintf(stderr, "[SKIP] %s::%s: ", current->suite, current->name);
  va_start(args, format);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  _exit(SKIPPED);
}

static double seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void start(struct tsan_test *test)
{
  fflush(NULL);
  test->started = seconds();
  test->process = fork();
  if (test->process != 0)
    return;
  alarm(TEST_LIMIT_S);
  current = test;
  test->run();
  exit(failures ? FAILED : 0);
}

/* Waits until one ends; FAILED, SKIPPED or 0. */
static int finish_one(void)
{
  int status = 0;
  pid_t process = wait(&status);
  struct tsan_test *test = first_test;
  while (test && (process <= 0 || test->process != process))
    test = test->next;
  if (!test)
    return FAILED;
  int end = !WIFEXITED(status)                                           ? FAILED
            : WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == SKIPPED ? WEXITSTATUS(status)
                                                                         : FAILED;
  if (end != SKIPPED)
    fprintf(stderr, "[%s] %s::%s: (%.2fs)%s\n", end == 0 ? "PASS" : "FAIL", test->suite, test->name,
            seconds() - test->started, WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "");
  return end;
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
  long processors = sysconf(_SC_NPROCESSORS_ONLN), running = 0;
  int count[SKIPPED + 1] = {0};
  for (struct tsan_test *test = first_test; test; test = test->next) {
    if (!chosen(test, argc - 1, argv + 1))
      continue;
    if (running >= processors)
      count[finish_one()]++, running--;
    start(test);
    running++;
  }
  for (; running > 0; running--)
    count[finish_one()]++;
  fprintf(stderr, "[====] Synthesis: Tested: %d | Passing: %d | Failing: %d | Crashing: 0 \n",
          count[0] + count[FAILED], count[0], count[FAILED]);
  return count[FAILED] > 0;
}
