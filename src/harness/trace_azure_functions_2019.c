/* Azure Functions 2019, one day: invocations_per_function_md.anon.dNN.csv with HashOwner, HashApp,
 * HashFunction, Trigger and the calls of each minute in columns 1 … 1440. The model is owner/app/function.
 *
 * Arrivals inside a minute are drawn uniformly (seed of the options), which call is whose as well. The
 * service time of a call is the Average (ms) of its function in function_durations_percentiles.anon.dNN.csv,
 * or durations.csv beside invocations.csv; functions without a row there have none.
 * app_memory_percentiles.anon.dNN.csv (memory.csv) is summed up in a notice. */
#include "harness/trace_csv.h"

#include <string.h>
#include <gsl/gsl_rng.h>

#include "core/error.h"
#include "harness/decimal.h"
#include "harness/minute_counts.h"
#include "harness/random.h"
#include "harness/spread.h"

#define MINUTE_NS        (60 * NS_PER_S)
#define MINUTES_MAX      1440u
#define CALLS_MAX        1000000000LL /* of a function in a minute */
#define MEMORY_KB_PER_MB 1000

struct azure_2019 {
  struct trace_source base;
  uint64_t seed;
  struct minute_counts *counts;
  gsl_rng *rng;
  unsigned minute;
  struct spread spread; /* of the minute's calls that are left */
  GArray *tree;         /* uint64_t Fenwick tree of the calls left by function, entry 0 unused */
};

enum { OWNER, APP, FUNCTION, VALUE };

static const struct trace_csv_layout invocations_layout = {
    .column = {"HashOwner", "HashApp", "HashFunction", "1"}, .required = 4};
static const struct trace_csv_layout durations_layout = {
    .column = {"HashOwner", "HashApp", "HashFunction", "Average"}, .required = 4};
static const struct trace_csv_layout memory_layout = {
    .column = {"HashOwner", "HashApp", "AverageAllocatedMb"}, .required = 3};

/* The file beside path whose name is made by the naming of the public files or of the sample; NULL if there
 * is none. */
static char *companion(const char *path, const char *public_name, const char *sample_name)
{
  static const char prefix[] = "invocations_per_function_md";
  g_autofree char *folder = g_path_get_dirname(path);
  g_autofree char *base = g_path_get_basename(path);
  g_autofree char *name = NULL;
  if (g_str_has_prefix(base, prefix))
    name = g_strconcat(public_name, base + strlen(prefix), NULL);
  else if (strcmp(base, "invocations.csv") == 0)
    name = g_strdup(sample_name);
  g_autofree char *found = name ? g_build_filename(folder, name, NULL) : NULL;
  return found && g_file_test(found, G_FILE_TEST_IS_REGULAR) ? g_steal_pointer(&found) : NULL;
}

static const char *function_key(struct trace_csv *table)
{
  g_string_printf(table->name, "%s/%s/%s", trace_csv_text(table, OWNER), trace_csv_text(table, APP),
                  trace_csv_text(table, FUNCTION));
  return table->name->str;
}

static gboolean load_durations(struct azure_2019 *source, const char *path, GError **error)
{
  struct trace_csv *table =
      (struct trace_csv *)trace_csv_new(source->base.format, path, &durations_layout, NULL, error);
  int64_t average_ns;
  int got = -1;
  while (table && (got = csv_next(table->csv, error)) > 0) {
    if (!trace_csv_time(table, VALUE, NS_PER_MS, INT64_MIN, &average_ns, error)) {
      got = -1;
      break;
    }
    if (average_ns < 0)
      trace_quirk(&source->base.notes, "functions with a negative average duration, taken as absent");
    else if (!minute_counts_duration(source->counts, function_key(table), average_ns, error)) {
      got = -1;
      break;
    }
  }
  if (table)
    trace_csv_close(&table->base);
  return got == 0;
}

