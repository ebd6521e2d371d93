/* Errs on purpose in the way that its argument names, so that tests/run.sh can see that a sanitizer's report
 * is found before it trusts that there is none. Exits 0 when nothing stopped it. */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int shared;

/* Many times: ThreadSanitizer may miss two accesses at the very same time. */
static void *add(void *context)
{
  for (int i = 0; i < 10000; i++)
    shared++;
  return context;
}

int main(int argc, char **argv)
{
  const char *how = argc == 2 ? argv[1] : "";
  if (strcmp(how, "leak") == 0) {
    char *volatile block = malloc(10);
    block[0] = 1;
    block = NULL; // cppcheck-suppress memleak
  } else if (strcmp(how, "overflow") == 0) {
    volatile char *block = malloc(10);
    block[argc * 5] = 1;
    free((char *)block);
  } else if (strcmp(how, "undefined") == 0) {
    volatile int sum = INT_MAX;
    sum += argc;
  } else if (strcmp(how, "race") == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, add, NULL) != 0)
      return 2;
    add(NULL);
    pthread_join(thread, NULL);
  } else {
    fprintf(stderr, "usage: canary leak|overflow|undefined|race\n");
    return 2;
  }
  return 0;
}
