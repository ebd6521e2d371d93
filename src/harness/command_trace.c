/* The command `trace`: info, convert and synth. Each parses its own options, does its work and prints to
 * standard output. */
#include "harness/command.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "harness/generator.h"
#include "harness/nearest.h"
#include "harness/output_file.h"
#include "harness/trace_format.h"
#include "harness/trace_info.h"
#include "harness/trace_writer.h"

/* Options of all three; each shows its own in --help. */
typedef struct arguments {
  gboolean help, json, force;
  char *out, *format, *seed_text, *unit;
  char *time_column, *model_column, *input_column, *output_column, *service_column;
  char **files;
} Arguments;

struct subcommand {
  const char *name, *operand, *summary, *description;
  gboolean reads; /* a trace: has the options of a reader */
  gboolean writes;
  gboolean (*run)(const char *file, const struct arguments *arguments, GError **error);
};

static void arguments_clear(struct arguments *arguments)
{
  g_free(arguments->out);
  g_free(arguments->format);
  g_free(arguments->seed_text);
  g_free(arguments->unit);
  g_free(arguments->time_column);
  g_free(arguments->model_column);
  g_free(arguments->input_column);
  g_free(arguments->output_column);
  g_free(arguments->service_column);
  g_strfreev(arguments->files);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Arguments, arguments_clear)

static gboolean print_text(const char *text, GError **error)
{
  if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
    return TRUE;
  g_set_error_literal(error, DM_ERROR, DM_ERROR_FAILED, "cannot write to standard output");
  return FALSE;
}

/* A seed given on the command line; *seed is left as it is without one. */
static gboolean read_seed(const struct arguments *arguments, uint64_t *seed, GError **error)
{
  guint64 value;
  if (!arguments->seed_text)
    return TRUE;
  if (!g_ascii_string_to_unsigned(arguments->seed_text, 10, 0, G_MAXUINT64, &value, NULL))
    return input_error(error, NULL, 0, "--seed: expected a whole number, found '%s'", arguments->seed_text);
  *seed = value;
  return TRUE;
}

static gboolean read_unit(const struct arguments *arguments, double *unit_ns, GError **error)
{
  static const struct {
    const char *name;
    double ns;
  } units[] = {{"s", NS_PER_S}, {"ms", NS_PER_MS}, {"us", NS_PER_US}, {"ns", 1}};
  for (size_t i = 0; i < G_N_ELEMENTS(units); i++)
    if (!arguments->unit || strcmp(arguments->unit, units[i].name) == 0) {
      *unit_ns = units[i].ns;
      return TRUE;
    }
  return input_error(error, NULL, 0, "--time-unit: expected s, ms, us or ns, found '%s'", arguments->unit);
}

static struct trace_reader *open_reader(const char *file, const struct arguments *arguments, GError **error)
{
  struct trace_options options = {
      .format = arguments->format,
      .seed = 1,
      .time_column = arguments->time_column,
      .model_column = arguments->model_column,
      .input_column = arguments->input_column,
      .output_column = arguments->output_column,
      .service_column = arguments->service_column,
  };
  gboolean other_csv = arguments->time_column || g_strcmp0(arguments->format, "csv") == 0;
  if (!other_csv && (arguments->model_column || arguments->input_column || arguments->output_column ||
                     arguments->service_column || arguments->unit)) {
    input_error(error, NULL, 0, "--model-column and its like, and --time-unit, need --time-column");
    return NULL;
  }
  if (arguments->time_column && arguments->format && strcmp(arguments->format, "csv") != 0 &&
      strcmp(arguments->format, "auto") != 0) {
    input_error(error, NULL, 0, "--time-column is of no use to --format %s", arguments->format);
    return NULL;
  }
  if (!read_seed(arguments, &options.seed, error) || !read_unit(arguments, &options.time_unit_ns, error))
    return NULL;
  return trace_open(file, &options, error);
}

