/* Figures of a stored run, drawn by gnuplot: one line or bar a system, colours that colour-blind people can
 * tell apart. */
#ifndef DM_PLOT_H
#define DM_PLOT_H

#include "harness/store.h"

struct plot;

/* Of the kind sweep; NULL: its default. */
struct plot_options {
  const char *x; /* key that was varied */
  const char *y; /* figure of the JSON object */
};

/* A kind of figure. */
struct plot_kind {
  const char *name;
  /* Appends data blocks, axes and the plot command; FALSE + error where the database lacks what it needs. */
  gboolean (*write)(struct plot *plot, GError **error);
};

/* All kinds, ended by one without a name. */
extern const struct plot_kind plot_kinds[];

/* The gnuplot script of a figure in the format of path's extension, which goes to gnuplot's standard output.
 * options: NULL, none. NULL + DM_ERROR_INPUT: unknown kind or extension, or rows that were not stored (the
 * message says which setting stores them). Free with g_free. */
char *plot_script(struct store_reader *reader, const char *kind, const struct plot_options *options,
                  const char *path, GError **error);
/* Before any work: the path's extension is one that figures are drawn in, and output_file_check. A figure
 * that is there is replaced: it can be drawn again. */
gboolean plot_output_check(const char *path, GError **error);
/* Draws to path.partial, then renames. Errors also as gnuplot_run. */
gboolean plot_write(struct store_reader *reader, const char *kind, const struct plot_options *options,
                    const char *path, GError **error);

#endif
