/* Figure sweep: one figure of the runs over one varied key, a line for each system and for each setting of
 * the other keys. Runs that differ in their seed alone are one point: their mean, with the least and the
 * most. */
#include "core/error.h"
#include "harness/figures.h"
#include "harness/gnuplot.h"
#include "harness/nearest.h"
#include "harness/plot_part.h"
#include "harness/setting.h"
#include "harness/sweep_view.h"

#define SEED_KEY      "experiment.seed"
#define DEFAULT_Y     "throughput_rps"
#define TICKS_MOST    12  /* more values than these have no ticks of their own */
#define GEOMETRIC     1.5 /* every value at least so much times the one before: a logarithmic axis */
#define GEOMETRIC_LEN 4
#define LINES_MOST    48

struct drawing {
  struct plot *plot;
  const struct sweep_view *view;
  const struct figure_field *y;
  guint x;          /* axis */
  gboolean numeric; /* its values are */
  GString *lines;   /* the plot command so far */
};

static const struct axis *axis_at(const struct drawing *d, guint axis)
{
  return d->view->axes->pdata[axis];
}

static const struct stored_run *run_at(const struct drawing *d, guint run)
{
  return d->view->runs->pdata[run];
}

static double x_number(const struct drawing *d, guint value)
{
  double number = value;
  if (d->numeric)
    number_parse(axis_at(d, d->x)->values[value], -G_MAXDOUBLE, G_MAXDOUBLE, &number, NULL);
  return number;
}

/* --- which axis
 * -----------------------------------------------------------------------------------------------------*/

static gboolean choose_x(struct drawing *d, GError **error)
{
  g_autofree const char **names = g_new0(const char *, d->view->axes->len + 1);
  const char *wanted = d->plot->options->x;
  gboolean found = !wanted;
  for (guint i = 0; i < d->view->axes->len && !(found && wanted); i++) {
    names[i] = axis_at(d, i)->key;
    found = found || g_str_equal(wanted, names[i]) || g_str_equal(wanted, axis_title(d->view->axes, i));
    d->x = found && wanted ? i : 0;
  }
  if (!found)
    return input_error(error, "--x", 0, "\"%s\" was not varied; nearest is \"%s\"", wanted,
                       nearest_word(wanted, names));
  d->numeric = TRUE;
  for (char **value = axis_at(d, d->x)->values; *value && d->numeric; value++)
    d->numeric = number_parse(*value, -G_MAXDOUBLE, G_MAXDOUBLE, &(double){0}, NULL);
  return TRUE;
}

/* --- lines
 * ----------------------------------------------------------------------------------------------------------*/

struct point {
  double sum, least, most;
  guint count;
};

struct line {
  guint first;         /* its first run */
  guint variant;       /* number of this line among those of its system: told apart by dash and point */
  struct point *point; /* [values of x] */
};

static gboolean is_seed(const struct drawing *d, guint axis)
{
  return axis != d->x && g_str_equal(axis_at(d, axis)->key, SEED_KEY);
}

/* What a line is called; runs of one line have the same. */
static char *line_title(const struct drawing *d, guint run)
{
  GString *title = g_string_new(run_at(d, run)->system);
  for (guint i = 0; i < d->view->axes->len; i++)
    if (i != d->x && axis_at(d, i)->count > 1 && !is_seed(d, i))
      g_string_append_printf(title, ", %s %s", axis_title(d->view->axes, i),
                             sweep_view_value(d->view, run, i));
  return g_string_free(title, FALSE);
}

static guint lines_of_system(const struct drawing *d, const GArray *lines, const char *system)
{
  guint count = 0;
  for (guint i = 0; i < lines->len; i++)
    count += g_str_equal(run_at(d, g_array_index(lines, struct line, i).first)->system, system);
  return count;
}

static void line_clear(gpointer data)
{
  g_free(((struct line *)data)->point);
}

