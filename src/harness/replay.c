/* Reads a stored run's arrivals; see replay.h. */
#include "harness/replay.h"

#include "core/error.h"
#include "harness/store_schema.h"

/* Later arrivals are refused: no sum of one and a run's other times overflows. As run.c's own limit. */
#define ARRIVAL_MAX_NS (1000000000 * NS_PER_S)

/* Model ids of the database to those of the catalog. */
static GArray *read_models(struct store_reader *reader, const struct stored_run *run,
                           const struct catalog *catalog, GError **error)
{
  g_autoptr(sqlite3_stmt) statement =
      store_prepare(reader, "SELECT id, name FROM model WHERE run = ? ORDER BY id", error);
  if (!statement)
    return NULL;
  sqlite3_bind_int64(statement, 1, run->id);
  g_autoptr(GArray) models = g_array_new(FALSE, FALSE, sizeof(uint32_t));
  int row;
  while ((row = store_step(reader, statement, error)) == 1) {
    const char *name = (const char *)sqlite3_column_text(statement, 1);
    int64_t profile, model = name ? catalog_find(catalog, name, &profile) : -1;
    if (sqlite3_column_int64(statement, 0) != models->len || model < 0)
      return input_error(error, store_path(reader), 0,
                         "model %u of run %d: expected one of the experiment's, found \"%s\"", models->len,
                         (int)run->id, name ? name : ""),
             NULL;
    uint32_t id = (uint32_t)model;
    g_array_append_val(models, id);
  }
  return row == 0 ? g_steal_pointer(&models) : NULL;
}

/* The row under the statement, which must follow the last one of the array. */
static gboolean read_arrival(struct store_reader *reader, sqlite3_stmt *statement, const GArray *models,
                             GArray *arrivals, GError **error)
{
  int64_t last = arrivals->len > 0 ? g_array_index(arrivals, struct arrival, arrivals->len - 1).at_ns : 0;
  int64_t id = sqlite3_column_int64(statement, 0), model = sqlite3_column_int64(statement, 1);
  struct arrival arrival = {.at_ns = sqlite3_column_int64(statement, 2)};
  if (sqlite3_column_type(statement, 1) != SQLITE_INTEGER ||
      sqlite3_column_type(statement, 2) != SQLITE_INTEGER)
    return input_error(error, store_path(reader), 0,
                       "request %u: expected a model and an arrival, found other than numbers",
                       arrivals->len);
  if (id != arrivals->len)
    return input_error(error, store_path(reader), 0,
                       "request %u is not stored: run again with --set output.requests=all", arrivals->len);
  if (model < 0 || model >= models->len)
    return input_error(error, store_path(reader), 0,
                       "request %u: expected a model below %u, found %" G_GINT64_FORMAT, arrivals->len,
                       models->len, model);
  if (arrival.at_ns < last || arrival.at_ns > ARRIVAL_MAX_NS)
    return input_error(error, store_path(reader), 0,
                       "request %u: expected an arrival from %" G_GINT64_FORMAT
                       " ns on, found %" G_GINT64_FORMAT,
                       arrivals->len, last, arrival.at_ns);
  arrival.model = g_array_index(models, uint32_t, model);
  g_array_append_val(arrivals, arrival);
  return TRUE;
}

static gboolean read_arrivals(struct store_reader *reader, const struct stored_run *run, const GArray *models,
                              GArray *arrivals, GError **error)
{
  g_autoptr(sqlite3_stmt) statement = store_prepare(
      reader, "SELECT key - ?1, model, arrival_ns FROM request_data WHERE key BETWEEN ?1 AND ?2 ORDER BY key",
      error);
  if (!statement)
    return FALSE;
  sqlite3_bind_int64(statement, 1, run->id << REQUEST_ID_BITS);
  sqlite3_bind_int64(statement, 2, run->id << REQUEST_ID_BITS | REQUEST_ID_MAX);
  int row;
  while ((row = store_step(reader, statement, error)) == 1)
    if (!read_arrival(reader, statement, models, arrivals, error))
      return FALSE;
  return row == 0;
}

struct replay *replay_read(struct store_reader *reader, const struct stored_run *run,
                           const struct catalog *catalog, GError **error)
{
  double span = run->figures.window_s * 1e9 + (double)run->warmup_ns;
  if (!(span >= 0 && span <= (double)ARRIVAL_MAX_NS))
    return input_error(error, store_path(reader), 0, "run %d: window_s is out of bounds", (int)run->id), NULL;
  g_autoptr(GArray) models = read_models(reader, run, catalog, error);
  g_autoptr(GArray) arrivals = g_array_new(FALSE, FALSE, sizeof(struct arrival));
  if (!models || !read_arrivals(reader, run, models, arrivals, error))
    return NULL;
  if (arrivals->len == 0)
    return input_error(error, store_path(reader), 0,
                       "holds no request of system %s: run again with --set output.requests=all",
                       run->system),
           NULL;
  struct replay *replay = g_new0(struct replay, 1);
  replay->count = arrivals->len;
  replay->arrival = (struct arrival *)(void *)g_array_free(g_steal_pointer(&arrivals), FALSE);
  replay->span_ns = ns_round(span);
  return replay;
}

void replay_free(struct replay *replay)
{
  if (!replay)
    return;
  g_free(replay->arrival);
  g_free(replay);
}
