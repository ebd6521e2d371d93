/* Cells of the doctor's tables (doctor_text.c): rows are set in from the margin, columns two blanks apart,
 * and what is unknown is a dash. */
#ifndef DM_DOCTOR_CELLS_H
#define DM_DOCTOR_CELLS_H

#include <stdint.h>

#include "harness/table.h"

/* What the kernel's files hold is printed, whatever it is: on one line, without control characters. Changes
 * and returns text. */
char *plain_text(char *text);

/* Begins a row: its first cell, which table_new counts among those to the left. */
void cells_begin(struct table *table);
/* A cell of words, with a gap to the next. */
void cells_word(struct table *table, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* A number, or the last cell of a row. */
void cells_end(struct table *table, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* A row of a name and its value; takes value. */
void cells_pair(struct table *table, const char *name, char *value);

const char *or_dash(const char *text);
/* Free with g_free. */
char *number_or_dash(int64_t number, gboolean known);
char *gigabytes(uint64_t bytes); /* 0 is unknown */

#endif
