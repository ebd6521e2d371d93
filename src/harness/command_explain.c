/* `explain`: one request's story, from a stored run. */
#include "core/error.h"
#include "harness/command.h"
#include "harness/explain.h"
#include "harness/store_schema.h"

static gboolean run_explain(int argc, char **argv, GError **error)
{
  g_autofree char *system = NULL;
  const GOptionEntry entries[] = {{"system", 0, 0, G_OPTION_ARG_FILENAME, &system, NULL, NULL}, {NULL}};
  g_auto(GStrv) arguments = command_options(argc, argv, entries, error);
  if (!arguments || !command_arguments(argv, arguments, 2, 2, "FILE.db and REQUEST", error))
    return FALSE;
  guint64 request;
  if (!g_ascii_string_to_unsigned(arguments[1], 10, 0, REQUEST_ID_MAX, &request, NULL))
    return input_error(error, NULL, 0,
                       "explain: expected the number of a request (0 is the first), found \"%s\"",
                       arguments[1]);
  g_autoptr(StoreReader) reader = store_open(arguments[0], error);
  return reader && explain_request(stdout, reader, system, request, error);
}

const struct command command_explain = {
    .name = "explain",
    .summary = "one request's story: where it went and why, what it waited for",
    .run = run_explain,
    .help =
        "explain FILE.db REQUEST [--system S]\n\n"
        "Tells one request's story from a result database: when it arrived, where it was sent and which "
        "numbers\n"
        "were weighed, what it queued behind, which groups of its model came from where and when, what was\n"
        "evicted for it, how it ended. REQUEST is the number in table request, 0 being the first to "
        "arrive.\n\n"
        "  --system S   of the run of system S (default: the first of the file)\n\n"
        "The run must have stored all requests and decisions:\n"
        "  distmind-sim run experiments/quickstart.ini --set output.decisions=all --out why.db\n\n"
        "examples:\n"
        "  distmind-sim explain why.db 1042 --system distmind\n"
        "  sqlite3 why.db \"SELECT id FROM request WHERE system = 'distmind' ORDER BY latency_ms DESC LIMIT "
        "5\"\n",
};