static void point_add(struct point *point, double y)
{
  point->least = point->count ? MIN(point->least, y) : y;
  point->most = point->count ? MAX(point->most, y) : y;
  point->sum += y;
  point->count++;
}

/* Position of each value of x; free with g_hash_table_unref. */
static GHashTable *x_positions(const struct drawing *d)
{
  GHashTable *positions = g_hash_table_new(g_str_hash, g_str_equal);
  for (guint i = 0; i < axis_at(d, d->x)->count; i++)
    g_hash_table_insert(positions, axis_at(d, d->x)->values[i], GUINT_TO_POINTER(i + 1));
  return positions;
}

/* All lines, in the order of their first runs; NULL + error: more than a figure can show. */
static GArray *gather_lines(const struct drawing *d, GError **error)
{
  g_autoptr(GArray) lines = g_array_new(FALSE, TRUE, sizeof(struct line));
  g_array_set_clear_func(lines, line_clear);
  g_autoptr(GHashTable) by_title = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr(GHashTable) positions = x_positions(d);
  for (guint run = 0; run < d->view->runs->len; run++) {
    g_autofree char *title = line_title(d, run);
    guint number = GPOINTER_TO_UINT(g_hash_table_lookup(by_title, title));
    if (number == 0) {
      struct line line = {.first = run,
                          .variant = lines_of_system(d, lines, run_at(d, run)->system),
                          .point = g_new0(struct point, axis_at(d, d->x)->count)};
      g_array_append_vals(lines, &line, 1);
      number = lines->len;
      g_hash_table_insert(by_title, g_steal_pointer(&title), GUINT_TO_POINTER(number));
    }
    if (lines->len > LINES_MOST)
      return input_error(error, "--x", 0, "more than %d lines: take another key, or vary less", LINES_MOST),
             NULL;
    guint at = GPOINTER_TO_UINT(g_hash_table_lookup(positions, sweep_view_value(d->view, run, d->x)));
    if (at > 0)
      point_add(&g_array_index(lines, struct line, number - 1).point[at - 1],
                figure_number(&run_at(d, run)->figures, d->y));
  }
  return g_steal_pointer(&lines);
}

/* "x mean least most", a line each. */
static void write_points(const struct drawing *d, const struct line *line)
{
  for (guint i = 0; i < axis_at(d, d->x)->count; i++) {
    const struct point *point = &line->point[i];
    if (point->count == 0)
      continue;
    const double columns[] = {x_number(d, i), point->sum / point->count, point->least, point->most};
    for (size_t c = 0; c < G_N_ELEMENTS(columns); c++) {
      plot_number(d->plot->script, columns[c]);
      g_string_append_c(d->plot->script, c + 1 < G_N_ELEMENTS(columns) ? ' ' : '\n');
    }
  }
}

static gboolean has_seeds(const struct drawing *d)
{
  for (guint i = 0; i < d->view->axes->len; i++)
    if (axis_at(d, i)->count > 1 && is_seed(d, i))
      return TRUE;
  return FALSE;
}

/* Bars of the seeds lie under the line, so that its points stay whole. */
static void write_line(const struct drawing *d, const struct line *line)
{
  guint first = line->first, variant = line->variant;
  g_autofree char *dash = variant > 0 ? g_strdup_printf("%u", variant % 5 + 1) : NULL;
  g_autofree char *style = plot_style(run_at(d, first)->system, first, dash);
  g_autofree char *bars = plot_style(run_at(d, first)->system, first, "1");
  g_autofree char *text = line_title(d, first), *title = gnuplot_quote(text);
  g_string_append_printf(d->plot->script, "$line%u << END\n", first);
  write_points(d, line);
  g_string_append(d->plot->script, "END\n");
  g_string_append(d->lines, d->lines->len ? ", " : "plot ");
  if (has_seeds(d))
    g_string_append_printf(d->lines, "$line%u using 1:2:3:4 with yerrorbars %s pt -1 notitle, ", first, bars);
  g_string_append_printf(d->lines, "$line%u using 1:2 with linespoints %s pt %u ps 0.9 title %s", first,
                         style, 7 + 2 * (variant % 4), title);
}

