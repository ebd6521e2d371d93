/* The progress bar; see progress.h. */
#include "harness/progress.h"
#include "core/units.h"
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define REDRAW_US (G_USEC_PER_SEC / 10)
#define BAR_MOST  30 /* columns of the bar */
#define BAR_LEAST 8  /* a narrower one says nothing: left out */

struct progress {
  char *label;
  int64_t total_ns;
  gboolean shown, drawn;
  int64_t start_us, drawn_us;
};

struct progress *progress_new(int64_t total_ns, const char *label, gboolean quiet)
{
  struct progress *progress = g_new0(struct progress, 1);
  progress->label = g_strdup(label);
  progress->total_ns = total_ns;
  progress->shown = !quiet && isatty(STDERR_FILENO);
  progress->start_us = g_get_monotonic_time();
  return progress;
}

static void append_duration(GString *line, double seconds)
{
  if (seconds < 60)
    g_string_append_printf(line, "%d s", (int)(seconds + 0.5));
  else if (seconds < 3600)
    g_string_append_printf(line, "%d:%02d min", (int)seconds / 60, (int)seconds % 60);
  else
    g_string_append_printf(line, "%d:%02d h", (int)(seconds / 3600), (int)(seconds / 60) % 60);
}

static void append_rate(GString *line, double per_s)
{
  if (per_s >= 1e6)
    g_string_append_printf(line, "%.2f M req/s", per_s / 1e6);
  else if (per_s >= 1e4)
    g_string_append_printf(line, "%.0f k req/s", per_s / 1e3);
  else
    g_string_append_printf(line, "%.0f req/s", per_s);
}

static void append_bar(GString *line, double fraction, unsigned columns)
{
  unsigned full = (unsigned)(fraction * columns);
  g_string_append_c(line, '[');
  for (unsigned i = 0; i < columns; i++)
    g_string_append_c(line, i < full ? '#' : '.');
  g_string_append(line, "] ");
}

static void append_left(GString *line, double fraction, double elapsed_s)
{
  if (fraction <= 0 || elapsed_s <= 0)
    return;
  g_string_append(line, "  ");
  append_duration(line, MIN(elapsed_s / fraction - elapsed_s, 1e8));
  g_string_append(line, " left");
}

/* What stands right of the bar: "42%  25.2 / 60.0 s  1.20 M req/s  12 s left". */
static char *facts_text(double fraction, int64_t done_ns, int64_t total_ns, uint64_t requests,
                        double elapsed_s)
{
  g_autoptr(GString) facts = g_string_new(NULL);
  double done_s = (double)done_ns / (double)NS_PER_S, total_s = (double)total_ns / (double)NS_PER_S;
  if (total_ns > 0)
    g_string_append_printf(facts, "%3d%%  %.1f / %.1f s", (int)(100 * fraction), done_s, total_s);
  else
    g_string_append_printf(facts, "%.1f s", done_s);
  if (elapsed_s > 0) {
    g_string_append(facts, "  ");
    append_rate(facts, (double)requests / elapsed_s);
  }
  append_left(facts, fraction, elapsed_s);
  return g_strdup(facts->str);
}

/* The label, the bar if it is asked for and has room, the facts. */
static char *line_text(const char *label, gboolean bar, double fraction, const char *facts, unsigned width)
{
  g_autoptr(GString) line = g_string_new(label);
  g_string_append_c(line, ' ');
  size_t taken = line->len + strlen(facts) + 3; /* brackets and a space */
  if (bar && taken + BAR_LEAST <= width)
    append_bar(line, fraction, MIN(BAR_MOST, width - (unsigned)taken));
  g_string_append(line, facts);
  g_string_truncate(line, MIN(line->len, width));
  return g_strdup(line->str);
}

char *progress_line(const char *label, int64_t done_ns, int64_t total_ns, uint64_t requests, double elapsed_s,
                    unsigned width)
{
  double fraction = total_ns > 0 ? CLAMP((double)done_ns / (double)total_ns, 0, 1) : 0;
  g_autofree char *facts = facts_text(fraction, done_ns, total_ns, requests, elapsed_s);
  return line_text(label, total_ns > 0, fraction, facts, width);
}

char *progress_share_line(const char *label, double done, double elapsed_s, unsigned width)
{
  double fraction = CLAMP(done, 0, 1);
  g_autoptr(GString) facts = g_string_new(NULL);
  g_string_append_printf(facts, "%3d%%", (int)(100 * fraction));
  append_left(facts, fraction, elapsed_s);
  return line_text(label, TRUE, fraction, facts->str, width);
}

static unsigned terminal_width(void)
{
  struct winsize size;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

/* TRUE when the bar is to be drawn now; *elapsed_s: wall time so far. */
static gboolean is_due(struct progress *progress, double *elapsed_s)
{
  if (!progress->shown)
    return FALSE;
  int64_t now_us = g_get_monotonic_time();
  if (now_us - progress->drawn_us < REDRAW_US && progress->drawn)
    return FALSE;
  progress->drawn_us = now_us;
  progress->drawn = TRUE;
  *elapsed_s = (double)(now_us - progress->start_us) / G_USEC_PER_SEC;
  return TRUE;
}

static void draw(const char *line)
{
  fprintf(stderr, "\r%s\033[K", line);
  fflush(stderr);
}

/* Lines are one column shorter than the terminal: a full one would wrap. */

void progress_update(struct progress *progress, int64_t done_ns, uint64_t requests)
{
  double elapsed_s;
  if (!is_due(progress, &elapsed_s))
    return;
  g_autofree char *line =
      progress_line(progress->label, done_ns, progress->total_ns, requests, elapsed_s, terminal_width() - 1);
  draw(line);
}

void progress_share(struct progress *progress, double done)
{
  double elapsed_s;
  if (!is_due(progress, &elapsed_s))
    return;
  g_autofree char *line = progress_share_line(progress->label, done, elapsed_s, terminal_width() - 1);
  draw(line);
}

void progress_free(struct progress *progress)
{
  if (!progress)
    return;
  if (progress->drawn) {
    fputs("\r\033[K", stderr);
    fflush(stderr);
  }
  g_free(progress->label);
  g_free(progress);
}