static gboolean sum_memory(struct azure_2019 *source, const char *path, GString *detail, GError **error)
{
  struct trace_csv *table =
      (struct trace_csv *)trace_csv_new(source->base.format, path, &memory_layout, NULL, error);
  int64_t kilobytes;
  uint64_t apps = 0;
  double total_mb = 0;
  int got = -1;
  while (table && (got = csv_next(table->csv, error)) > 0) {
    if (!trace_csv_time(table, FUNCTION, MEMORY_KB_PER_MB, 0, &kilobytes, error)) {
      got = -1;
      break;
    }
    apps++;
    total_mb += (double)kilobytes / MEMORY_KB_PER_MB;
  }
  if (table)
    trace_csv_close(&table->base);
  if (got == 0 && apps > 0)
    g_string_append_printf(detail, "; memory of %" G_GUINT64_FORMAT " apps, %.1f MB on average", apps,
                           total_mb / (double)apps);
  return got == 0;
}

/* Number of the columns 1, 2, 3, … that follow one another in the header. */
static unsigned count_minutes(const struct trace_csv *table)
{
  unsigned minutes = 0;
  for (char name[16]; minutes < MINUTES_MAX; minutes++) {
    g_snprintf(name, sizeof name, "%u", minutes + 1);
    if (csv_column(table->csv, name) != table->column[VALUE] + (int)minutes)
      break;
  }
  return minutes;
}

