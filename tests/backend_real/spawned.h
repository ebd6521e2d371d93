/* Runs a program that stands beside this one in the build folder, to its end. */
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
void spawned_free(Spawned *spawned);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Spawned, spawned_free)

/* Refused as bad input is: status 2, nothing on standard output, one line on standard error with the text in
 * it. */
void expect_refusal(const Spawned *spawned, const char *says);

#endif
