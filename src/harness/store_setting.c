/* Table `setting`; see store_setting.h. */
#include "harness/store_setting.h"

#include <string.h>

#include "harness/experiment_layers.h"
#include "harness/setting.h"
#include "harness/store_schema.h"
#include "harness/store_rows.h"

/* What a number means is the same in every notation: 8 and 8.0 compare equal in SQL. */
static void bind_value(sqlite3_stmt *statement, int column, const char *text)
{
  double number;
  gint64 whole;
  if (g_ascii_string_to_signed(text, 10, G_MININT64, G_MAXINT64, &whole, NULL))
    sqlite3_bind_int64(statement, column, whole);
  else if (number_parse(text, -1e300, 1e300, &number, NULL))
    sqlite3_bind_double(statement, column, number);
  else
    sqlite3_bind_text(statement, column, text, -1, SQLITE_TRANSIENT);
}

static gboolean add_setting(sqlite3 *db, sqlite3_stmt *statement, int64_t run, const char *line,
                            GError **error)
{
  const char *equals = strchr(line, '=');
  if (!equals)
    return TRUE;
  g_autofree char *name = g_strstrip(g_strndup(line, (gsize)(equals - line)));
  g_autofree char *key = layers_key("", name, NULL);
  g_autofree char *value = g_strstrip(g_strdup(equals + 1));
  sqlite3_bind_int64(statement, 1, run);
  sqlite3_bind_text(statement, 2, key ? key : name, -1, SQLITE_TRANSIENT);
  bind_value(statement, 3, value);
  gboolean done = sqlite3_step(statement) == SQLITE_DONE || store_sqlite_failed(db, error);
  sqlite3_reset(statement);
  return done;
}

gboolean store_settings(sqlite3 *db, int64_t run, const char *overrides, GError **error)
{
  g_autoptr(sqlite3_stmt) statement = NULL;
  if (sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO setting VALUES(?, ?, ?)", -1, &statement, NULL) !=
      SQLITE_OK)
    return store_sqlite_failed(db, error);
  g_auto(GStrv) lines = g_strsplit(overrides ? overrides : "", "\n", -1);
  for (char **line = lines; *line; line++)
    if (!add_setting(db, statement, run, *line, error))
      return FALSE;
  return TRUE;
}
