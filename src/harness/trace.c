/* Traces behind one interface: opening (detect, check the order, sort if needed), streaming, notices; see
 * trace.h. */
#include "harness/trace_format.h"

#include <string.h>

#include "core/error.h"
#include "harness/trace_sort.h"

struct trace_reader {
  struct trace_source *source;
  struct trace_sort *sort; /* rows not in order went through a temporary file; NULL: streamed */
  gboolean started;
  int64_t origin_ns; /* arrival of the first row, absolute */
  int64_t last_ns;   /* arrival of the last row given out, from origin */
  int64_t span_ns;   /* of the whole trace, -1 unknown */
  uint64_t rows;     /* of the whole trace */
  uint64_t given;    /* rows given out */
};

static const struct trace_row absent_row = {
    .input_tokens = -1, .output_tokens = -1, .service_ns = -1, .gpus = -1, .duration_ns = -1};

/* One pass over the arrivals: order, number of rows, first and last time. */
static gboolean survey(struct trace_reader *reader, gboolean *in_order, GError **error)
{
  struct trace_source *source = reader->source;
  const struct trace_format *format = source->format;
  int (*next)(struct trace_source *, struct trace_row *, GError **) =
      format->next_time ? format->next_time : format->next;
  struct trace_row row = absent_row;
  int64_t first = INT64_MAX, last = INT64_MIN, previous = INT64_MIN;
  int got;
  *in_order = TRUE;
  while ((got = next(source, &row, error)) == TRACE_ROW) {
    *in_order &= row.arrival_ns >= previous;
    previous = row.arrival_ns;
    first = MIN(first, row.arrival_ns);
    last = MAX(last, row.arrival_ns);
    reader->rows++;
    row = absent_row;
  }
  if (got == TRACE_ERROR)
    return FALSE;
  reader->origin_ns = first;
  if (reader->rows &&
      (__builtin_sub_overflow(last, first, &reader->span_ns) || reader->span_ns > TRACE_SPAN_MAX_NS))
    return input_error(error, source->path, 0, "expected arrivals within 1e9 s of each other");
  return TRUE;
}

static void forget_counts(struct trace_source *source)
{
  source->notes.skipped = 0;
  memset(source->notes.reason, 0, sizeof source->notes.reason);
  memset(source->notes.quirk, 0, sizeof source->notes.quirk);
}

static gboolean rewind_source(struct trace_reader *reader, GError **error)
{
  forget_counts(reader->source);
  reader->started = FALSE;
  reader->given = 0;
  return reader->source->format->rewind(reader->source, error);
}

static gboolean sort_rows(struct trace_reader *reader, GError **error)
{
  struct trace_row row = absent_row;
  int got;
  if (!rewind_source(reader, error))
    return FALSE;
  reader->sort = trace_sort_new(error);
  if (!reader->sort)
    return FALSE;
  while ((got = reader->source->format->next(reader->source, &row, error)) == TRACE_ROW) {
    if (!trace_sort_add(reader->sort, &row, error))
      return FALSE;
    row = absent_row;
  }
  return got == TRACE_END && trace_sort_begin(reader->sort, error);
}

static gboolean no_rows(const struct trace_reader *reader, GError **error)
{
  g_autoptr(GString) why = g_string_new(NULL);
  const struct trace_counter *reason = reader->source->notes.reason;
  for (unsigned i = 0; i < TRACE_COUNTERS_MAX && reason[i].text; i++)
    g_string_append_printf(why, "%s%" G_GUINT64_FORMAT " skipped: %s", i ? "; " : "", reason[i].count,
                           reason[i].text);
  return input_error(error, reader->source->path, 0, "expected a trace with a row, found none%s%s%s",
                     why->len ? " (" : "", why->str, why->len ? ")" : "");
}

static gboolean prepare(struct trace_reader *reader, GError **error)
{
  gboolean in_order = TRUE;
  reader->span_ns = -1;
  if (reader->source->format->in_order)
    reader->rows = reader->source->rows_known;
  else if (!survey(reader, &in_order, error))
    return FALSE;
  if (reader->rows == 0)
    return no_rows(reader, error);
  if (reader->source->format->in_order)
    return TRUE;
  return in_order ? rewind_source(reader, error) : sort_rows(reader, error);
}

struct trace_reader *trace_open(const char *path, const struct trace_options *options, GError **error)
{
  static const struct trace_options defaults = {0};
  const struct trace_format *format = trace_detect(path, options, error);
  if (!format)
    return NULL;
  struct trace_source *source = format->open(format, path, options ? options : &defaults, error);
  if (!source)
    return NULL;
  struct trace_reader *reader = g_new0(struct trace_reader, 1);
  reader->source = source;
  if (!prepare(reader, error)) {
    trace_close(reader);
    return NULL;
  }
  return reader;
}

