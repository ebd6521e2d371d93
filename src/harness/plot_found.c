/* Figure found: for each system a bar of all its requests, cut by where their model was found. */
#include "harness/gnuplot.h"
#include "harness/plot_part.h"

#define PARTS (FOUND_COUNT + 1) /* and those that did not complete */

struct part {
  const char *title, *colour;
};

/* The palette of Okabe and Ito (2008), from what costs nothing to what costs most. */
static const struct part parts[PARTS] = {
    [FOUND_RESIDENT] = {"resident on the GPU", "#009E73"},
    [FOUND_JOINED] = {"joined a load", "#56B4E9"},
    [FOUND_HOST] = {"host memory", "#0072B2"},
    [FOUND_SSD] = {"local SSD", "#F0E442"},
    [FOUND_REMOTE] = {"memory pool", "#E69F00"},
    [FOUND_PROCESS_START] = {"process started", "#D55E00"},
    [FOUND_COUNT] = {"rejected or failed", "#999999"},
};

static uint64_t part_count(const struct figures *figures, size_t part)
{
  return part < FOUND_COUNT ? figures->found[part] : figures->rejected + figures->failed;
}

/* One line a system: name, then per cent of all its requests by part. */
static void write_bars(struct plot *plot)
{
  g_string_append(plot->script, "$bars << END\n");
  for (guint i = 0; i < plot->runs->len; i++) {
    const struct stored_run *run = plot_run(plot, i);
    g_autofree char *name = gnuplot_data_label(run->system);
    g_string_append(plot->script, name);
    for (size_t part = 0; part < PARTS; part++) {
      g_string_append_c(plot->script, ' ');
      double requests = (double)MAX(run->figures.requests, 1);
      plot_number(plot->script, 100 * (double)part_count(&run->figures, part) / requests);
    }
    g_string_append_c(plot->script, '\n');
  }
  g_string_append(plot->script, "END\n");
}

static gboolean is_used(const struct plot *plot, size_t part)
{
  for (guint i = 0; i < plot->runs->len; i++)
    if (part_count(&plot_run(plot, i)->figures, part) > 0)
      return TRUE;
  return FALSE;
}

gboolean plot_found(struct plot *plot, G_GNUC_UNUSED GError **error)
{
  write_bars(plot);
  g_string_append(plot->script,
                  "set style data histograms\nset style histogram rowstacked\nset boxwidth 0.62\n"
                  "set style fill solid 1 border rgb '#ffffff'\nset xtics scale 0\nunset grid\n"
                  "set grid y lc rgb '#dddddd' lt 1 lw 0.6\nset key invert\n"
                  "set ylabel 'requests (%)'\nset yrange [0:100]\nplot ");
  const char *separator = "";
  for (size_t part = 0; part < PARTS; part++) {
    if (!is_used(plot, part) &&
        part != FOUND_RESIDENT) /* one is always there: gnuplot needs something to draw */
      continue;
    g_autofree char *title = gnuplot_quote(parts[part].title);
    g_string_append_printf(plot->script, "%s$bars using %zu:xtic(1) lc rgb '%s' title %s", separator,
                           part + 2, parts[part].colour, title);
    separator = ", ";
  }
  g_string_append_c(plot->script, '\n');
  return TRUE;
}
