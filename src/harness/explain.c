/* One request's story: its frame, and what it queued behind; see explain.h. */
#include "harness/explain.h"
#include "core/error.h"
#include "core/units.h"
#include "harness/explain_part.h"
#include "harness/nearest.h"
#include <stdlib.h>
#include <string.h>

#define BLOCKERS_SHOWN 6

double story_ms(const struct story *story, int64_t ns)
{
  return ((double)ns - (double)story->arrival_ns) / NS_PER_MS;
}

sqlite3_stmt *story_prepare(const struct story *story, const char *sql, GError **error)
{
  sqlite3_stmt *statement = store_prepare(story->reader, sql, error);
  if (statement) {
    sqlite3_bind_int64(statement, 1, story->run);
    sqlite3_bind_int64(statement, 2, story->id);
  }
  return statement;
}

char *format_bytes(int64_t bytes)
{
  double value = (double)bytes;
  if (value >= 1e9)
    return g_strdup_printf("%.2f GB", value / 1e9);
  if (value >= 1e6)
    return g_strdup_printf("%.1f MB", value / 1e6);
  if (value >= 1e3)
    return g_strdup_printf("%.1f kB", value / 1e3);
  return g_strdup_printf("%.0f bytes", value);
}

static gboolean unknown_system(struct story *story, const GPtrArray *runs, const char *system, GError **error)
{
  g_autofree const char **names = g_new0(const char *, runs->len + 1);
  for (guint i = 0; i < runs->len; i++)
    names[i] = ((const struct stored_run *)runs->pdata[i])->system;
  g_autofree char *known = g_strjoinv(", ", (char **)names);
  return input_error(error, store_path(story->reader), 0,
                     "holds no run of \"%s\", nearest is \"%s\"; it holds %s", system,
                     nearest_word(system, names), known);
}

/* Finds the run of a system (NULL: the first). */
static gboolean find_run(struct story *story, const char *system, GError **error)
{
  g_autoptr(GPtrArray) runs = store_runs(story->reader, error);
  if (!runs)
    return FALSE;
  if (runs->len == 0)
    return input_error(error, store_path(story->reader), 0, "holds no run");
  for (guint i = 0; i < runs->len; i++) {
    const struct stored_run *run = runs->pdata[i];
    if (!story->system && (!system || strcmp(run->system, system) == 0)) {
      story->run = run->id;
      story->system = g_strdup(run->system);
    } else if (story->system && strcmp(run->system, story->system) == 0) {
      return input_error(error, store_path(story->reader), 0,
                         "holds several runs of %s, of a sweep: `run` the point of interest alone",
                         run->system);
    }
  }
  return story->system != NULL || unknown_system(story, runs, system, error);
}

/* TRUE if the statement yields a row. *found is left alone on error. */
static gboolean any_row(const struct story *story, const char *sql, gboolean *any, GError **error)
{
  g_autoptr(sqlite3_stmt) statement = story_prepare(story, sql, error);
  int row = statement ? store_step(story->reader, statement, error) : -1;
  *any = row == 1;
  return row >= 0;
}

static gboolean check_decisions(const struct story *story, GError **error)
{
  gboolean any;
  if (!any_row(story, "SELECT 1 FROM decision_data WHERE run = ?1 LIMIT 1", &any, error))
    return FALSE;
  if (any)
    return TRUE;
  return input_error(error, store_path(story->reader), 0,
                     "holds no decisions of %s: run again with --set output.decisions=all", story->system);
}

/* Says why a request is not there: none was stored, a sample was, or there are not so many. */
static gboolean missing_request(const struct story *story, GError **error)
{
  g_autoptr(sqlite3_stmt) statement = store_prepare(
      story->reader, "SELECT count(*), max(id) FROM request WHERE key BETWEEN ?1 AND ?2", error);
  if (!statement)
    return FALSE;
  sqlite3_bind_int64(statement, 1, story->run << REQUEST_ID_BITS);
  sqlite3_bind_int64(statement, 2, story->run << REQUEST_ID_BITS | REQUEST_ID_MAX);
  if (store_step(story->reader, statement, error) != 1)
    return FALSE;
  long long count = sqlite3_column_int64(statement, 0), last = sqlite3_column_int64(statement, 1);
  const char *path = store_path(story->reader);
  if (count == 0)
    return input_error(error, path, 0, "holds no requests of %s: run again with --set output.requests=all",
                       story->system);
  if (story->id > last)
    return input_error(error, path, 0, "%s has no request %lld; the last one stored is %lld", story->system,
                       (long long)story->id, last);
  return input_error(
      error, path, 0,
      "request %lld of %s was not stored (%lld were): run again with --set output.requests=all",
      (long long)story->id, story->system, count);
}

static int64_t column_time(sqlite3_stmt *statement, int column)
{
  return sqlite3_column_type(statement, column) == SQLITE_NULL ? -1 : sqlite3_column_int64(statement, column);
}

static char *column_text(sqlite3_stmt *statement, int column)
{
  const char *text = (const char *)sqlite3_column_text(statement, column);
  return g_utf8_make_valid(text ? text : "", -1);
}