void trace_close(struct trace_reader *reader)
{
  if (!reader)
    return;
  trace_sort_free(reader->sort);
  reader->source->format->close(reader->source);
  g_free(reader);
}

static gboolean check_times(const struct trace_reader *reader, const struct trace_row *row, GError **error)
{
  if (row->service_ns > TRACE_SERVICE_MAX_NS)
    return input_error(error, reader->source->path, row->line,
                       "expected a service time of at most %g s, found %.9g s",
                       (double)TRACE_SERVICE_MAX_NS / NS_PER_S, (double)row->service_ns / NS_PER_S);
  if (row->duration_ns > TRACE_SPAN_MAX_NS)
    return input_error(error, reader->source->path, row->line, "expected a job of at most %g s, found %.9g s",
                       (double)TRACE_SPAN_MAX_NS / NS_PER_S, (double)row->duration_ns / NS_PER_S);
  return TRUE;
}

int trace_next(struct trace_reader *reader, struct trace_row *row, GError **error)
{
  *row = absent_row;
  int got = reader->sort ? trace_sort_next(reader->sort, row, error)
                         : reader->source->format->next(reader->source, row, error);
  if (got != TRACE_ROW)
    return got;
  if (!reader->started) {
    reader->started = TRUE;
    reader->origin_ns = row->arrival_ns;
    reader->last_ns = 0;
  }
  /* Rows passed the survey in order; they can be out of it only if the file was changed since. */
  if (__builtin_sub_overflow(row->arrival_ns, reader->origin_ns, &row->arrival_ns) ||
      row->arrival_ns < reader->last_ns) {
    input_error(error, reader->source->path, 0, "the file was changed while it was read");
    return TRACE_ERROR;
  }
  reader->last_ns = row->arrival_ns;
  reader->given++;
  return check_times(reader, row, error) ? TRACE_ROW : TRACE_ERROR;
}

gboolean trace_rewind(struct trace_reader *reader, GError **error)
{
  if (!reader->sort)
    return rewind_source(reader, error);
  reader->started = FALSE;
  reader->given = 0;
  return trace_sort_begin(reader->sort, error);
}

enum trace_kind trace_kind(const struct trace_reader *reader)
{
  return reader->source->kind;
}

const char *trace_format_name(const struct trace_reader *reader)
{
  return reader->source->format->name;
}

int64_t trace_span_ns(const struct trace_reader *reader)
{
  return reader->span_ns;
}

uint64_t trace_rows_skipped(const struct trace_reader *reader)
{
  return reader->source->notes.skipped;
}

const struct trace_counter *trace_skip_reasons(const struct trace_reader *reader)
{
  return reader->source->notes.reason;
}

GPtrArray *trace_quirks(const struct trace_reader *reader)
{
  const struct trace_notes *notes = &reader->source->notes;
  GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
  if (reader->sort)
    g_ptr_array_add(lines, g_strdup("rows are not in order of arrival: sorted through a temporary file"));
  for (unsigned i = 0; i < TRACE_COUNTERS_MAX && notes->quirk[i].text; i++) {
    const struct trace_counter *quirk = &notes->quirk[i];
    g_ptr_array_add(lines, quirk->count == 1
                               ? g_strdup(quirk->text)
                               : g_strdup_printf("%s: %" G_GUINT64_FORMAT, quirk->text, quirk->count));
  }
  if (notes->detail)
    g_ptr_array_add(lines, g_strdup(notes->detail));
  return lines;
}

GPtrArray *trace_notices(const struct trace_reader *reader)
{
  const struct trace_counter *reason = reader->source->notes.reason;
  GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
  for (unsigned i = 0; i < TRACE_COUNTERS_MAX && reason[i].text; i++)
    g_ptr_array_add(
        lines, g_strdup_printf("%" G_GUINT64_FORMAT " rows skipped: %s", reason[i].count, reason[i].text));
  g_autoptr(GPtrArray) quirks = trace_quirks(reader);
  for (unsigned i = 0; i < quirks->len; i++)
    g_ptr_array_add(lines, g_strdup(quirks->pdata[i]));
  return lines;
}

const char *const *trace_formats(void)
{
  static const char *names[32];
  for (unsigned i = 0; trace_registry[i]; i++)
    names[i] = trace_registry[i]->name;
  return names;
}
