/* The schema of result databases, and how to run statements on one; shared by writer, reader and what reads
 * results.
 *
 * The rows that are many (request_data, decision_data) hold small integers; the views request and decision,
 * which people query, put names and derived columns on them. results/README.md documents both. */
#ifndef DM_STORE_SCHEMA_H
#define DM_STORE_SCHEMA_H

#include <glib.h>
#include <sqlite3.h>
#include "harness/store.h"

#define STORE_APPLICATION_ID 0x444d7374 /* "DMst": tells a result database from any other */
#define STORE_VERSION        1
/* request_data.key = run << REQUEST_ID_BITS | id: the table is its own index, and rows in order of id are
 * appended. */
#define REQUEST_ID_BITS 40
#define REQUEST_ID_MAX  ((1LL << REQUEST_ID_BITS) - 1)

/* Serves `explain`; made once all rows are there, it costs the run nothing. */
#define STORE_INDEX_SQL                                                                                      \
  "CREATE INDEX decision_by_request ON decision_data(run, request) WHERE request IS NOT NULL"

typedef struct store_reader StoreReader;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StoreReader, store_close)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(sqlite3_stmt, sqlite3_finalize)

/* Statements that create all tables and views; free with g_free. */
char *store_schema_sql(void);

/* Prepares sql on an open result database; NULL + error. */
sqlite3_stmt *store_prepare(struct store_reader *reader, const char *sql, GError **error);
/* 1: a row; 0: no more; -1: error set. */
int store_step(struct store_reader *reader, sqlite3_stmt *statement, GError **error);
const char *store_path(const struct store_reader *reader);

#endif
