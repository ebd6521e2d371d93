/* Calls per minute out of calls per function; see minute_counts.h. */
#include "harness/minute_counts.h"

#include "harness/sqlite_temporary.h"

#define TRANSPOSING "calls per minute in a temporary file"

enum statement { ADD_DURATION, ADD_FUNCTION, FIND_SERVICE, ADD_CALLS, BY_MINUTE, STATEMENTS };

static const char schema[] = "CREATE TABLE duration (key TEXT PRIMARY KEY, service INTEGER) WITHOUT ROWID;"
                             "CREATE TABLE function (id INTEGER PRIMARY KEY, name TEXT, service INTEGER);"
                             "CREATE TABLE calls (minute INTEGER, function INTEGER, count INTEGER)";

static const char *const sql[STATEMENTS] = {
    [ADD_DURATION] = "INSERT OR IGNORE INTO duration VALUES (?, ?)",
    [ADD_FUNCTION] = "INSERT INTO function (name, service) VALUES (?, ?)",
    [FIND_SERVICE] = "SELECT service FROM duration WHERE key = ?",
    [ADD_CALLS] = "INSERT INTO calls VALUES (?, ?, ?)",
    [BY_MINUTE] = "SELECT c.minute, c.count, f.service, f.name FROM"
                  " (SELECT minute, function, count FROM calls ORDER BY minute, function) c"
                  " CROSS JOIN function f ON f.id = c.function ORDER BY c.minute, c.function",
};

struct entry {
  uint64_t calls;
  int64_t service_ns;
  size_t name; /* offset into names */
};

struct minute_counts {
  sqlite3 *database;
  sqlite3_stmt *statement[STATEMENTS];
  int64_t function;  /* the last one added */
  gboolean row_held; /* BY_MINUTE stands on a row of the next minute */
  GArray *entries;
  GString *names;
};

struct minute_counts *minute_counts_new(GError **error)
{
  sqlite3 *database = sqlite_open_temporary(error);
  if (!database)
    return NULL;
  struct minute_counts *counts = g_new0(struct minute_counts, 1);
  counts->database = database;
  counts->entries = g_array_new(FALSE, FALSE, sizeof(struct entry));
  counts->names = g_string_new(NULL);
  gboolean ready = sqlite3_exec(database, schema, NULL, NULL, NULL) == SQLITE_OK;
  for (int i = 0; ready && i < STATEMENTS; i++)
    ready = sqlite3_prepare_v2(database, sql[i], -1, &counts->statement[i], NULL) == SQLITE_OK;
  if (ready)
    return counts;
  sqlite_failed(database, TRANSPOSING, error);
  minute_counts_free(counts);
  return NULL;
}

void minute_counts_free(struct minute_counts *counts)
{
  if (!counts)
    return;
  for (int i = 0; i < STATEMENTS; i++)
    sqlite3_finalize(counts->statement[i]);
  sqlite3_close(counts->database);
  g_array_unref(counts->entries);
  g_string_free(counts->names, TRUE);
  g_free(counts);
}

static gboolean run_statement(struct minute_counts *counts, enum statement which, GError **error)
{
  sqlite3_stmt *statement = counts->statement[which];
  int status = sqlite3_step(statement);
  sqlite3_reset(statement);
  return status == SQLITE_DONE || sqlite_failed(counts->database, TRANSPOSING, error);
}

gboolean minute_counts_duration(struct minute_counts *counts, const char *key, int64_t service_ns,
                                GError **error)
{
  sqlite3_bind_text(counts->statement[ADD_DURATION], 1, key, -1, SQLITE_STATIC);
  sqlite3_bind_int64(counts->statement[ADD_DURATION], 2, service_ns);
  return run_statement(counts, ADD_DURATION, error);
}

gboolean minute_counts_function(struct minute_counts *counts, const char *key, gboolean *has_duration,
                                GError **error)
{
  sqlite3_stmt *find = counts->statement[FIND_SERVICE];
  sqlite3_bind_text(find, 1, key, -1, SQLITE_STATIC);
  int status = sqlite3_step(find);
  *has_duration = status == SQLITE_ROW;
  int64_t service_ns = *has_duration ? sqlite3_column_int64(find, 0) : -1;
  sqlite3_reset(find);
  if (status != SQLITE_ROW && status != SQLITE_DONE)
    return sqlite_failed(counts->database, TRANSPOSING, error);
  sqlite3_bind_text(counts->statement[ADD_FUNCTION], 1, key, -1, SQLITE_STATIC);
  sqlite3_bind_int64(counts->statement[ADD_FUNCTION], 2, service_ns);
  if (!run_statement(counts, ADD_FUNCTION, error))
    return FALSE;
  counts->function = sqlite3_last_insert_rowid(counts->database);
  return TRUE;
}

gboolean minute_counts_calls(struct minute_counts *counts, unsigned minute, uint64_t calls, GError **error)
{
  sqlite3_bind_int64(counts->statement[ADD_CALLS], 1, minute);
  sqlite3_bind_int64(counts->statement[ADD_CALLS], 2, counts->function);
  sqlite3_bind_int64(counts->statement[ADD_CALLS], 3, (int64_t)calls);
  return run_statement(counts, ADD_CALLS, error);
}

static gboolean step_row(struct minute_counts *counts, GError **error)
{
  int status = sqlite3_step(counts->statement[BY_MINUTE]);
  counts->row_held = status == SQLITE_ROW;
  return counts->row_held || status == SQLITE_DONE || sqlite_failed(counts->database, TRANSPOSING, error);
}

gboolean minute_counts_begin(struct minute_counts *counts, GError **error)
{
  sqlite3_reset(counts->statement[BY_MINUTE]);
  return step_row(counts, error);
}

int minute_counts_next(struct minute_counts *counts, unsigned *minute, GError **error)
{
  sqlite3_stmt *row = counts->statement[BY_MINUTE];
  if (!counts->row_held)
    return 0;
  g_array_set_size(counts->entries, 0);
  g_string_truncate(counts->names, 0);
  *minute = (unsigned)sqlite3_column_int(row, 0);
  while (counts->row_held && (unsigned)sqlite3_column_int(row, 0) == *minute) {
    struct entry entry = {.calls = (uint64_t)sqlite3_column_int64(row, 1),
                          .service_ns = sqlite3_column_int64(row, 2),
                          .name = counts->names->len};
    g_string_append_len(counts->names, (const char *)sqlite3_column_text(row, 3),
                        sqlite3_column_bytes(row, 3) + 1);
    g_array_append_val(counts->entries, entry);
    if (!step_row(counts, error))
      return -1;
  }
  return 1;
}

unsigned minute_counts_entries(const struct minute_counts *counts)
{
  return counts->entries->len;
}

struct minute_entry minute_counts_entry(const struct minute_counts *counts, unsigned i)
{
  const struct entry *entry = &g_array_index(counts->entries, struct entry, i);
  return (struct minute_entry){counts->names->str + entry->name, entry->service_ns, entry->calls};
}
