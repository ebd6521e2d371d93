/* Table `setting` of a result database: a row for each setting that a run was given on the command line. */
#ifndef DM_STORE_SETTING_H
#define DM_STORE_SETTING_H

#include <glib.h>
#include <sqlite3.h>

/* overrides: "KEY=VALUE" lines, the last one of a key being in force. A decimal number is stored as one.
 * FALSE + DM_ERROR_FAILED. */
gboolean store_settings(sqlite3 *db, int64_t run, const char *overrides, GError **error);

#endif
