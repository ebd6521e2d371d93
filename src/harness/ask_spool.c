/* The asks of a trace in a temporary file; see ask_spool.h. */
#include "harness/ask_spool.h"

#include <string.h>

#include "harness/sqlite_temporary.h"

#define SPOOLING "keeping a trace in a temporary file"

struct ask_spool {
  sqlite3 *database;
  sqlite3_stmt *insert, *select;
  uint64_t rows;
  struct ask filling[ASK_BLOCK];
};

struct ask_spool *ask_spool_new(GError **error)
{
  sqlite3 *database = sqlite_open_temporary(error);
  if (!database)
    return NULL;
  struct ask_spool *spool = g_new0(struct ask_spool, 1);
  spool->database = database;
  if (sqlite3_exec(database, "CREATE TABLE block (number INTEGER PRIMARY KEY, asks BLOB)", NULL, NULL,
                   NULL) != SQLITE_OK ||
      sqlite3_prepare_v2(database, "INSERT INTO block (number, asks) VALUES (?, ?)", -1, &spool->insert,
                         NULL) != SQLITE_OK ||
      sqlite3_prepare_v2(database, "SELECT asks FROM block WHERE number = ?", -1, &spool->select, NULL) !=
          SQLITE_OK) {
    sqlite_failed(database, SPOOLING, error);
    ask_spool_free(spool);
    return NULL;
  }
  return spool;
}

void ask_spool_free(struct ask_spool *spool)
{
  if (!spool)
    return;
  sqlite3_finalize(spool->insert);
  sqlite3_finalize(spool->select);
  sqlite3_close(spool->database);
  g_free(spool);
}

static gboolean write_block(struct ask_spool *spool, uint64_t block, GError **error)
{
  sqlite3_bind_int64(spool->insert, 1, (sqlite3_int64)block);
  sqlite3_bind_blob(spool->insert, 2, spool->filling, sizeof spool->filling, SQLITE_STATIC);
  int status = sqlite3_step(spool->insert);
  sqlite3_reset(spool->insert);
  memset(spool->filling, 0, sizeof spool->filling);
  return status == SQLITE_DONE || sqlite_failed(spool->database, SPOOLING, error);
}

gboolean ask_spool_add(struct ask_spool *spool, const struct ask *ask, GError **error)
{
  spool->filling[spool->rows++ % ASK_BLOCK] = *ask;
  return spool->rows % ASK_BLOCK > 0 || write_block(spool, spool->rows / ASK_BLOCK - 1, error);
}

gboolean ask_spool_end(struct ask_spool *spool, GError **error)
{
  return spool->rows % ASK_BLOCK == 0 || write_block(spool, spool->rows / ASK_BLOCK, error);
}

uint64_t ask_spool_rows(const struct ask_spool *spool)
{
  return spool->rows;
}

gboolean ask_spool_read(struct ask_spool *spool, uint64_t block, struct ask asks[ASK_BLOCK], GError **error)
{
  sqlite3_bind_int64(spool->select, 1, (sqlite3_int64)block);
  gboolean good = sqlite3_step(spool->select) == SQLITE_ROW &&
                  sqlite3_column_bytes(spool->select, 0) == (int)(ASK_BLOCK * sizeof *asks);
  if (good)
    memcpy(asks, sqlite3_column_blob(spool->select, 0), ASK_BLOCK * sizeof *asks);
  else
    sqlite_failed(spool->database, SPOOLING, error);
  sqlite3_reset(spool->select);
  return good;
}

gboolean ask_spool_find(struct ask_spool *spool, int64_t arrival_ns, uint64_t *row, GError **error)
{
  struct ask asks[ASK_BLOCK];
  uint64_t low = 0, high = spool->rows; /* rows below low are not later, rows from high on are */
  while (low < high) {
    uint64_t middle = low + (high - low) / 2, first = middle / ASK_BLOCK * ASK_BLOCK;
    uint64_t end = MIN(first + ASK_BLOCK, high);
    if (!ask_spool_read(spool, middle / ASK_BLOCK, asks, error))
      return FALSE;
    if (first >= low && asks[0].arrival_ns > arrival_ns) {
      high = first;
    } else if (asks[end - 1 - first].arrival_ns <= arrival_ns) {
      low = end;
    } else {
      low = MAX(low, first);
      while (asks[low - first].arrival_ns <= arrival_ns)
        low++;
      high = low;
    }
  }
  *row = low;
  return TRUE;
}
