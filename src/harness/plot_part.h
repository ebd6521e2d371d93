/* What the kinds of figures share. Private to plot*.c. */
#ifndef DM_PLOT_PART_H
#define DM_PLOT_PART_H

#include "harness/plot.h"
#include "harness/store_schema.h"

struct plot {
  struct store_reader *reader;
  GPtrArray *runs; /* of struct stored_run * */
  GString *script;
};

const struct stored_run *plot_run(const struct plot *plot, guint index);
/* "lc rgb '#…' lw … dt …" of a system: the same colour in every figure; dash NULL: the system's own. */
char *plot_style(const char *system, guint index, const char *dash);
void plot_number(GString *script, double value);

gboolean plot_latency_cdf(struct plot *plot, GError **error);
gboolean plot_throughput(struct plot *plot, GError **error);
gboolean plot_utilisation(struct plot *plot, GError **error);
gboolean plot_queue(struct plot *plot, GError **error);
gboolean plot_found(struct plot *plot, GError **error);

#endif
