/* `plot`: a figure of a stored run. */
#include "harness/command.h"
#include "harness/plot.h"
#include "core/error.h"
#include "harness/store_schema.h"

static gboolean run_plot(int argc, char **argv, GError **error)
{
  g_autofree char *output = NULL, *x = NULL, *y = NULL;
  const GOptionEntry entries[] = {{"output", 'o', 0, G_OPTION_ARG_FILENAME, &output, NULL, NULL},
                                  {"x", 'x', 0, G_OPTION_ARG_FILENAME, &x, NULL, NULL},
                                  {"y", 'y', 0, G_OPTION_ARG_FILENAME, &y, NULL, NULL},
                                  {NULL}};
  g_auto(GStrv) arguments = command_options(argc, argv, entries, error);
  if (!arguments || !command_arguments(argv, arguments, 2, 2, "FILE.db, KIND and -o FILE", error))
    return FALSE;
  if (!output)
    return input_error(error, NULL, 0, "plot: expected -o FILE.png, .svg or .pdf");
  if ((x || y) && !g_str_equal(arguments[1], "sweep"))
    return input_error(error, NULL, 0, "plot: --x and --y are for the kind sweep");
  if (!plot_output_check(output, error))
    return FALSE;
  const struct plot_options options = {.x = x, .y = y};
  g_autoptr(StoreReader) reader = store_open(arguments[0], error);
  return reader && plot_write(reader, arguments[1], &options, output, error);
}

const struct command command_plot = {
    .name = "plot",
    .summary = "a figure of a stored run",
    .run = run_plot,
    .help =
        "plot FILE.db KIND -o FILE.{png,svg,pdf} [--x KEY] [--y FIGURE]\n\n"
        "Draws a figure from a result database, one line or bar a system. Kinds:\n\n"
        "  latency-cdf  share of requests answered within a time (needs output.requests = all or sample:N)\n"
        "  throughput   requests completed a second, over time (needs output.usage = all, as do the next)\n"
        "  utilisation  GPUs that compute, over time; dashed: those that train\n"
        "  queue        requests waiting, over time\n"
        "  found        requests by where their model was found\n"
        "  sweep        of a sweep: a figure (--y latency_ms.p99; default throughput_rps) over a varied key\n"
        "               (--x; default the first), a line a system and setting of the other keys; of several\n"
        "               seeds the mean, with least and most\n\n"
        "Needs gnuplot (apt-get install gnuplot-nox). A figure of that name is replaced.\n\n"
        "examples:\n"
        "  distmind-sim plot first.db latency-cdf -o latency.png\n"
        "  distmind-sim plot first.db found -o found.pdf\n"
        "  distmind-sim plot sweep.db sweep --x cluster.gpu_servers --y slo_attainment -o slo.svg\n",
};
