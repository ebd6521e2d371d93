/* Figure of a plan; see plot_plan.h. */
#include "harness/plot_plan.h"

#include "harness/gnuplot.h"
#include "harness/plot_part.h"

#define WIDE_RATIO 20 /* greatest by least value of the key, from which on its axis is logarithmic */

static void write_points(GString *script, const struct plan_line *line)
{
  for (guint i = 0; i < line->points; i++) {
    plot_number(script, line->point[i].x);
    g_string_append_c(script, ' ');
    plot_number(script, line->point[i].y);
    g_string_append_c(script, '\n');
  }
  g_string_append(script, "END\n");
}

/* The answer is a block of its own: a ring around its point. */
static void write_answer(GString *script, const struct plan_line *line, guint number)
{
  g_string_append_printf(script, "$answer%u << END\n", number);
  if (line->answer >= 0) {
    struct plan_line only = {.point = line->point + line->answer, .points = 1};
    write_points(script, &only);
  } else {
    g_string_append(script, "NaN NaN\nEND\n");
  }
}

static void write_lines(GString *script, const struct plan_figure *figure)
{
  for (guint i = 0; i < figure->lines; i++) {
    g_string_append_printf(script, "$line%u << END\n", i);
    write_points(script, &figure->line[i]);
    write_answer(script, &figure->line[i], i);
  }
  g_string_append(script, "bound = ");
  plot_number(script, figure->bound);
  g_string_append(script, "\nplot bound with lines lc rgb '#999999' lw 1.2 dt 2 title 'bound'");
  for (guint i = 0; i < figure->lines; i++) {
    const struct plan_line *line = &figure->line[i];
    g_autofree char *style = plot_style(line->system, i, "1"), *title = gnuplot_quote(line->title);
    if (line->points == 0) { /* nothing could be run: the legend still says so */
      g_string_append_printf(script, ", NaN with linespoints %s pt 7 ps 0.5 title %s", style, title);
      continue;
    }
    g_string_append_printf(script,
                           ", $line%u using 1:2 with linespoints %s pt 7 ps 0.5 title %s, "
                           "$answer%u using 1:2 with points %s pt 6 ps 2 notitle",
                           i, style, title, i, style);
  }
  g_string_append_c(script, '\n');
}

/* Values of the key span more than a linear axis can show. */
static gboolean is_wide(const struct plan_figure *figure)
{
  double least = G_MAXDOUBLE, most = 0;
  for (guint i = 0; i < figure->lines; i++)
    for (guint k = 0; k < figure->line[i].points; k++) {
      least = MIN(least, figure->line[i].point[k].x);
      most = MAX(most, figure->line[i].point[k].x);
    }
  return !figure->values && least > 0 && most >= WIDE_RATIO * least;
}

static void write_axes(GString *script, const struct plan_figure *figure)
{
  g_autofree char *x = gnuplot_quote(figure->x_label), *y = gnuplot_quote(figure->y_label);
  g_string_append_printf(
      script, "set xlabel %s\nset ylabel %s\nset offsets graph 0.03, graph 0.03, graph 0.05, graph 0\n", x,
      y);
  if (is_wide(figure))
    g_string_append(script, "set logscale x 2\n");
  if (!figure->values)
    return;
  g_string_append(script, "set xtics (");
  for (guint i = 0; figure->values[i]; i++) {
    g_autofree char *label = gnuplot_quote_label(figure->values[i]);
    g_string_append_printf(script, "%s%s %u", i ? ", " : "", label, i);
  }
  g_string_append(script, ")\n");
}

gboolean plot_plan(const struct plan_figure *figure, const char *path, GError **error)
{
  g_autoptr(GString) script = g_string_new(NULL);
  if (!plot_preamble(script, path, figure->title, figure->estimated, error))
    return FALSE;
  write_axes(script, figure);
  write_lines(script, figure);
  return plot_finish(script->str, path, error);
}
