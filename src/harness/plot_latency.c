/* Figure latency-cdf: the share of completed requests that were answered within a time. */
#include "core/error.h"
#include "harness/gnuplot.h"
#include "harness/histogram.h"
#include "harness/plot_part.h"
#include "core/units.h"

#define POINTS    400 /* of each line, evenly by share */
#define LOG_RATIO 20  /* a wider span of latencies is drawn on a logarithmic axis */

typedef struct histogram Histogram;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Histogram, histogram_free)

static struct histogram *read_latencies(struct plot *plot, const struct stored_run *run, GError **error)
{
  g_autoptr(sqlite3_stmt) statement = store_prepare(
      plot->reader,
      "SELECT end_ns - arrival_ns FROM request WHERE key BETWEEN ? AND ? AND outcome = 'completed' "
      "AND arrival_ns >= ?",
      error);
  if (!statement)
    return NULL;
  sqlite3_bind_int64(statement, 1, run->id << REQUEST_ID_BITS);
  sqlite3_bind_int64(statement, 2, run->id << REQUEST_ID_BITS | REQUEST_ID_MAX);
  sqlite3_bind_int64(statement, 3, run->warmup_ns);
  g_autoptr(Histogram) histogram = histogram_new();
  int row;
  while ((row = store_step(plot->reader, statement, error)) == 1)
    histogram_add(histogram, sqlite3_column_int64(statement, 0));
  return row == 0 ? g_steal_pointer(&histogram) : NULL;
}

/* One block of lines "ms share". Widens the span to its own. */
static void write_points(struct plot *plot, const char *block, const struct histogram *histogram,
                         struct latency_lines *lines)
{
  g_string_append_printf(plot->script, "$%s << END\n", block);
  for (guint i = 0; i <= POINTS; i++) {
    double share = (double)i / POINTS;
    int64_t ns = MAX(histogram_quantile(histogram, share), 1);
    plot_number(plot->script, (double)ns / NS_PER_MS);
    g_string_append_c(plot->script, ' ');
    plot_number(plot->script, share);
    g_string_append_c(plot->script, '\n');
    lines->least = lines->most ? min_i64(lines->least, ns) : ns;
    lines->most = max_i64(lines->most, ns);
  }
  g_string_append(plot->script, "END\n");
}

gboolean plot_latency_add(struct plot *plot, const char *kind, const char *dash, struct latency_lines *lines,
                          GError **error)
{
  for (guint i = 0; i < plot->runs->len; i++) {
    const struct stored_run *run = plot_run(plot, i);
    g_autoptr(Histogram) histogram = read_latencies(plot, run, error);
    if (!histogram)
      return FALSE;
    if (histogram_count(histogram) == 0)
      continue;
    g_autofree char *block = g_strdup_printf("%s%u", *kind ? kind : "run", i);
    g_autofree char *name = *kind ? g_strdup_printf("%s, %s", run->system, kind) : g_strdup(run->system);
    g_autofree char *style = plot_style(run->system, i, dash);
    g_autofree char *title = gnuplot_quote(name);
    write_points(plot, block, histogram, lines);
    g_string_append_printf(lines->text, "%s$%s using 1:2 with lines %s title %s",
                           lines->text->len ? ", " : "plot ", block, style, title);
  }
  return lines->text->len > 0 ||
         input_error(error, store_path(plot->reader), 0,
                     "holds no completed request: run again with --set output.requests=all (or sample:N)");
}

void plot_latency_end(struct plot *plot, const struct latency_lines *lines)
{
  if (lines->most / LOG_RATIO > lines->least)
    g_string_append(plot->script, "set logscale x\nset grid mxtics lc rgb '#dddddd', lc rgb '#eeeeee'\n");
  g_string_append_printf(
      plot->script,
      "set xlabel 'latency (ms)'\nset ylabel 'share of completed requests'\nset format x '%%g'\n"
      "set yrange [0:1]\n%s\n",
      lines->text->str);
}

gboolean plot_latency_cdf(struct plot *plot, GError **error)
{
  g_autoptr(GString) text = g_string_new(NULL);
  struct latency_lines lines = {.text = text};
  if (!plot_latency_add(plot, "", NULL, &lines, error))
    return FALSE;
  plot_latency_end(plot, &lines);
  return TRUE;
}
