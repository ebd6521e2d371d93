/* Texts from outside (names, paths, others' messages) as people are shown them: in a log line, a table, an
 * error. */
#ifndef DM_SHOWN_H
#define DM_SHOWN_H

#include <glib.h>

/* UTF-8 in one line: control characters, and bytes that are no UTF-8, are written \xNN, so that what they do
 * to a terminal or to a reader of lines does not happen. Free with g_free. */
char *shown_text(const char *text);

#endif
