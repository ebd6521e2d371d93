/* The files of a result database: itself, and the journals that SQLite may keep beside it. */
#ifndef DM_STORE_FILES_H
#define DM_STORE_FILES_H

#include <glib.h>
#include <sqlite3.h>

/* A path as SQLite takes it for the name of this file, whatever it is: "file:x" alone would be an address,
 * ":memory:" no file. Free with g_free. */
char *store_sqlite_path(const char *path);
/* Opens the file of that name; flags as for sqlite3_open_v2. *db must be closed even where it fails: FALSE +
 * DM_ERROR_FAILED, the reason alone. */
gboolean store_open_file(const char *path, int flags, sqlite3 **db, GError **error);

/* The database and its journals. None of it need be there. */
void store_remove(const char *path);
/* Makes the finished database `partial` the file `path`. FALSE + DM_ERROR_FAILED. */
gboolean store_rename(const char *partial, const char *path, GError **error);
/* Copies a finished database to path.partial, to the disk, and then renames it to path: path is whole or not
 * there. FALSE + DM_ERROR_FAILED. */
gboolean store_copy(const char *from, const char *path, GError **error);

#endif
