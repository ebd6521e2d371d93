/* What happened to a request, in order of time: its milestones and the decisions made for it. */
#include "core/units.h"
#include "harness/explain_part.h"
#include <string.h>

/* Columns of the query below. */
enum { C_TIME, C_KIND, C_REASON, C_MODEL, C_SERVER, C_GPU, C_SOURCE, C_A, C_B, C_C, C_D };

static const char *const events_sql = "SELECT time_ns, kind, reason, model, server, gpu, source, a, b, c, d "
                                      "FROM decision WHERE run = ?1 AND request = ?2 "
                                      "AND kind NOT IN ('net', 'pcie', 'compute') ORDER BY time_ns, seq";

struct event {
  int64_t time_ns;
  char *text;
};

static void event_clear(gpointer data)
{
  g_free(((struct event *)data)->text);
}

static void add_event(GArray *events, int64_t time_ns, char *text)
{
  struct event event = {.time_ns = time_ns, .text = text};
  g_array_append_val(events, event);
}

static const char *text_of(sqlite3_stmt *row, int column)
{
  const char *text = (const char *)sqlite3_column_text(row, column);
  return text ? text : "";
}

static double ms_of(sqlite3_stmt *row, int column)
{
  return (double)sqlite3_column_int64(row, column) / NS_PER_MS;
}

static gboolean is_null(sqlite3_stmt *row, int column)
{
  return sqlite3_column_type(row, column) == SQLITE_NULL;
}

/* "GPU 3", or "the host cache of server 0". */
static char *place_text(sqlite3_stmt *row)
{
  if (is_null(row, C_GPU))
    return g_strdup_printf("the host cache of server %lld", (long long)sqlite3_column_int64(row, C_SERVER));
  return g_strdup_printf("GPU %lld", (long long)sqlite3_column_int64(row, C_GPU));
}

static void append_reason(GString *text, sqlite3_stmt *row)
{
  if (*text_of(row, C_REASON))
    g_string_append_printf(text, ": %s", text_of(row, C_REASON));
}

static void describe_dispatch(GString *text, sqlite3_stmt *row)
{
  g_autofree char *place = place_text(row);
  g_string_append_printf(text, "sent to %s", place);
  if (!is_null(row, C_SERVER))
    g_string_append_printf(text, " of server %lld", (long long)sqlite3_column_int64(row, C_SERVER));
  append_reason(text, row);
  if (is_null(row, C_A) || sqlite3_column_int64(row, C_A) == 0) /* a policy that predicts nothing */
    return;
  g_string_append_printf(text, "\nweighed: finish in %.3f ms, of it queue %.3f and load %.3f",
                         ms_of(row, C_A), ms_of(row, C_B), ms_of(row, C_C));
  if (is_null(row, C_D))
    g_string_append(text, "; no other GPU was weighed");
  else
    g_string_append_printf(text, "; best other GPU %.3f ms", ms_of(row, C_D));
}

static const char *source_text(sqlite3_stmt *row)
{
  const char *source = text_of(row, C_SOURCE);
  return strcmp(source, "remote") == 0 ? " from the memory pool"
         : strcmp(source, "host") == 0 ? " from host memory"
         : strcmp(source, "ssd") == 0  ? " from the SSD"
                                       : "";
}

static void describe_load(GString *text, sqlite3_stmt *row)
{
  g_autofree char *place = place_text(row);
  g_autofree char *bytes = format_bytes(sqlite3_column_int64(row, C_A));
  g_string_append_printf(text, "load of %s to %s%s begins, %s", text_of(row, C_MODEL), place,
                         source_text(row), bytes);
  if (sqlite3_column_int64(row, C_B) > 0)
    g_string_append_printf(text, " in %lld groups", (long long)sqlite3_column_int64(row, C_B));
  append_reason(text, row);
}

static void describe_loaded(GString *text, sqlite3_stmt *row)
{
  g_autofree char *place = place_text(row);
  g_autofree char *bytes = format_bytes(sqlite3_column_int64(row, C_A));
  g_string_append_printf(text, "load of %s to %s ends, %s in %.3f ms", text_of(row, C_MODEL), place, bytes,
                         ms_of(row, C_B));
  append_reason(text, row);
}

