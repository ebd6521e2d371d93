/* The files of a result database: itself, and the journals that SQLite may keep beside it. */
#ifndef DM_STORE_FILES_H
#define DM_STORE_FILES_H

#include <glib.h>

/* The database and its journals. None of it need be there. */
void store_remove(const char *path);
/* Makes the finished database `partial` the file `path`. FALSE + DM_ERROR_FAILED. */
gboolean store_rename(const char *partial, const char *path, GError **error);
/* Copies a finished database to path.partial, to the disk, and then renames it to path: path is whole or not
 * there. FALSE + DM_ERROR_FAILED. */
gboolean store_copy(const char *from, const char *path, GError **error);

#endif
