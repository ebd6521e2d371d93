/* Cells of the doctor's tables; see doctor_cells.h. */
#include "backend_real/doctor_cells.h"

#include <stdarg.h>

char *plain_text(char *text)
{
  for (char *at = text; *at; at++)
    if ((unsigned char)*at < 0x20 || *at == 0x7f)
      *at = '?';
  return text;
}

void cells_begin(struct table *table)
{
  table_cell(table, g_strdup(" "), FALSE);
}

void cells_word(struct table *table, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *text = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  table_cell(table, g_strconcat(plain_text(text), " ", NULL), FALSE);
}

void cells_end(struct table *table, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  char *text = g_strdup_vprintf(format, arguments);
  va_end(arguments);
  table_cell(table, plain_text(text), FALSE);
}

void cells_pair(struct table *table, const char *name, char *value)
{
  cells_begin(table);
  cells_word(table, "%s", name);
  cells_end(table, "%s", value);
  g_free(value);
}

const char *or_dash(const char *text)
{
  return text && *text ? text : "-";
}

char *number_or_dash(int64_t number, gboolean known)
{
  return known ? g_strdup_printf("%" G_GINT64_FORMAT, number) : g_strdup("-");
}

char *gigabytes(uint64_t bytes)
{
  return bytes ? g_strdup_printf("%.2f", (double)bytes / 1e9) : g_strdup("-");
}
