/* Figures: kinds, styles, and how a script becomes a file; see plot.h. */
#include "harness/plot.h"
#include "core/error.h"
#include "harness/gnuplot.h"
#include "harness/json_writer.h"
#include "harness/nearest.h"
#include "harness/output_file.h"
#include "harness/plot_part.h"
#include "harness/plot_plan.h"
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

const struct plot_kind plot_kinds[] = {
    {"latency-cdf", plot_latency_cdf},
    {"throughput", plot_throughput},
    {"utilisation", plot_utilisation},
    {"found", plot_found},
    {"queue", plot_queue},
    {"sweep", plot_sweep},
    {NULL, NULL},
};

struct output_format {
  const char *extension, *terminal;
  const char *end; /* stands in the last bytes of a file that is whole */
};

/* noenhanced: an underscore in a name is an underscore. */
static const struct output_format formats[] = {
    {".png", "pngcairo noenhanced size 1280,800 font 'Sans,14' linewidth 1.4 background '#ffffff'", "IEND"},
    {".svg", "svg noenhanced size 960,600 dynamic font 'Sans,13' linewidth 1.2 background '#ffffff'",
     "</svg>"},
    {".pdf", "pdfcairo noenhanced size 8in,5in font 'Sans,12' linewidth 1.4 background '#ffffff'", "%%EOF"},
};

struct style {
  const char *system, *colour, *dash;
};

/* The palette of Okabe and Ito (2008). Bounds are dashed. */
static const struct style styles[] = {
    {"distmind", "#D55E00", "1"},     {"pipeswitch", "#0072B2", "1"},    {"mps", "#009E73", "1"},
    {"ray", "#E69F00", "1"},          {"serverlessllm", "#CC79A7", "1"}, {"ideal", "#000000", "2"},
    {"ideal-shared", "#777777", "4"},
};

static const char *const other_colours[] = {"#56B4E9", "#F0E442", "#8C510A", "#5E3C99", "#35978F"};

const struct stored_run *plot_run(const struct plot *plot, guint index)
{
  return plot->runs->pdata[index];
}

char *plot_style(const char *system, guint index, const char *dash)
{
  for (size_t i = 0; i < G_N_ELEMENTS(styles); i++)
    if (strcmp(styles[i].system, system) == 0)
      return g_strdup_printf("lc rgb '%s' lw 2 dt %s", styles[i].colour, dash ? dash : styles[i].dash);
  return g_strdup_printf("lc rgb '%s' lw 2 dt %s", other_colours[index % G_N_ELEMENTS(other_colours)],
                         dash ? dash : "1");
}

void plot_number(GString *script, double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append(script, isfinite(value) ? real_format(value, text) : "NaN");
}

static const struct output_format *find_format(const char *path, GError **error)
{
  g_autofree char *lower = g_ascii_strdown(path, -1);
  for (size_t i = 0; i < G_N_ELEMENTS(formats); i++)
    if (g_str_has_suffix(lower, formats[i].extension))
      return &formats[i];
  input_error(error, path, 0, "expected a file name that ends in .png, .svg or .pdf");
  return NULL;
}

static const struct plot_kind *find_kind(const char *name, GError **error)
{
  const char *names[G_N_ELEMENTS(plot_kinds)] = {NULL};
  for (size_t i = 0; plot_kinds[i].name; i++) {
    if (strcmp(plot_kinds[i].name, name) == 0)
      return &plot_kinds[i];
    names[i] = plot_kinds[i].name;
  }
  g_autofree char *known = g_strjoinv(", ", (char **)names);
  input_error(error, NULL, 0, "unknown figure \"%s\", nearest is \"%s\"; known are %s", name,
              nearest_word(name, names), known);
  return NULL;
}

static gboolean any_notice(const struct plot *plot, const char *word)
{
  for (guint i = 0; i < plot->runs->len; i++)
    if (strstr(plot_run(plot, i)->notices, word))
      return TRUE;
  return FALSE;
}

gboolean plot_output_check(const char *path, GError **error)
{
  return find_format(path, error) && output_file_check(path, TRUE, error);
}

