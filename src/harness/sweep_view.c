/* Reading a sweep's database, and its table; see sweep_view.h. */
#include "harness/sweep_view.h"

#include <string.h>

#include "core/error.h"
#include "harness/report_column.h"
#include "harness/store_schema.h"
#include "harness/table.h"

#define NOTES_MOST 12

/* --- reading
 * --------------------------------------------------------------------------------------------------------*/

/* As it was written: table setting has numbers, of which 0.50 and 0.5 are the same. */
static char *value_of(const struct stored_run *run, const char *key)
{
  g_auto(GStrv) lines = g_strsplit(run->overrides, "\n", -1);
  gsize length = strlen(key);
  const char *value = "";
  for (char **line = lines; *line; line++)
    if (strncmp(*line, key, length) == 0 && (*line)[length] == '=')
      value = *line + length + 1;
  return g_strdup(value);
}

static void read_values(struct sweep_view *view)
{
  view->value = g_new0(char *, (gsize)view->runs->len * view->axes->len + 1);
  for (guint run = 0; run < view->runs->len; run++)
    for (guint i = 0; i < view->axes->len; i++)
      view->value[run * view->axes->len + i] =
          value_of(view->runs->pdata[run], ((const struct axis *)view->axes->pdata[i])->key);
}

static void read_tasks(struct sweep_view *view, const GArray *facts)
{
  view->tasks = view->runs->len;
  for (guint i = 0; i < facts->len; i++) {
    const struct sweep_fact *fact = &g_array_index(facts, struct sweep_fact, i);
    if (g_str_equal(fact->name, "tasks"))
      view->tasks = g_ascii_strtoull(fact->value, NULL, 10);
  }
}

struct sweep_view *sweep_view_read(struct store_reader *reader, GError **error)
{
  g_autoptr(SweepView) view = g_new0(struct sweep_view, 1);
  view->axes = store_axes(reader, error);
  g_autoptr(GArray) facts = view->axes ? store_facts(reader, error) : NULL;
  if (!facts)
    return NULL;
  if (facts->len == 0 || view->axes->len == 0) {
    input_error(error, store_path(reader), 0, "is no sweep's database");
    return NULL;
  }
  view->runs = store_runs(reader, error);
  if (!view->runs)
    return NULL;
  read_values(view);
  read_tasks(view, facts);
  return g_steal_pointer(&view);
}

struct sweep_view *sweep_view_empty(const GPtrArray *axes, uint64_t tasks)
{
  struct sweep_view *view = g_new0(struct sweep_view, 1);
  view->axes = axes_copy(axes);
  view->runs = g_ptr_array_new();
  view->tasks = tasks;
  return view;
}

void sweep_view_free(struct sweep_view *view)
{
  if (!view)
    return;
  for (gsize i = 0; view->value && i < (gsize)view->runs->len * view->axes->len; i++)
    g_free(view->value[i]);
  g_free(view->value);
  g_clear_pointer(&view->runs, g_ptr_array_unref);
  g_clear_pointer(&view->axes, g_ptr_array_unref);
  g_free(view);
}

void sweep_failure_free(struct sweep_failure *failure)
{
  g_free(failure->system);
  g_free(failure->error);
  g_strfreev(failure->values);
  g_free(failure);
}

const char *sweep_view_value(const struct sweep_view *view, guint run, guint axis)
{
  return view->value[run * view->axes->len + axis];
}

/* --- the table
 * ------------------------------------------------------------------------------------------------------*/

static const char *without_section(const char *key)
{
  const char *dot = strchr(key, '.');
  return dot ? dot + 1 : key;
}

const char *axis_title(const GPtrArray *axes, guint axis)
{
  const char *key = ((const struct axis *)axes->pdata[axis])->key;
  for (guint i = 0; i < axes->len; i++) {
    const char *other = ((const struct axis *)axes->pdata[i])->key;
    if (i != axis && g_str_equal(without_section(other), without_section(key)))
      return key;
  }
  return without_section(key);
}

static const enum report_column_id shown[] = {COLUMN_THROUGHPUT, COLUMN_MEAN, COLUMN_P50,
                                              COLUMN_P99,        COLUMN_SLO,  COLUMN_GPU};
#define SHOWN G_N_ELEMENTS(shown)

static const struct stored_run *run_at(const struct sweep_view *view, guint index)
{
  return view->runs->pdata[index];
}

static void print_runs(const struct sweep_view *view, FILE *out)
{
  guint count = view->runs->len;
  g_autofree const struct figures **figures = g_new0(const struct figures *, count);
  g_autofree char **texts = g_new0(char *, SHOWN *count);
  for (guint run = 0; run < count; run++)
    figures[run] = &run_at(view, run)->figures;
  for (size_t c = 0; c < SHOWN; c++)
    report_column_texts(&report_columns[shown[c]], figures, count, texts + c * count);
  g_autoptr(Table) table = table_new(view->axes->len + 1 + SHOWN, view->axes->len + 1);
  for (guint i = 0; i < view->axes->len; i++)
    table_cell(table, g_strdup(axis_title(view->axes, i)), FALSE);
  table_cell(table, g_strdup("system"), FALSE);
  for (size_t c = 0; c < SHOWN; c++)
    table_cell(table, g_strdup(report_columns[shown[c]].title), FALSE);
  for (guint run = 0; run < count; run++) {
    for (guint i = 0; i < view->axes->len; i++)
      table_cell(table, g_strdup(sweep_view_value(view, run, i)), FALSE);
    table_cell(table, g_strdup(run_at(view, run)->system), FALSE);
    for (size_t c = 0; c < SHOWN; c++)
      table_cell(table, texts[c * count + run], FALSE);
  }
  table_print(table, out, FALSE);
}

/* Each note once, in the order of first appearance. */
static void print_notes(const struct sweep_view *view, FILE *out)
{
  g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  for (guint run = 0; run < view->runs->len; run++) {
    g_auto(GStrv) lines = g_strsplit(run_at(view, run)->notices, "\n", -1);
    for (char **line = lines; *line; line++) {
      if (!**line || !g_hash_table_add(seen, g_strdup(*line)))
        continue;
      if (g_hash_table_size(seen) <= NOTES_MOST)
        fprintf(out, "%snote: %s\n", g_hash_table_size(seen) == 1 ? "\n" : "", *line);
    }
  }
  if (g_hash_table_size(seen) > NOTES_MOST)
    fprintf(out, "%u more notes: SELECT DISTINCT notices FROM run\n", g_hash_table_size(seen) - NOTES_MOST);
}

void sweep_view_table(const struct sweep_view *view, FILE *out)
{
  if (view->runs->len == 0)
    return;
  const char *backend = g_str_equal(run_at(view, 0)->backend, "sim") ? "simulated" : "measured";
  fprintf(out, "%s: %s, ", run_at(view, 0)->experiment, backend);
  if (view->runs->len < view->tasks)
    fprintf(out, "%u of ", view->runs->len);
  fprintf(out, "%" G_GUINT64_FORMAT " runs\n\n", view->tasks);
  print_runs(view, out);
  print_notes(view, out);
}
