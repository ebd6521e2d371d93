/* Files that are streamed: opened, read and started again, with errors that name them. */
#ifndef DM_INPUT_FILE_H
#define DM_INPUT_FILE_H

#include <glib.h>

/* Of a regular file only: a pipe cannot be read twice, and a device may have no end. -1 + DM_ERROR_INPUT;
 * close with close(). */
int input_file_open(const char *path, GError **error);
/* Bytes read, at most size; 0 at the end; -1 + DM_ERROR_INPUT. */
gssize input_file_read(int fd, const char *path, void *buffer, gsize size, GError **error);
/* The next read starts at the beginning. */
gboolean input_file_rewind(int fd, const char *path, GError **error);

/* Length of the UTF-8 byte order mark at the start of the text: 3 or 0. */
gsize byte_order_mark(const void *text, gsize length);

#endif
