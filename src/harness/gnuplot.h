/* Runs gnuplot on a script. */
#ifndef DM_GNUPLOT_H
#define DM_GNUPLOT_H

#include <glib.h>

/* Feeds script to gnuplot's standard input and waits. What it draws goes to the descriptor out, its standard
 * output: gnuplot takes a file's name that begins with "|" for a command, and one with "~" for another. FALSE
 * + DM_ERROR_FAILED: gnuplot is not installed (the message says how to install it), or what it complained of.
 */
gboolean gnuplot_run(const char *script, int out, GError **error);
/* Text as a single-quoted gnuplot string; control characters become spaces. Free with g_free. */
char *gnuplot_quote(const char *text);
/* The same where gnuplot takes text for a format of numbers: the labels of tics. */
char *gnuplot_quote_label(const char *text);
/* A label of a tic as a word of a data block, in double quotes, in which nothing can be escaped: what would
 * end it becomes a space. Free with g_free. */
char *gnuplot_data_label(const char *text);

#endif
