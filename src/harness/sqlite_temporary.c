/* Temporary databases and SQLite errors; see sqlite_temporary.h. */
#include "harness/sqlite_temporary.h"

#include "core/error.h"

gboolean sqlite_failed(sqlite3 *database, const char *doing, GError **error)
{
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: %s", doing,
              database ? sqlite3_errmsg(database) : "out of memory");
  return FALSE;
}

sqlite3 *sqlite_open_temporary(GError **error)
{
  sqlite3 *database = NULL;
  /* An empty name is a file of its own in $SQLITE_TMPDIR, $TMPDIR or /var/tmp, unlinked as soon as it is
   * open. */
  if (sqlite3_open("", &database) != SQLITE_OK ||
      sqlite3_exec(database,
                   "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16384;"
                   "PRAGMA temp_store = FILE; PRAGMA threads = 0; BEGIN",
                   NULL, NULL, NULL) != SQLITE_OK) {
    sqlite_failed(database, "temporary file for sorting a trace", error);
    sqlite3_close(database);
    return NULL;
  }
  return database;
}