static gboolean read_request(struct story *story, GError **error)
{
  g_autoptr(sqlite3_stmt) statement = store_prepare(
      story->reader,
      "SELECT model, gpu, arrival_ns, dispatch_ns, start_ns, end_ns, outcome, found, slo_met FROM request "
      "WHERE key = ?",
      error);
  if (!statement)
    return FALSE;
  sqlite3_bind_int64(statement, 1, story->run << REQUEST_ID_BITS | story->id);
  int row = store_step(story->reader, statement, error);
  if (row <= 0)
    return row == 0 ? missing_request(story, error) : FALSE;
  story->model = column_text(statement, 0);
  story->gpu = column_time(statement, 1);
  story->arrival_ns = sqlite3_column_int64(statement, 2);
  story->dispatch_ns = column_time(statement, 3);
  story->start_ns = column_time(statement, 4);
  story->end_ns = column_time(statement, 5);
  story->outcome = column_text(statement, 6);
  story->found = column_text(statement, 7);
  story->slo_met = sqlite3_column_int(statement, 8) != 0;
  return TRUE;
}

static void explain_headline(const struct story *story)
{
  g_autofree char *outcome = g_strdelimit(g_strdup(story->outcome), "_", ' ');
  fprintf(story->out, "request %lld of %s: %s, %s", (long long)story->id, story->system, story->model,
          outcome);
  if (story->end_ns >= 0)
    fprintf(story->out, " %s %.3f ms", *story->found ? "in" : "after", story_ms(story, story->end_ns));
  fprintf(story->out, ", SLO %s\n", story->slo_met ? "met" : "missed");
  static const struct {
    const char *found, *text;
  } texts[] = {{"resident", "resident on the GPU"},
               {"joined", "being loaded already; the request joined that load"},
               {"host", "in the server's host memory"},
               {"ssd", "on the server's SSD"},
               {"remote", "in the memory pool"},
               {"process_start", "in no process with room; one was started"}};
  for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
    if (strcmp(texts[i].found, story->found) == 0)
      fprintf(story->out, "the model was %s\n", texts[i].text);
  fputc('\n', story->out);
}

static void print_blocker(const struct story *story, sqlite3_stmt *statement)
{
  g_autofree char *model = column_text(statement, 1);
  int64_t end_ns = column_time(statement, 3);
  fprintf(story->out, "  %lld %s, from %+.3f ms", (long long)sqlite3_column_int64(statement, 0), model,
          story_ms(story, sqlite3_column_int64(statement, 2)));
  if (end_ns >= 0)
    fprintf(story->out, " to its answer at %+.3f ms", story_ms(story, end_ns));
  fputc('\n', story->out);
}

/* The requests that used the GPU while this one waited there. */
static gboolean explain_queue(const struct story *story, GError **error)
{
  if (story->gpu < 0 || story->dispatch_ns < 0 || story->start_ns <= story->dispatch_ns)
    return TRUE;
  /* Key ranges keep to the run; those before this one that still ran when it was sent count too. */
  g_autoptr(sqlite3_stmt) statement = store_prepare(
      story->reader,
      "SELECT id, model, start_ns, end_ns FROM request WHERE key BETWEEN ?1 AND ?2 AND gpu = ?3 AND "
      "start_ns < ?4 AND (start_ns >= ?5 OR end_ns > ?5) AND id <> ?6 ORDER BY start_ns, id",
      error);
  if (!statement)
    return FALSE;
  const int64_t values[] = {story->run << REQUEST_ID_BITS,
                            story->run << REQUEST_ID_BITS | REQUEST_ID_MAX,
                            story->gpu,
                            story->start_ns,
                            story->dispatch_ns,
                            story->id};
  for (size_t i = 0; i < G_N_ELEMENTS(values); i++)
    sqlite3_bind_int64(statement, (int)i + 1, values[i]);
  int row, blockers = 0;
  double waited_ms = (double)(story->start_ns - story->dispatch_ns) / NS_PER_MS;
  while ((row = store_step(story->reader, statement, error)) == 1) {
    if (blockers++ == 0)
      fprintf(story->out, "\nbetween dispatch and start, %.3f ms, GPU %lld was with\n", waited_ms,
              (long long)story->gpu);
    if (blockers <= BLOCKERS_SHOWN)
      print_blocker(story, statement);
  }
  if (blockers > BLOCKERS_SHOWN)
    fprintf(story->out, "  and %d more\n", blockers - BLOCKERS_SHOWN);
  else if (row == 0 && blockers == 0)
    fprintf(story->out,
            "\nno other stored request was on GPU %lld between its dispatch and its start, %.3f ms\n",
            (long long)story->gpu, waited_ms);
  return row == 0;
}

static void story_clear(struct story *story)
{
  g_free(story->system);
  g_free(story->model);
  g_free(story->outcome);
  g_free(story->found);
}

static gboolean tell(struct story *story, const char *system, GError **error)
{
  if (!find_run(story, system, error) || !read_request(story, error) || !check_decisions(story, error))
    return FALSE;
  explain_headline(story);
  return explain_events(story, error) && explain_queue(story, error) && explain_groups(story, error);
}

gboolean explain_request(FILE *out, struct store_reader *reader, const char *system, uint64_t request,
                         GError **error)
{
  char *text = NULL;
  size_t length = 0;
  struct story story = {.reader = reader, .id = (int64_t)request, .out = open_memstream(&text, &length)};
  gboolean told = tell(&story, system, error);
  fclose(story.out);
  if (told)
    fputs(text, out);
  free(text);
  story_clear(&story);
  return told;
}
