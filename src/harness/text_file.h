/* Whole text files, read with a limit: the one door through which experiment, hardware and profile files come
 * in.
 *
 * A file over its limit, with a NUL byte or with invalid UTF-8 is refused before anybody parses it. */
#ifndef DM_TEXT_FILE_H
#define DM_TEXT_FILE_H

#include <glib.h>

/* The text of path (at most limit bytes, NUL-terminated, checked as text_check does); g_free it. NULL +
 * DM_ERROR_INPUT. */
char *text_file_read(const char *path, gsize limit, gsize *length, GError **error);

/* FALSE + DM_ERROR_INPUT with the line of the first NUL byte or byte that is not UTF-8. */
gboolean text_check(const char *path, const char *text, gsize length, GError **error);

/* Cuts the next line off *rest, at most line_limit bytes, into a new string without its line end; counts
 * *line up. *out becomes NULL at the end of the text. FALSE + DM_ERROR_INPUT for a longer line. */
gboolean text_next_line(const char *path, const char **rest, gsize line_limit, unsigned *line, char **out,
                        GError **error);

#endif