static gboolean run_info(const char *file, const struct arguments *arguments, GError **error)
{
  struct trace_reader *reader = open_reader(file, arguments, error);
  if (!reader)
    return FALSE;
  g_autoptr(TraceSummary) summary = trace_summarise(reader, error);
  g_autoptr(GString) text = g_string_new(NULL);
  if (summary && arguments->json)
    trace_info_json(summary, reader, file, text);
  else if (summary)
    trace_info_table(summary, reader, file, text);
  trace_close(reader);
  return summary && print_text(text->str, error);
}

/* Which columns a converted trace needs: one pass over it. */
static gboolean find_columns(struct trace_reader *reader, struct trace_columns *columns, GError **error)
{
  struct trace_row row;
  int got;
  *columns = (struct trace_columns){.job = trace_kind(reader) == TRACE_JOBS};
  while ((got = trace_next(reader, &row, error)) > 0) {
    columns->model |= row.model != NULL;
    columns->input_tokens |= row.input_tokens >= 0;
    columns->output_tokens |= row.output_tokens >= 0;
    columns->service |= row.service_ns >= 0;
  }
  return got == 0 && trace_rewind(reader, error);
}

static gboolean copy_rows(struct trace_reader *reader, const char *out, gboolean force, uint64_t *rows,
                          GError **error)
{
  struct trace_columns columns;
  struct trace_row row;
  int got;
  if (!find_columns(reader, &columns, error))
    return FALSE;
  struct trace_writer *writer = trace_writer_new(out, force, &columns, error);
  if (!writer)
    return FALSE;
  for (*rows = 0; (got = trace_next(reader, &row, error)) > 0; ++*rows)
    trace_writer_add(writer, &row);
  if (got == 0)
    return trace_writer_finish(writer, error);
  trace_writer_abandon(writer);
  return FALSE;
}

static gboolean print_written(const char *out, uint64_t rows, GPtrArray *notices, GError **error)
{
  g_autoptr(GString) text = g_string_new(NULL);
  g_string_append_printf(text, "%s: %" G_GUINT64_FORMAT " rows\n", out, rows);
  for (guint i = 0; notices && i < notices->len; i++)
    g_string_append_printf(text, "  %s\n", (const char *)notices->pdata[i]);
  return print_text(text->str, error);
}

static gboolean run_convert(const char *file, const struct arguments *arguments, GError **error)
{
  struct trace_reader *reader = open_reader(file, arguments, error);
  uint64_t rows = 0;
  if (!reader)
    return FALSE;
  gboolean done = trace_kind(reader) != TRACE_NODES ||
                  input_error(error, file, 0, "expected requests or jobs, found a list of nodes");
  done = done && copy_rows(reader, arguments->out, arguments->force, &rows, error);
  g_autoptr(GPtrArray) notices = trace_notices(reader);
  trace_close(reader);
  return done && print_written(arguments->out, rows, notices, error);
}

static gboolean run_synth(const char *file, const struct arguments *arguments, GError **error)
{
  struct generator_spec *spec = generator_spec_load(file, error);
  struct trace_row row;
  uint64_t rows = 0;
  if (!spec)
    return FALSE;
  if (!read_seed(arguments, &spec->seed, error)) {
    generator_spec_free(spec);
    return FALSE;
  }
  struct generator *generator = generator_new(spec);
  struct trace_columns columns = generator_columns(generator);
  struct trace_writer *writer = trace_writer_new(arguments->out, arguments->force, &columns, error);
  for (; writer && generator_next(generator, &row); rows++)
    trace_writer_add(writer, &row);
  generator_free(generator);
  if (writer && rows == 0) {
    trace_writer_abandon(writer);
    return input_error(error, file, 0,
                       "expected a spec that yields a row, found none: raise the rate or the duration");
  }
  return writer && trace_writer_finish(writer, error) && print_written(arguments->out, rows, NULL, error);
}

