/* Temporary SQLite databases for data that must not live in memory, and SQLite errors as GErrors. */
#ifndef DM_SQLITE_TEMPORARY_H
#define DM_SQLITE_TEMPORARY_H

#include <glib.h>
#include <sqlite3.h>

/* "DOING: MESSAGE" as DM_ERROR_FAILED; returns FALSE. */
gboolean sqlite_failed(sqlite3 *database, const char *doing, GError **error);
/* A private database in a temporary file, which SQLite deletes by itself; safe against nothing but fast. */
sqlite3 *sqlite_open_temporary(GError **error);

#endif
