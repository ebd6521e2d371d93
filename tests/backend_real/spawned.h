/* Runs a program that stands beside this one in the build folder, to its end or while the test goes on. */
#ifndef SPAWNED_H
#define SPAWNED_H

#include <glib.h>

struct spawned {
  int status; /* exit status */
  char *out, *err;
};
typedef struct spawned Spawned; /* for g_autoptr */

/* Its path. */
char *spawned_path(const char *program);
/* words: arguments, separated by a space each. */
Spawned *spawn(const char *program, const char *words);
/* One that runs while the test goes on: spawning_finish waits for its end, and frees the handle. What it
 * writes is read only then: little enough for a pipe. */
typedef struct spawning Spawning;
Spawning *spawning_start(const char *program, const char *words);
gboolean spawning_ended(Spawning *spawning);
Spawned *spawning_finish(Spawning *spawning);
void spawned_free(Spawned *spawned);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Spawned, spawned_free)

/* Refused as bad input is: status 2, nothing on standard output, one line on standard error with the text in
 * it. */
void expect_refusal(const Spawned *spawned, const char *says);

#endif
