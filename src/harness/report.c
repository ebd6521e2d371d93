/* The comparison table; see report.h. */
#include "harness/report.h"
#include "harness/report_column.h"
#include "harness/shown.h"
#include "harness/table.h"
#include <string.h>

#define TEXT_WIDTH 110 /* of wrapped lines under the table */

/* Bounds of what any system could reach do not compete. */
static gboolean is_bound(const struct report_run *run)
{
  return strcmp(run->info.system, "ideal") == 0 || strcmp(run->info.system, "ideal-shared") == 0;
}

static gboolean competes(const struct report_column *column, const struct report_run *run)
{
  return !is_bound(run) && report_column_known(column, &run->figures);
}

/* Index of the best run of a column, or -1: no contest, or all who compete show the same. */
static int best_run(const struct report_column *column, char **texts, const struct report_run *runs,
                    size_t count)
{
  int best = -1;
  gboolean differ = FALSE;
  for (size_t i = 0; column->best != BEST_NONE && i < count; i++) {
    if (!competes(column, &runs[i]))
      continue;
    if (best < 0) {
      best = (int)i;
      continue;
    }
    differ = differ || strcmp(texts[i], texts[best]) != 0;
    double value = column->value(&runs[i].figures), least = column->value(&runs[best].figures);
    if (column->best == BEST_HIGH ? value > least : value < least)
      best = (int)i;
  }
  return differ ? best : -1;
}

/* Marks ([count]) the best of a column's texts; TRUE if one is. What reads equal is marked alike: a
 * difference that the table does not show is none. */
static gboolean mark_best(const struct report_column *column, const struct report_run *runs, size_t count,
                          char **texts, gboolean *marks)
{
  int best = best_run(column, texts, runs, count);
  for (size_t i = 0; i < count; i++)
    marks[i] = best >= 0 && competes(column, &runs[i]) && strcmp(texts[i], texts[best]) == 0;
  return best >= 0;
}

static gboolean print_figures(FILE *out, const struct report_run *runs, size_t count, gboolean colour)
{
  g_autofree const struct figures **figures = g_new0(const struct figures *, count);
  g_autofree char **texts = g_new0(char *, REPORT_COLUMNS *count);
  g_autofree gboolean *marks = g_new0(gboolean, REPORT_COLUMNS * count);
  gboolean marked = FALSE;
  for (size_t i = 0; i < count; i++)
    figures[i] = &runs[i].figures;
  for (size_t c = 0; c < REPORT_COLUMNS; c++) {
    report_column_texts(&report_columns[c], figures, count, texts + c * count);
    marked |= mark_best(&report_columns[c], runs, count, texts + c * count, marks + c * count);
  }
  g_autoptr(Table) table = table_new(REPORT_COLUMNS + 1, 1);
  table_cell(table, g_strdup("system"), FALSE);
  for (size_t c = 0; c < REPORT_COLUMNS; c++)
    table_cell(table, g_strdup(report_columns[c].title), FALSE);
  for (size_t i = 0; i < count; i++) {
    table_cell(table, g_strdup(runs[i].info.system), FALSE);
    for (size_t c = 0; c < REPORT_COLUMNS; c++)
      table_cell(table, texts[c * count + i], marks[c * count + i]);
  }
  table_print(table, out, colour);
  return marked;
}

/* Prints label and text, wrapped at spaces, further lines indented under the text. */
static void print_wrapped(FILE *out, const char *label, const char *text)
{
  g_autofree char *shown = shown_text(text);
  g_auto(GStrv) words = g_strsplit(shown, " ", -1);
  size_t indent = (size_t)g_utf8_strlen(label, -1), at = indent;
  fputs(label, out);
  for (char **word = words; *word; word++) {
    size_t length = (size_t)g_utf8_strlen(*word, -1);
    if (at > indent && at + 1 + length > TEXT_WIDTH) {
      fprintf(out, "\n%*s", (int)indent, "");
      at = indent;
    } else if (word != words) {
      fputc(' ', out);
      at++;
    }
    fputs(*word, out);
    at += length;
  }
  fputc('\n', out);
}

static void print_constants(FILE *out, const struct report_run *runs, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    if (!runs[i].info.constants || !*runs[i].info.constants)
      continue;
    g_autofree char *label = g_strdup_printf("%s: ", runs[i].info.system);
    print_wrapped(out, label, runs[i].info.constants);
  }
}

static gboolean has_notice(const struct report_run *run, const char *notice)
{
  g_auto(GStrv) lines = g_strsplit(run->info.notices ? run->info.notices : "", "\n", -1);
  return g_strv_contains((const char *const *)lines, notice);
}

/* A notice is printed once, with the systems that it concerns where these are not all. */
static void print_notice(FILE *out, const char *notice, const struct report_run *runs, size_t count)
{
  g_autoptr(GString) label = g_string_new("note");
  g_autoptr(GString) systems = g_string_new(NULL);
  size_t concerned = 0;
  for (size_t i = 0; i < count; i++) {
    if (!has_notice(&runs[i], notice))
      continue;
    g_string_append_printf(systems, "%s%s", concerned++ ? ", " : "", runs[i].info.system);
  }
  if (concerned < count)
    g_string_append_printf(label, " (%s)", systems->str);
  g_string_append(label, ": ");
  print_wrapped(out, label->str, notice);
}

static void print_notices(FILE *out, const struct report_run *runs, size_t count)
{
  g_autoptr(GPtrArray) printed = g_ptr_array_new_with_free_func(g_free);
  for (size_t i = 0; i < count; i++) {
    g_auto(GStrv) lines = g_strsplit(runs[i].info.notices ? runs[i].info.notices : "", "\n", -1);
    for (char **line = lines; *line; line++) {
      if (!**line || g_ptr_array_find_with_equal_func(printed, *line, g_str_equal, NULL))
        continue;
      g_ptr_array_add(printed, g_strdup(*line));
      print_notice(out, *line, runs, count);
    }
  }
}

void report_table(FILE *out, const struct report_run *runs, size_t count, gboolean colour)
{
  if (count == 0)
    return;
  char window[G_ASCII_DTOSTR_BUF_SIZE];
  g_ascii_formatd(window, sizeof window, "%.6g", runs[0].figures.window_s);
  const char *backend = strcmp(runs[0].info.backend, "sim") == 0 ? "simulated" : "measured";
  fprintf(out, "%s: %s, seed %" G_GUINT64_FORMAT ", %s s of arrivals\n\n", runs[0].info.experiment, backend,
          runs[0].info.seed, window);
  gboolean bounds = FALSE;
  for (size_t i = 0; i < count; i++)
    bounds |= is_bound(&runs[i]);
  gboolean marked = print_figures(out, runs, count, colour);
  if (marked)
    fprintf(out, "\n%s marks the best of a column%s\n", colour ? "green" : "*",
            bounds ? "; ideal and ideal-shared are bounds and do not compete" : "");
  fputc('\n', out);
  print_constants(out, runs, count);
  print_notices(out, runs, count);
}