static void describe_evict(GString *text, sqlite3_stmt *row)
{
  g_autofree char *place = place_text(row);
  g_autofree char *bytes = format_bytes(sqlite3_column_int64(row, C_A));
  g_string_append_printf(text, "evicted %s from %s, %s", text_of(row, C_MODEL), place, bytes);
  if (!is_null(row, C_B))
    g_string_append_printf(text, ", last used %.3f s before", ms_of(row, C_B) / 1000);
  /* The value that LRU compares is the time of the last use: said already. */
  int64_t value = sqlite3_column_int64(row, C_C);
  if (!is_null(row, C_C) && value != sqlite3_column_int64(row, C_TIME) - sqlite3_column_int64(row, C_B))
    g_string_append_printf(text, ", value %lld", (long long)value);
  append_reason(text, row);
}

static void describe_other(GString *text, sqlite3_stmt *row)
{
  g_autofree char *place = place_text(row);
  if (strcmp(text_of(row, C_KIND), "preempt") == 0)
    g_string_append_printf(text, "training gave back %s", place);
  else
    g_string_append_printf(text, "%s, %s", text_of(row, C_KIND), place);
  append_reason(text, row);
}

static char *describe(sqlite3_stmt *row)
{
  static const struct {
    const char *kind;
    void (*describe)(GString *text, sqlite3_stmt *row);
  } kinds[] = {{"dispatch", describe_dispatch},
               {"load", describe_load},
               {"loaded", describe_loaded},
               {"evict", describe_evict}};
  GString *text = g_string_new(NULL);
  size_t i = 0;
  while (i < G_N_ELEMENTS(kinds) && strcmp(kinds[i].kind, text_of(row, C_KIND)) != 0)
    i++;
  if (i < G_N_ELEMENTS(kinds))
    kinds[i].describe(text, row);
  else
    describe_other(text, row);
  return g_string_free(text, FALSE);
}

static gboolean read_decisions(const struct story *story, GArray *events, GError **error)
{
  g_autoptr(sqlite3_stmt) statement = story_prepare(story, events_sql, error);
  if (!statement)
    return FALSE;
  int row;
  while ((row = store_step(story->reader, statement, error)) == 1)
    add_event(events, sqlite3_column_int64(statement, C_TIME), describe(statement));
  return row == 0;
}

/* Stable, so that equal times keep the order in which they were recorded. */
static void sort_events(GArray *events)
{
  struct event *event = (struct event *)(void *)events->data;
  for (guint i = 1; i < events->len; i++) {
    struct event moved = event[i];
    guint j = i;
    for (; j > 0 && event[j - 1].time_ns > moved.time_ns; j--)
      event[j] = event[j - 1];
    event[j] = moved;
  }
}

/* Time after arrival, then the text; further lines of it indented under the first. */
static void print_event(const struct story *story, const struct event *event)
{
  g_auto(GStrv) lines = g_strsplit(event->text, "\n", -1);
  fprintf(story->out, "%+12.3f ms  %s\n", story_ms(story, event->time_ns), lines[0]);
  for (char **line = lines + 1; *line; line++)
    fprintf(story->out, "%15s    %s\n", "", *line);
}

gboolean explain_events(const struct story *story, GError **error)
{
  g_autoptr(GArray) events = g_array_new(FALSE, FALSE, sizeof(struct event));
  g_array_set_clear_func(events, event_clear);
  add_event(events, story->arrival_ns,
            g_strdup_printf("arrived, %.6f s after the start", (double)story->arrival_ns / NS_PER_S));
  if (!read_decisions(story, events, error))
    return FALSE;
  if (story->start_ns >= 0)
    add_event(events, story->start_ns, g_strdup_printf("GPU %lld turned to it", (long long)story->gpu));
  if (story->end_ns >= 0)
    add_event(events, story->end_ns, g_strdup("answer at the client"));
  sort_events(events);
  for (guint i = 0; i < events->len; i++)
    print_event(story, &g_array_index(events, struct event, i));
  return TRUE;
}
