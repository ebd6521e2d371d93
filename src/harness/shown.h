/* Texts from outside (names, paths, others' messages) as people are shown them: in a log line, a table, an
 * error. */
#ifndef DM_SHOWN_H
#define DM_SHOWN_H

#include <glib.h>

/* UTF-8 in one line: control characters, and bytes that are no UTF-8, are written \xNN, so that what they do
 * to a terminal or to a reader of lines does not happen. Free with g_free. */
char *shown_text(const char *text);
/* As much of it as fits into `most` bytes, cut between characters, with U+FFFD for bytes that are no UTF-8:
 * where text must be UTF-8 and is looked at by no terminal. Free with g_free. */
char *shown_cut(const char *text, gsize most);

#endif
