/* The asks of a trace in a temporary file, for many readers at different places: memory is SQLite's page
 * cache, whatever the number of rows. Rows are kept in order of arrival, ASK_BLOCK to a block. A full disk is
 * DM_ERROR_FAILED. */
#ifndef DM_ASK_SPOOL_H
#define DM_ASK_SPOOL_H

#include "harness/ask.h"

#define ASK_BLOCK 32 /* rows: 1.3 KB, what each reader holds */

struct ask_spool;

struct ask_spool *ask_spool_new(GError **error);
void ask_spool_free(struct ask_spool *spool);
/* Never earlier than the one before. */
gboolean ask_spool_add(struct ask_spool *spool, const struct ask *ask, GError **error);
/* After the last row: from now on blocks can be read. */
gboolean ask_spool_end(struct ask_spool *spool, GError **error);

uint64_t ask_spool_rows(const struct ask_spool *spool);
/* Rows block * ASK_BLOCK and on (the last block is filled up with zeros). */
gboolean ask_spool_read(struct ask_spool *spool, uint64_t block, struct ask asks[ASK_BLOCK], GError **error);
/* *row = the first one that arrives later than arrival_ns; ask_spool_rows where there is none. */
gboolean ask_spool_find(struct ask_spool *spool, int64_t arrival_ns, uint64_t *row, GError **error);

#endif
