/* Real and simulated latencies in one figure; see plot_overlay.h. */
#include "harness/plot_overlay.h"

#include "harness/plot_part.h"

gboolean plot_overlay_write(struct store_reader *real, struct store_reader *simulated, const char *path,
                            GError **error)
{
  g_autoptr(GPtrArray) real_runs = store_runs(real, error);
  g_autoptr(GPtrArray) simulated_runs = real_runs ? store_runs(simulated, error) : NULL;
  if (!simulated_runs)
    return FALSE;
  g_autoptr(GString) script = g_string_new(NULL), text = g_string_new(NULL);
  struct plot plot = {.reader = real, .runs = real_runs, .script = script};
  struct plot over = {.reader = simulated, .runs = simulated_runs, .script = script};
  struct latency_lines lines = {.text = text};
  if (!plot_begin(&plot, path, error) || !plot_latency_add(&plot, "real", "1", &lines, error) ||
      !plot_latency_add(&over, "simulated", "3", &lines, error))
    return FALSE;
  plot_latency_end(&plot, &lines);
  return plot_finish(script->str, path, error);
}
