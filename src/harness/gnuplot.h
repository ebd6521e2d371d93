/* Runs gnuplot on a script. */
#ifndef DM_GNUPLOT_H
#define DM_GNUPLOT_H

#include <glib.h>

/* Feeds script to gnuplot's standard input and waits. FALSE + DM_ERROR_FAILED: gnuplot is not installed (the
 * message says how to install it), or what it complained of. */
gboolean gnuplot_run(const char *script, GError **error);
/* Text as a single-quoted gnuplot string; control characters become spaces. Free with g_free. */
char *gnuplot_quote(const char *text);

#endif
