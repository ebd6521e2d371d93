/* Rows sorted by arrival through a temporary SQLite file in $TMPDIR, for traces that are not in order; equal
 * times keep the file's order. Memory is SQLite's page cache, whatever the number of rows. A full disk is
 * DM_ERROR_FAILED. */
#ifndef DM_TRACE_SORT_H
#define DM_TRACE_SORT_H

#include "harness/trace.h"

struct trace_sort;

struct trace_sort *trace_sort_new(GError **error);
void trace_sort_free(struct trace_sort *sort);
gboolean trace_sort_add(struct trace_sort *sort, const struct trace_row *row, GError **error);
/* After the last row, and to start again at the first. */
gboolean trace_sort_begin(struct trace_sort *sort, GError **error);
/* 1, 0 at the end, -1 on error; strings last until the next call. */
int trace_sort_next(struct trace_sort *sort, struct trace_row *row, GError **error);

#endif
