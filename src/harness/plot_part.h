/* What the kinds of figures share. Private to plot*.c. */
#ifndef DM_PLOT_PART_H
#define DM_PLOT_PART_H

#include "harness/plot.h"
#include "harness/store_schema.h"

struct plot {
  struct store_reader *reader;
  GPtrArray *runs; /* of struct stored_run * */
  GString *script;
  const struct plot_options *options;
};

const struct stored_run *plot_run(const struct plot *plot, guint index);
/* "lc rgb '#…' lw … dt …" of a system: the same colour in every figure; dash NULL: the system's own. */
char *plot_style(const char *system, guint index, const char *dash);
void plot_number(GString *script, double value);

/* Begins the script of a figure: format of path's extension, title, common looks. FALSE + DM_ERROR_INPUT:
 * unknown extension, or no run. */
gboolean plot_begin(struct plot *plot, const char *path, GError **error);
/* The same where there is no plot: format, title, common looks, and a line at the foot if profiles are
 * estimated. */
gboolean plot_preamble(GString *script, const char *path, const char *title, gboolean estimated,
                       GError **error);
/* Runs the script into path.partial and makes that path's file. */
gboolean plot_finish(const char *script, const char *path, GError **error);

/* Lines of latency distributions: the plot command so far, and the span of latencies in ns. */
struct latency_lines {
  GString *text;
  int64_t least, most;
};
/* Appends a line for each run of the plot. kind: after the system's name, "" for none; dash as for
 * plot_style. */
gboolean plot_latency_add(struct plot *plot, const char *kind, const char *dash, struct latency_lines *lines,
                          GError **error);
void plot_latency_end(struct plot *plot, const struct latency_lines *lines);

gboolean plot_latency_cdf(struct plot *plot, GError **error);
gboolean plot_throughput(struct plot *plot, GError **error);
gboolean plot_utilisation(struct plot *plot, GError **error);
gboolean plot_queue(struct plot *plot, GError **error);
gboolean plot_sweep(struct plot *plot, GError **error);
gboolean plot_found(struct plot *plot, GError **error);

#endif