gboolean plot_preamble(GString *script, const char *path, const char *title, gboolean estimated,
                       GError **error)
{
  const struct output_format *format = find_format(path, error);
  if (!format)
    return FALSE;
  g_autofree char *quoted_title = gnuplot_quote(title);
  g_string_append_printf(
      script,
      "set encoding utf8\nset terminal %s\nset output\nset title %s font ',17'\n"
      "set key outside right top Left reverse samplen 3.6 spacing 1.25\n"
      "set border 3 lc rgb '#555555'\nset tics nomirror out\nset grid lc rgb '#dddddd' lt 1 lw 0.6\n"
      "set bmargin 4.5\n",
      format->terminal, quoted_title);
  if (estimated)
    g_string_append(script, "set label 'uses estimated profiles' at screen 0.99,0.025 right font ',11' "
                            "textcolor rgb '#555555'\n");
  return TRUE;
}

gboolean plot_begin(struct plot *plot, const char *path, GError **error)
{
  if (!find_format(path, error))
    return FALSE;
  if (plot->runs->len == 0)
    return input_error(error, store_path(plot->reader), 0, "holds no run");
  return plot_preamble(plot->script, path, plot_run(plot, 0)->experiment, any_notice(plot, "estimated"),
                       error);
}

/* A line or bar is called by its system alone. */
static gboolean check_points(const struct store_reader *reader, const GPtrArray *runs, GError **error)
{
  for (guint i = 1; i < runs->len; i++)
    for (guint j = 0; j < i; j++) {
      const struct stored_run *run = runs->pdata[i], *other = runs->pdata[j];
      if (strcmp(run->system, other->system) == 0)
        return input_error(error, store_path(reader), 0,
                           "holds several runs of %s, of a sweep: the kind sweep draws them", run->system);
    }
  return TRUE;
}

char *plot_script(struct store_reader *reader, const char *kind, const struct plot_options *options,
                  const char *path, GError **error)
{
  static const struct plot_options defaults;
  const struct plot_kind *chosen = find_kind(kind, error);
  if (!chosen || !find_format(path, error))
    return NULL;
  g_autoptr(GPtrArray) runs = store_runs(reader, error);
  if (!runs)
    return NULL;
  if (chosen->write != plot_sweep && !check_points(reader, runs, error))
    return NULL;
  g_autoptr(GString) script = g_string_new(NULL);
  struct plot plot = {
      .reader = reader, .runs = runs, .script = script, .options = options ? options : &defaults};
  return plot_begin(&plot, path, error) && chosen->write(&plot, error) ? g_strdup(script->str) : NULL;
}

/* gnuplot says nothing of what it could not write. */
static gboolean is_whole(int fd, const struct output_format *format)
{
  char end[64];
  off_t size = lseek(fd, 0, SEEK_END), from = MAX(size - (off_t)sizeof end, 0);
  ssize_t got = size > 0 ? pread(fd, end, sizeof end, from) : 0;
  return got > 0 && memmem(end, (size_t)got, format->end, strlen(format->end)) != NULL;
}

static gboolean draw(const char *script, int fd, const char *path, GError **error)
{
  if (!gnuplot_run(script, fd, error))
    return FALSE;
  if (is_whole(fd, find_format(path, NULL)))
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: gnuplot wrote no whole figure", path);
  return FALSE;
}

gboolean plot_finish(const char *script, const char *path, GError **error)
{
  g_autofree char *partial = g_strconcat(path, ".partial", NULL);
  int fd = open(partial, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0)
    return input_error(error, partial, 0, "cannot write: %s", g_strerror(errno));
  gboolean good = draw(script, fd, path, error);
  close(fd);
  if (good && g_rename(partial, path) != 0) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: cannot rename to %s: %s", partial, path,
                g_strerror(errno));
    good = FALSE;
  }
  if (!good)
    g_unlink(partial);
  return good;
}

gboolean plot_write(struct store_reader *reader, const char *kind, const struct plot_options *options,
                    const char *path, GError **error)
{
  g_autofree char *script = plot_script(reader, kind, options, path, error);
  return script && plot_finish(script, path, error);
}