static gboolean load_function(struct azure_2019 *source, struct trace_csv *table, unsigned minutes,
                              uint64_t *with_duration, GError **error)
{
  gboolean has_duration;
  if (!minute_counts_function(source->counts, function_key(table), &has_duration, error))
    return FALSE;
  *with_duration += has_duration;
  for (unsigned minute = 0; minute < minutes; minute++) {
    unsigned column = (unsigned)table->column[VALUE] + minute;
    const char *text = csv_text(table->csv, column);
    int64_t calls;
    if (text[0] == '0' && text[1] == 0)
      continue;
    if (strpbrk(text, ".eE") || !decimal_scaled(text, csv_length(table->csv, column), 1, &calls) ||
        calls < 0 || calls > CALLS_MAX) {
      g_autofree char *found = found_text(text);
      return input_error(error, source->base.path, csv_line(table->csv),
                         "minute %u: expected a number of calls from 0 to 1000000000, found %s", minute + 1,
                         found);
    }
    source->base.rows_known += (uint64_t)calls;
    if (calls && !minute_counts_calls(source->counts, minute, (uint64_t)calls, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean load_invocations(struct azure_2019 *source, GString *detail, GError **error)
{
  struct trace_csv *table = (struct trace_csv *)trace_csv_new(source->base.format, source->base.path,
                                                              &invocations_layout, NULL, error);
  uint64_t functions = 0, with_duration = 0;
  unsigned minutes = table ? count_minutes(table) : 0;
  int got = -1;
  while (table && (got = csv_next(table->csv, error)) > 0) {
    functions++;
    if (!load_function(source, table, minutes, &with_duration, error)) {
      got = -1;
      break;
    }
  }
  if (table)
    trace_csv_close(&table->base);
  g_string_append_printf(detail,
                         "%" G_GUINT64_FORMAT " functions, %" G_GUINT64_FORMAT " of them with a duration",
                         functions, with_duration);
  return got == 0;
}

static void azure_2019_close(struct trace_source *base)
{
  struct azure_2019 *source = (struct azure_2019 *)base;
  minute_counts_free(source->counts);
  if (source->rng)
    gsl_rng_free(source->rng);
  g_array_unref(source->tree);
  g_free(base->notes.detail);
  g_free(base->path);
  g_free(source);
}

static gboolean azure_2019_rewind(struct trace_source *base, GError **error)
{
  struct azure_2019 *source = (struct azure_2019 *)base;
  if (source->rng)
    gsl_rng_free(source->rng);
  source->rng = random_stream(source->seed, "trace minutes");
  source->spread = spread_start(0);
  return minute_counts_begin(source->counts, error);
}

static gboolean load_all(struct azure_2019 *source, GError **error)
{
  const char *path = source->base.path;
  g_autofree char *durations = companion(path, "function_durations_percentiles", "durations.csv");
  g_autofree char *memory = companion(path, "app_memory_percentiles", "memory.csv");
  g_autoptr(GString) detail = g_string_new("arrivals inside a minute are drawn; ");
  source->counts = minute_counts_new(error);
  if (!source->counts || (durations && !load_durations(source, durations, error)) ||
      !load_invocations(source, detail, error) || (memory && !sum_memory(source, memory, detail, error)))
    return FALSE;
  if (!durations)
    g_string_append(detail, " (no file of durations beside it)");
  source->base.notes.detail = g_string_free(g_steal_pointer(&detail), FALSE);
  return azure_2019_rewind(&source->base, error);
}

static struct trace_source *azure_2019_open(const struct trace_format *format, const char *path,
                                            const struct trace_options *options, GError **error)
{
  struct azure_2019 *source = g_new0(struct azure_2019, 1);
  source->base.format = format;
  source->base.path = g_strdup(path);
  source->base.kind = format->kind;
  source->seed = options->seed;
  source->tree = g_array_new(FALSE, TRUE, sizeof(uint64_t));
  if (load_all(source, error))
    return &source->base;
  azure_2019_close(&source->base);
  return NULL;
}

/* Takes the minute's functions into the Fenwick tree, in linear time. */
static void start_minute(struct azure_2019 *source)
{
  unsigned entries = minute_counts_entries(source->counts);
  uint64_t total = 0;
  g_array_set_size(source->tree, entries + 1);
  uint64_t *tree = (uint64_t *)(void *)source->tree->data;
  memset(tree, 0, (entries + 1) * sizeof *tree);
  for (unsigned i = 1; i <= entries; i++) {
    uint64_t calls = minute_counts_entry(source->counts, i - 1).calls;
    unsigned parent = i + (i & -i);
    total += calls;
    tree[i] += calls;
    if (parent <= entries)
      tree[parent] += tree[i];
  }
  source->spread = spread_start(total);
}

/* The function to which the call number `rank` of those left belongs; takes that call away. */
static unsigned take_call(struct azure_2019 *source, uint64_t rank)
{
  uint64_t *tree = (uint64_t *)(void *)source->tree->data;
  unsigned size = source->tree->len - 1, found = 0, step = 1;
  while (step <= size / 2)
    step *= 2;
  for (; step; step /= 2)
    if (found + step <= size && tree[found + step] <= rank) {
      found += step;
      rank -= tree[found];
    }
  for (unsigned i = found + 1; i <= size; i += i & -i)
    tree[i]--;
  return found;
}

static int azure_2019_next(struct trace_source *base, struct trace_row *row, GError **error)
{
  struct azure_2019 *source = (struct azure_2019 *)base;
  if (source->spread.left == 0) {
    int got = minute_counts_next(source->counts, &source->minute, error);
    if (got <= 0)
      return got;
    start_minute(source);
  }
  unsigned function = take_call(source, gsl_rng_uniform_int(source->rng, source->spread.left));
  struct minute_entry entry = minute_counts_entry(source->counts, function);
  row->arrival_ns =
      (int64_t)source->minute * MINUTE_NS + spread_next(&source->spread, source->rng, MINUTE_NS);
  row->model = entry.name;
  row->service_ns = entry.service_ns;
  return TRACE_ROW;
}

const struct trace_format trace_azure_functions_2019 = {
    .name = "azure-functions-2019",
    .title = "Azure Functions 2019, calls per minute (durations file beside it)",
    .kind = TRACE_REQUESTS,
    .in_order = TRUE,
    .csv = &invocations_layout,
    .detect = trace_csv_detect,
    .open = azure_2019_open,
    .close = azure_2019_close,
    .next = azure_2019_next,
    .rewind = azure_2019_rewind,
};
