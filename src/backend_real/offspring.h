/* A process forked from this one to play a part of a cluster while something is measured: it dies with its
 * parent. Only where this process has no threads. */
#ifndef DM_OFFSPRING_H
#define DM_OFFSPRING_H

#include <glib.h>
#include <sys/types.h>

struct offspring {
  pid_t pid; /* 0: none */
};

/* The child runs play(context, out), then ends; the first line that it writes to out, without its end, comes
 * into `line`. DM_ERROR_FAILED: no process, or it ended without a line or was silent for 10 s. */
gboolean offspring_start(struct offspring *child, void (*play)(void *context, int out), void *context,
                         char *line, gsize size, GError **error);
/* Kills it and waits for it; one that is not there: nothing. */
void offspring_end(struct offspring *child);

#endif
