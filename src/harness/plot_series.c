/* Figures over time: throughput, GPUs computing, requests waiting; from the usage rows. */
#include "core/error.h"
#include "core/units.h"
#include "harness/gnuplot.h"
#include "harness/plot_part.h"

#define POINTS 300 /* of each line: more rows are averaged */

/* What of usage is drawn. Columns are means over the row's interval, which began dt seconds before its end.
 */
struct series {
  const char *value;  /* SQL over a row of usage; dt = its length in seconds */
  const char *dashed; /* a second line, drawn where it is not always 0; or NULL */
  const char *axis;
};

struct point {
  double time_s, length_s, value[2];
};

static GArray *read_points(struct plot *plot, const struct stored_run *run, const struct series *series,
                           GError **error)
{
  g_autofree char *sql =
      g_strdup_printf("SELECT time_ns, dt, %s, %s FROM (SELECT *, (time_ns - lag(time_ns, 1, 0) OVER "
                      "(ORDER BY time_ns)) / 1e9 AS dt FROM usage WHERE run = ?) WHERE dt > 0 "
                      "ORDER BY time_ns",
                      series->value, series->dashed ? series->dashed : "0");
  g_autoptr(sqlite3_stmt) statement = store_prepare(plot->reader, sql, error);
  if (!statement)
    return NULL;
  sqlite3_bind_int64(statement, 1, run->id);
  g_autoptr(GArray) points = g_array_new(FALSE, FALSE, sizeof(struct point));
  int row;
  while ((row = store_step(plot->reader, statement, error)) == 1) {
    struct point point = {
        .time_s = sqlite3_column_double(statement, 0) / NS_PER_S,
        .length_s = sqlite3_column_double(statement, 1),
        .value = {sqlite3_column_double(statement, 2), sqlite3_column_double(statement, 3)}};
    g_array_append_val(points, point);
  }
  return row == 0 ? g_steal_pointer(&points) : NULL;
}

/* Writes "middle of the interval, first, second" for each `merge` rows, averaged by their lengths. The last
 * interval is left out where it is shorter than half of the one before: its mean would be noise. TRUE if the
 * second is ever not 0. */
static gboolean write_points(struct plot *plot, guint index, const GArray *points)
{
  gboolean second = FALSE;
  guint merge = (points->len + POINTS - 1) / POINTS;
  double length_before = 0;
  g_string_append_printf(plot->script, "$run%u << END\n", index);
  for (guint i = 0; i < points->len; i += merge) {
    double length_s = 0, sum[2] = {0, 0}, end_s = 0;
    for (guint j = i; j < MIN(i + merge, points->len); j++) {
      const struct point *point = &g_array_index(points, struct point, j);
      length_s += point->length_s;
      sum[0] += point->value[0] * point->length_s;
      sum[1] += point->value[1] * point->length_s;
      end_s = point->time_s;
    }
    if (i + merge >= points->len && length_s < length_before / 2)
      break;
    length_before = length_s;
    const double numbers[] = {end_s - length_s / 2, sum[0] / length_s, sum[1] / length_s};
    for (size_t k = 0; k < G_N_ELEMENTS(numbers); k++) {
      plot_number(plot->script, numbers[k]);
      g_string_append_c(plot->script, k + 1 < G_N_ELEMENTS(numbers) ? ' ' : '\n');
    }
    second |= sum[1] > 0;
  }
  g_string_append(plot->script, "END\n");
  return second;
}

static gboolean write_series(struct plot *plot, const struct series *series, GError **error)
{
  g_autoptr(GString) lines = g_string_new(NULL);
  for (guint i = 0; i < plot->runs->len; i++) {
    const struct stored_run *run = plot_run(plot, i);
    g_autoptr(GArray) points = read_points(plot, run, series, error);
    if (!points)
      return FALSE;
    if (points->len == 0)
      continue;
    gboolean second = write_points(plot, i, points);
    g_autofree char *style = plot_style(run->system, i, NULL);
    g_autofree char *title = gnuplot_quote(run->system);
    g_string_append_printf(lines, "%s$run%u using 1:2 with lines %s title %s", lines->len ? ", " : "plot ", i,
                           style, title);
    if (second) {
      g_autofree char *dashed = plot_style(run->system, i, "3");
      g_string_append_printf(lines, ", $run%u using 1:3 with lines %s notitle", i, dashed);
    }
  }
  if (!lines->len)
    return input_error(error, store_path(plot->reader), 0,
                       "holds no usage over time: run again with --set output.usage=all");
  g_string_append_printf(plot->script, "set xlabel 'time (s)'\nset ylabel '%s'\nset yrange [0:*]\n%s\n",
                         series->axis, lines->str);
  return TRUE;
}

gboolean plot_throughput(struct plot *plot, GError **error)
{
  return write_series(plot, &(struct series){"completed / dt", NULL, "requests completed a second"}, error);
}

gboolean plot_utilisation(struct plot *plot, GError **error)
{
  return write_series(plot,
                      &(struct series){"gpus_inference + gpus_training", "gpus_training",
                                       "GPUs computing (dashed: training alone)"},
                      error);
}

gboolean plot_queue(struct plot *plot, GError **error)
{
  return write_series(plot, &(struct series){"queue", NULL, "requests waiting"}, error);
}
