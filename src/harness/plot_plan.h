/* Figure of a plan: a metric over a key, a line a search, its answer marked, and the bound that it holds to.
 */
#ifndef DM_PLOT_PLAN_H
#define DM_PLOT_PLAN_H

#include <glib.h>

struct plan_point {
  double x, y;
};

struct plan_line {
  const char *system, *title;
  const struct plan_point *point; /* in order of x */
  guint points;
  gint answer; /* index into point, or -1 */
};

struct plan_figure {
  const char *title, *x_label, *y_label;
  double bound;
  const struct plan_line *line;
  guint lines;
  char *const *values; /* of the key, where it has no numbers (x is an index then); else NULL */
  gboolean estimated;  /* a run uses estimated profiles */
};

/* Draws to path.partial, then renames. Errors as plot_write. */
gboolean plot_plan(const struct plan_figure *figure, const char *path, GError **error);

#endif