static const struct subcommand subcommands[] = {
    {"info", "FILE", "Show what a trace holds: rows, rate, burstiness, models, tokens, quirks met.",
     "The layout is found from the header line or the first bytes. Skipped rows are counted by reason; a "
     "malformed\n"
     "row is an error. Rates and burstiness tell how hard the trace is: cv 1 is Poisson, more means bursts.",
     TRUE, FALSE, run_info},
    {"convert", "FILE", "Write a trace of any layout as the native CSV (arrival_s,model,…).",
     "arrival_s counts from the first arrival. A job trace gets the columns num_gpu and duration_s. The file "
     "is written\n"
     "as OUT.partial and renamed when it is whole. Any other CSV is read by naming its columns:\n\n"
     "  trace convert my.csv -o my-native.csv --time-column start --time-unit ms --model-column endpoint",
     TRUE, TRUE, run_convert},
    {"synth", "SPEC.ini", "Generate a synthetic trace from a spec; the same spec gives the same bytes.",
     "A spec is a key file:\n\n"
     "  [trace]\n"
     "  kind = gamma              # poisson | gamma | diurnal | counts\n"
     "  seed = 1\n"
     "  duration_s = 600          # poisson, gamma, diurnal\n"
     "  rate_rps = 20             # poisson, gamma, diurnal: mean rate\n"
     "  cv = 3                    # gamma: of the times between arrivals; 1 = Poisson\n"
     "  # diurnal: amplitude = 0.8, period_s = 86400, peak_s = 50400\n"
     "  # counts:  counts = 120;80;300 (arrivals in each interval), interval_s = 60\n"
     "  [models]                  # PROFILE = VARIANTS\n"
     "  resnet152 = 16\n"
     "  [popularity]              # or [weights] with PROFILE = WEIGHT\n"
     "  zipf = 0.9\n"
     "  ranks = listed            # or shuffled\n"
     "  [tokens]                  # constant V | uniform LOW HIGH | exponential MEAN [MAX] | lognormal "
     "MEDIAN SIGMA [MAX]\n"
     "  input = lognormal 512 1.2 32768\n"
     "  output = exponential 128\n"
     "  [service]\n"
     "  time_ms = constant 20",
     FALSE, TRUE, run_synth},
};

static GOptionContext *option_context(const struct subcommand *sub, struct arguments *arguments)
{
  g_autofree char *formats = g_strjoinv(", ", (char **)trace_formats());
  const GOptionEntry common[] = {
      {"help", 'h', 0, G_OPTION_ARG_NONE, &arguments->help, "Show this help", NULL},
      {"seed", 0, 0, G_OPTION_ARG_FILENAME, &arguments->seed_text,
       sub->reads ? "Of the arrivals drawn inside a minute (azure-functions-2019); default 1"
                  : "Instead of the spec's seed",
       "N"},
      {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &arguments->files, NULL, sub->operand},
      {0},
  };
  const GOptionEntry reading[] = {
      {"format", 0, 0, G_OPTION_ARG_FILENAME, &arguments->format,
       "Layout, instead of detecting it (see below)", "NAME"},
      {"time-column", 0, 0, G_OPTION_ARG_FILENAME, &arguments->time_column,
       "Any other CSV: column of arrival times", "C"},
      {"time-unit", 0, 0, G_OPTION_ARG_FILENAME, &arguments->unit,
       "s (default), ms, us or ns, of times and service", "U"},
      {"model-column", 0, 0, G_OPTION_ARG_FILENAME, &arguments->model_column, "Column of model names", "C"},
      {"input-column", 0, 0, G_OPTION_ARG_FILENAME, &arguments->input_column, "Column of input tokens", "C"},
      {"output-column", 0, 0, G_OPTION_ARG_FILENAME, &arguments->output_column, "Column of output tokens",
       "C"},
      {"service-column", 0, 0, G_OPTION_ARG_FILENAME, &arguments->service_column, "Column of service times",
       "C"},
      {0},
  };
  const GOptionEntry writing[] = {
      {"out", 'o', 0, G_OPTION_ARG_FILENAME, &arguments->out, "File to write (required)", "OUT"},
      {"force", 'f', 0, G_OPTION_ARG_NONE, &arguments->force, "Overwrite OUT", NULL},
      {0},
  };
  const GOptionEntry printing[] = {
      {"json", 0, 0, G_OPTION_ARG_NONE, &arguments->json, "Print one JSON object", NULL},
      {0},
  };
  GOptionContext *context = g_option_context_new(NULL);
  g_option_context_set_help_enabled(context, FALSE);
  g_option_context_add_main_entries(context, common, NULL);
  if (sub->reads)
    g_option_context_add_main_entries(context, reading, NULL);
  g_option_context_add_main_entries(context, sub->writes ? writing : printing, NULL);
  g_option_context_set_summary(context, sub->summary);
  g_autofree char *description = sub->reads ? g_strdup_printf("%s\n\nLayouts: %s.", sub->description, formats)
                                            : g_strdup(sub->description);
  g_option_context_set_description(context, description);
  return context;
}