static gboolean write_lines(struct drawing *d, GError **error)
{
  g_autoptr(GArray) lines = gather_lines(d, error);
  for (guint i = 0; lines && i < lines->len; i++)
    write_line(d, &g_array_index(lines, struct line, i));
  return lines != NULL;
}

/* --- axes of the figure
 * ---------------------------------------------------------------------------------------------*/

static gboolean is_geometric(const struct drawing *d)
{
  guint count = axis_at(d, d->x)->count;
  if (!d->numeric || count < GEOMETRIC_LEN)
    return FALSE;
  for (guint i = 0; i < count; i++)
    if (x_number(d, i) <= 0 || (i > 0 && x_number(d, i) < GEOMETRIC * x_number(d, i - 1)))
      return FALSE;
  return TRUE;
}

static void write_axes(const struct drawing *d)
{
  GString *script = d->plot->script;
  const struct axis *axis = axis_at(d, d->x);
  g_autofree char *x = gnuplot_quote(axis->key);
  g_autofree char *name =
      d->y->group ? g_strconcat(d->y->group, ".", d->y->name, NULL) : g_strdup(d->y->name);
  g_autofree char *y = gnuplot_quote(name);
  g_string_append_printf(script,
                         "set xlabel %s\nset ylabel %s\nset yrange [0:*]\nset offsets graph 0.03, graph "
                         "0.03, graph 0, graph 0\n",
                         x, y);
  if (is_geometric(d))
    g_string_append(script, "set logscale x\n");
  if (d->numeric && axis->count > TICKS_MOST)
    return;
  g_string_append(script, "set xtics (");
  for (guint i = 0; i < axis->count; i++) {
    g_autofree char *label = gnuplot_quote_label(axis->values[i]);
    g_string_append_printf(script, "%s%s ", i ? ", " : "", label);
    plot_number(script, x_number(d, i));
  }
  g_string_append(script, ")\n");
}

/* Of a database without axes: a bar a run. */
static void write_bars(struct plot *plot, const struct figure_field *y)
{
  g_autofree char *name = figure_column(y), *label = gnuplot_quote(name);
  g_string_append(plot->script, "$bars << END\n");
  for (guint i = 0; i < plot->runs->len; i++) {
    g_autofree char *system = gnuplot_data_label(plot_run(plot, i)->system);
    g_string_append_printf(plot->script, "%s ", system);
    plot_number(plot->script, figure_number(&plot_run(plot, i)->figures, y));
    g_string_append_c(plot->script, '\n');
  }
  g_string_append_printf(plot->script,
                         "END\nset boxwidth 0.62\nset style fill solid 1\nset yrange [0:*]\nset ylabel %s\n"
                         "plot $bars using 0:2:xtic(1) with boxes lc rgb '#0072B2' notitle\n",
                         label);
}

gboolean plot_sweep(struct plot *plot, GError **error)
{
  const char *name = plot->options->y ? plot->options->y : DEFAULT_Y;
  struct drawing d = {.plot = plot, .y = figure_find(name, "--y", error)};
  g_autoptr(GArray) facts = d.y ? store_facts(plot->reader, error) : NULL;
  if (!facts)
    return FALSE;
  if (facts->len == 0 && plot->options->x)
    return input_error(error, "--x", 0, "%s is no sweep's: nothing was varied", store_path(plot->reader));
  if (facts->len == 0) {
    write_bars(plot, d.y);
    return TRUE;
  }
  g_autoptr(SweepView) view = sweep_view_read(plot->reader, error);
  g_autoptr(GString) lines = g_string_new(NULL);
  d.view = view;
  d.lines = lines;
  if (!view || !choose_x(&d, error))
    return FALSE;
  write_axes(&d);
  if (!write_lines(&d, error))
    return FALSE;
  g_string_append_printf(plot->script, "%s\n", lines->str);
  return TRUE;
}
