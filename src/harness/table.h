/* A table of text: columns as wide as their widest cell, the first ones aligned left, the others right.
 */
#ifndef DM_TABLE_H
#define DM_TABLE_H

#include <glib.h>
#include <stdio.h>

struct table;

/* left: how many columns, from the first, hold words. */
struct table *table_new(size_t columns, size_t left);
void table_free(struct table *table);
typedef struct table Table; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Table, table_free)
/* Appends the next cell, row by row. mark: '*' follows it (or, in colour, it stands out). Takes text;
 * shown_text is what is printed. */
void table_cell(struct table *table, char *text, gboolean mark);
void table_print(const struct table *table, FILE *out, gboolean colour);

#endif
