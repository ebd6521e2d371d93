/* Stands in for Criterion under ThreadSanitizer, which leaves no room for the shared arena that Criterion
 * maps at a fixed address: with -Itests/tsan before the system's headers, the same tests build against this,
 * and run one after the other in a process of their own each (runner.c). Only what those tests use. */
#ifndef DM_TSAN_CRITERION_H
#define DM_TSAN_CRITERION_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tsan_test {
  const char *suite, *name;
  void (*run)(void);
  struct tsan_test *next;
  int process; /* while it runs */
  double started;
};

void tsan_test_add(struct tsan_test *test);
/* Counts a failure and tells of it; abandons the test where fatal. */
void tsan_fail(int fatal, const char *file, int line, const char *expression, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void tsan_skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#define Test(SUITE, NAME, ...)                                                                               \
  static void SUITE##_##NAME##_test(void);                                                                   \
  __attribute__((constructor)) static void SUITE##_##NAME##_add(void)                                        \
  {                                                                                                          \
    static struct tsan_test test = {.suite = #SUITE, .name = #NAME, .run = SUITE##_##NAME##_test};           \
    tsan_test_add(&test);                                                                                    \
  }                                                                                                          \
  static void SUITE##_##NAME##_test(void)

#define TSAN_CHECK(FATAL, CONDITION, ...)                                                                    \
  do                                                                                                         \
    if (!(CONDITION))                                                                                        \
      tsan_fail(FATAL, __FILE__, __LINE__, #CONDITION, "" __VA_ARGS__);                                      \
  while (0)

#define cr_assert(CONDITION, ...)              TSAN_CHECK(1, CONDITION, __VA_ARGS__)
#define cr_expect(CONDITION, ...)              TSAN_CHECK(0, CONDITION, __VA_ARGS__)
#define cr_assert_not(C, ...)                  TSAN_CHECK(1, !(C), __VA_ARGS__)
#define cr_expect_not(C, ...)                  TSAN_CHECK(0, !(C), __VA_ARGS__)
#define cr_assert_null(P, ...)                 TSAN_CHECK(1, (P) == NULL, __VA_ARGS__)
#define cr_expect_null(P, ...)                 TSAN_CHECK(0, (P) == NULL, __VA_ARGS__)
#define cr_assert_not_null(P, ...)             TSAN_CHECK(1, (P) != NULL, __VA_ARGS__)
#define cr_expect_not_null(P, ...)             TSAN_CHECK(0, (P) != NULL, __VA_ARGS__)
#define cr_assert_eq(A, B, ...)                TSAN_CHECK(1, (A) == (B), __VA_ARGS__)
#define cr_expect_eq(A, B, ...)                TSAN_CHECK(0, (A) == (B), __VA_ARGS__)
#define cr_assert_neq(A, B, ...)               TSAN_CHECK(1, (A) != (B), __VA_ARGS__)
#define cr_expect_neq(A, B, ...)               TSAN_CHECK(0, (A) != (B), __VA_ARGS__)
#define cr_assert_lt(A, B, ...)                TSAN_CHECK(1, (A) < (B), __VA_ARGS__)
#define cr_expect_lt(A, B, ...)                TSAN_CHECK(0, (A) < (B), __VA_ARGS__)
#define cr_assert_leq(A, B, ...)               TSAN_CHECK(1, (A) <= (B), __VA_ARGS__)
#define cr_expect_leq(A, B, ...)               TSAN_CHECK(0, (A) <= (B), __VA_ARGS__)
#define cr_assert_gt(A, B, ...)                TSAN_CHECK(1, (A) > (B), __VA_ARGS__)
#define cr_expect_gt(A, B, ...)                TSAN_CHECK(0, (A) > (B), __VA_ARGS__)
#define cr_assert_geq(A, B, ...)               TSAN_CHECK(1, (A) >= (B), __VA_ARGS__)
#define cr_expect_geq(A, B, ...)               TSAN_CHECK(0, (A) >= (B), __VA_ARGS__)
#define cr_assert_float_eq(A, B, EPSILON, ...) TSAN_CHECK(1, fabs((A) - (B)) <= (EPSILON), __VA_ARGS__)
#define cr_expect_float_eq(A, B, EPSILON, ...) TSAN_CHECK(0, fabs((A) - (B)) <= (EPSILON), __VA_ARGS__)
#define cr_assert_str_eq(A, B, ...)            TSAN_CHECK(1, strcmp(A, B) == 0, __VA_ARGS__)
#define cr_expect_str_eq(A, B, ...)            TSAN_CHECK(0, strcmp(A, B) == 0, __VA_ARGS__)
#define cr_assert_str_neq(A, B, ...)           TSAN_CHECK(1, strcmp(A, B) != 0, __VA_ARGS__)
#define cr_assert_str_empty(A, ...)            TSAN_CHECK(1, *(A) == '\0', __VA_ARGS__)
#define cr_skip_test(...)                      tsan_skip("" __VA_ARGS__)
#define cr_assert_fail(...)                    tsan_fail(1, __FILE__, __LINE__, "reached", "" __VA_ARGS__)
#define cr_log_warn(...)                       (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr))
#define cr_log_info(...)                       cr_log_warn(__VA_ARGS__)
#define cr_skip(...)                           tsan_skip("" __VA_ARGS__)

#endif
