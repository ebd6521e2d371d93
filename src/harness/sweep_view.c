/* Reading a sweep's database, and its table; see sweep_view.h. */
#include "harness/sweep_view.h"

#include <string.h>

#include "core/error.h"
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

struct column {
  const char *title;
  double (*value)(const struct figures *figures);
  gboolean needs_completed; /* latencies of nothing are unknown, not 0 */
};

static double value_throughput(const struct figures *f)
{
  return f->throughput_rps;
}

static double value_mean(const struct figures *f)
{
  return f->latency_ms.mean;
}

static double value_p50(const struct figures *f)
{
  return f->latency_ms.p50;
}

static double value_p99(const struct figures *f)
{
  return f->latency_ms.p99;
}

static double value_slo(const struct figures *f)
{
  return 100 * f->slo_attainment;
}

static double value_gpu(const struct figures *f)
{
  return 100 * f->gpu_utilization;
}

static const struct column columns[] = {
    {"req/s", value_throughput, FALSE}, {"mean ms", value_mean, TRUE}, {"p50 ms", value_p50, TRUE},
    {"p99 ms", value_p99, TRUE},        {"SLO %", value_slo, FALSE},   {"GPU %", value_gpu, FALSE},
};

static const struct stored_run *run_at(const struct sweep_view *view, guint index)
{
  return view->runs->pdata[index];
}

/* Decimals that all cells of a column share, so that the points stand under each other. */
static const char *format_for(const struct sweep_view *view, const struct column *column)
{
  double largest = 0;
  for (guint i = 0; i < view->runs->len; i++)
    largest = MAX(largest, column->value(&run_at(view, i)->figures));
  return largest < 10 ? "%.3f" : largest < 1000 ? "%.2f" : "%.1f";
}

static char *cell_text(const struct column *column, const char *format, const struct figures *figures)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE + 320]; /* room for the largest double in %.3f */
  if (column->needs_completed && figures->completed == 0)
    return g_strdup("-");
  return g_strdup(g_ascii_formatd(text, sizeof text, format, column->value(figures)));
}

static void print_runs(const struct sweep_view *view, FILE *out)
{
  const char *formats[G_N_ELEMENTS(columns)];
  g_autoptr(Table) table = table_new(view->axes->len + 1 + G_N_ELEMENTS(columns), view->axes->len + 1);
  for (guint i = 0; i < view->axes->len; i++)
    table_cell(table, g_strdup(axis_title(view->axes, i)), FALSE);
  table_cell(table, g_strdup("system"), FALSE);
  for (size_t c = 0; c < G_N_ELEMENTS(columns); c++) {
    formats[c] = format_for(view, &columns[c]);
    table_cell(table, g_strdup(columns[c].title), FALSE);
  }
  for (guint run = 0; run < view->runs->len; run++) {
    for (guint i = 0; i < view->axes->len; i++)
      table_cell(table, g_strdup(sweep_view_value(view, run, i)), FALSE);
    table_cell(table, g_strdup(run_at(view, run)->system), FALSE);
    for (size_t c = 0; c < G_N_ELEMENTS(columns); c++)
      table_cell(table, cell_text(&columns[c], formats[c], &run_at(view, run)->figures), FALSE);
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
