/* Aligned tables; see table.h. */
#include "harness/table.h"

#include "harness/shown.h"

struct cell {
  char *text;
  gboolean mark;
};

struct table {
  size_t columns, left;
  GArray *cells;
};

static void cell_clear(gpointer data)
{
  g_free(((struct cell *)data)->text);
}

struct table *table_new(size_t columns, size_t left)
{
  struct table *table = g_new0(struct table, 1);
  table->columns = columns;
  table->left = left;
  table->cells = g_array_new(FALSE, FALSE, sizeof(struct cell));
  g_array_set_clear_func(table->cells, cell_clear);
  return table;
}

void table_free(struct table *table)
{
  g_array_unref(table->cells);
  g_free(table);
}

void table_cell(struct table *table, char *text, gboolean mark)
{
  struct cell cell = {.text = shown_text(text), .mark = mark};
  g_free(text);
  g_array_append_val(table->cells, cell);
}

static const struct cell *cell_at(const struct table *table, size_t row, size_t column)
{
  return &g_array_index(table->cells, struct cell, row * table->columns + column);
}

/* Characters, not bytes. */
static size_t width_of(const char *text)
{
  return (size_t)g_utf8_strlen(text, -1);
}

static void print_spaces(FILE *out, size_t count)
{
  for (size_t i = 0; i < count; i++)
    fputc(' ', out);
}

static void print_text(FILE *out, const struct cell *cell, gboolean colour)
{
  if (cell->mark && colour)
    fprintf(out, "\033[1;32m%s\033[0m", cell->text);
  else
    fputs(cell->text, out);
}

/* A number is followed by the place of its mark, so that numbers stay aligned; nothing follows the row. */
static void print_cell(FILE *out, const struct cell *cell, size_t padding, gboolean left, gboolean last,
                       gboolean colour)
{
  if (!left)
    print_spaces(out, padding + 1);
  print_text(out, cell, colour);
  if (left)
    print_spaces(out, last ? 0 : padding + 1);
  else if (cell->mark && !colour)
    fputc('*', out);
  else if (!last)
    fputc(' ', out);
}

void table_print(const struct table *table, FILE *out, gboolean colour)
{
  size_t rows = table->cells->len / table->columns;
  g_autofree size_t *width = g_new0(size_t, table->columns);
  for (size_t row = 0; row < rows; row++)
    for (size_t column = 0; column < table->columns; column++)
      width[column] = MAX(width[column], width_of(cell_at(table, row, column)->text));
  for (size_t row = 0; row < rows; row++) {
    for (size_t column = 0; column < table->columns; column++) {
      const struct cell *cell = cell_at(table, row, column);
      print_cell(out, cell, width[column] - width_of(cell->text), column < table->left,
                 column + 1 == table->columns, colour);
    }
    fputc('\n', out);
  }
}