/* The usage line names the program as GLib knows it: for a moment that is the whole command. Free with
 * g_free. */
static char *help_text(GOptionContext *context, const struct subcommand *sub)
{
  g_autofree char *program = g_strdup(g_get_prgname() ? g_get_prgname() : "distmind-sim");
  g_autofree char *command = g_strdup_printf("%s trace %s", program, sub->name);
  g_set_prgname(command);
  char *text = g_option_context_get_help(context, TRUE, NULL);
  g_set_prgname(program);
  return text;
}

static gboolean run_subcommand(const struct subcommand *sub, int argc, char **argv, GError **error)
{
  g_auto(Arguments) arguments = {0};
  g_autoptr(GOptionContext) context = option_context(sub, &arguments);
  g_autoptr(GError) wrong = NULL;
  g_auto(GStrv) words = g_new0(char *, argc + 1);
  words[0] = g_strdup("trace");
  for (int i = 2; i < argc; i++)
    words[i - 1] = g_strdup(argv[i]);
  if (!g_option_context_parse_strv(context, &words, &wrong))
    return input_error(error, NULL, 0, "trace %s: %s", sub->name, wrong->message);
  if (arguments.help) {
    g_autofree char *help = help_text(context, sub);
    return print_text(help, error);
  }
  if (!arguments.files || g_strv_length(arguments.files) != 1)
    return input_error(error, NULL, 0, "trace %s: expected one %s, found %u (see trace %s --help)", sub->name,
                       sub->operand, arguments.files ? g_strv_length(arguments.files) : 0, sub->name);
  if (sub->writes && !arguments.out)
    return input_error(error, NULL, 0, "trace %s: expected -o OUT", sub->name);
  if (sub->writes && !output_file_check(arguments.out, arguments.force, error))
    return FALSE;
  return sub->run(arguments.files[0], &arguments, error);
}

static gboolean print_usage(GError **error)
{
  g_autoptr(GString) text = g_string_new("Traces of requests and of training jobs.\n\nUsage:\n");
  for (size_t i = 0; i < G_N_ELEMENTS(subcommands); i++)
    g_string_append_printf(text, "  trace %-8s %-9s %s\n", subcommands[i].name, subcommands[i].operand,
                           subcommands[i].summary);
  g_string_append(text, "\nEach has --help. Layouts read, detected from the file:\n");
  for (unsigned i = 0; trace_registry[i]; i++)
    g_string_append_printf(text, "  %-21s %s\n", trace_registry[i]->name, trace_registry[i]->title);
  return print_text(text->str, error);
}

static gboolean run_trace(int argc, char **argv, GError **error)
{
  const char *names[G_N_ELEMENTS(subcommands) + 1] = {NULL};
  if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
    return argc < 2 ? input_error(error, NULL, 0, "trace: expected info, convert or synth (see trace --help)")
                    : print_usage(error);
  for (size_t i = 0; i < G_N_ELEMENTS(subcommands); i++) {
    if (strcmp(subcommands[i].name, argv[1]) == 0)
      return run_subcommand(&subcommands[i], argc, argv, error);
    names[i] = subcommands[i].name;
  }
  return input_error(error, NULL, 0, "trace: expected info, convert or synth, found '%s', nearest is '%s'",
                     argv[1], nearest_word(argv[1], names));
}

const struct command command_trace = {
    .name = "trace",
    .summary = "show, convert and generate traces of requests and training jobs",
    .run = run_trace,
};
