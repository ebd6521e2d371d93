/* Which groups of the model came from where and when: a table of network, PCIe and compute times. */
#include "core/units.h"
#include "harness/explain_part.h"
#include "harness/table.h"
#include <string.h>

#define ROWS_MOST 12 /* more groups are put together into as many rows at most */

enum stage { STAGE_NET, STAGE_PCIE, STAGE_COMPUTE, STAGES };

static const char *const stage_kinds[STAGES] = {"net", "pcie", "compute"};

/* Groups first..last and when each stage worked on them: start -1 = never. */
struct row {
  int64_t first, last;
  int64_t bytes;
  int64_t start_ns[STAGES], end_ns[STAGES];
};

/* Whose records tell of the load: an upload that was joined, or bytes that came to the server for another
 * GPU's load, carry the id of the request that caused them. -1 = none but the request itself. */
struct causes {
  int64_t loader, fetcher;
};

/* The first column of a statement's first row, or -1 where there is none. */
static gboolean read_cause(const struct story *story, sqlite3_stmt *statement, int64_t *cause, GError **error)
{
  int row = store_step(story->reader, statement, error);
  *cause = row == 1 ? sqlite3_column_int64(statement, 0) : -1;
  return row >= 0;
}

/* The request whose load this one joined: the model's last load there, on this GPU if there was one. */
static gboolean find_loader(const struct story *story, int64_t *loader, GError **error)
{
  g_autoptr(sqlite3_stmt) statement = story_prepare(
      story,
      "SELECT request FROM decision WHERE run = ?1 AND kind = 'load' AND request <> ?2 AND model = ?3 AND "
      "time_ns <= ?4 AND server IN (SELECT server FROM decision WHERE run = ?1 AND request = ?2 AND kind = "
      "'dispatch') "
      "ORDER BY gpu IS NOT ?5, time_ns DESC, seq DESC LIMIT 1",
      error);
  if (!statement)
    return FALSE;
  sqlite3_bind_text(statement, 3, story->model, -1, SQLITE_TRANSIENT);
  sqlite3_bind_int64(statement, 4, story->end_ns);
  sqlite3_bind_int64(statement, 5, story->gpu);
  return read_cause(story, statement, loader, error);
}

/* The request for which the model's groups came to the server while it was loaded: for this GPU if any did
 * (with gpudirect, what came for another one is of no use). */
static gboolean find_fetcher(const struct story *story, int64_t loader, int64_t *fetcher, GError **error)
{
  g_autoptr(sqlite3_stmt) statement =
      story_prepare(story,
                    "SELECT request FROM decision WHERE run = ?1 AND kind = 'net' AND model = ?3 AND time_ns "
                    "<= ?4 AND time_ns >= "
                    "(SELECT max(time_ns) FROM decision WHERE run = ?1 AND request IN (?2, ?5) AND kind = "
                    "'load') AND server IN "
                    "(SELECT server FROM decision WHERE run = ?1 AND request = ?2 AND kind = 'dispatch') "
                    "ORDER BY gpu IS NOT ?6, time_ns DESC, seq DESC LIMIT 1",
                    error);
  if (!statement)
    return FALSE;
  sqlite3_bind_text(statement, 3, story->model, -1, SQLITE_TRANSIENT);
  sqlite3_bind_int64(statement, 4, story->end_ns);
  sqlite3_bind_int64(statement, 5, loader);
  sqlite3_bind_int64(statement, 6, story->gpu);
  return read_cause(story, statement, fetcher, error);
}

static gboolean find_causes(const struct story *story, struct causes *causes, GError **error)
{
  *causes = (struct causes){-1, -1};
  gboolean joined = strcmp(story->found, "joined") == 0;
  if (joined && !find_loader(story, &causes->loader, error))
    return FALSE;
  if ((joined || strcmp(story->found, "remote") == 0) &&
      !find_fetcher(story, causes->loader, &causes->fetcher, error))
    return FALSE;
  if (causes->fetcher == story->id)
    causes->fetcher = -1;
  return TRUE;
}

static struct row *row_of_group(GArray *rows, int64_t group)
{
  if (rows->len > 0) {
    struct row *last = &g_array_index(rows, struct row, rows->len - 1);
    if (last->last == group)
      return last;
  }
  struct row row = {.first = group, .last = group, .start_ns = {-1, -1, -1}, .end_ns = {-1, -1, -1}};
  g_array_append_val(rows, row);
  return &g_array_index(rows, struct row, rows->len - 1);
}

static void cover(struct row *row, enum stage stage, int64_t start_ns, int64_t end_ns)
{
  if (row->start_ns[stage] < 0 || start_ns < row->start_ns[stage])
    row->start_ns[stage] = start_ns;
  row->end_ns[stage] = max_i64(row->end_ns[stage], end_ns);
}

static enum stage stage_of(const char *kind)
{
  enum stage stage = STAGE_NET;
  while (stage < STAGE_COMPUTE && g_strcmp0(stage_kinds[stage], kind) != 0)
    stage++;
  return stage;
}

/* One row a group, in order. A group's bytes are those of its upload, or of its fetch. */
static GArray *read_groups(const struct story *story, const struct causes *causes, GError **error)
{
  g_autoptr(sqlite3_stmt) statement = story_prepare(
      story,
      "SELECT kind, coalesce(part, -1), a, b, time_ns FROM decision WHERE run = ?1 AND request IN (?2, ?3, "
      "?6) AND "
      "model = ?4 AND (kind = 'net' OR (kind = 'pcie' AND gpu = ?5 AND request IN (?2, ?3)) OR "
      "(kind = 'compute' AND gpu = ?5 AND request = ?2)) ORDER BY coalesce(part, -1), time_ns, seq",
      error);
  if (!statement)
    return NULL;
  sqlite3_bind_int64(statement, 3, causes->loader);
  sqlite3_bind_text(statement, 4, story->model, -1, SQLITE_TRANSIENT);
  sqlite3_bind_int64(statement, 5, story->gpu);
  sqlite3_bind_int64(statement, 6, causes->fetcher);
  g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(struct row));
  int more;
  while ((more = store_step(story->reader, statement, error)) == 1) {
    enum stage stage = stage_of((const char *)sqlite3_column_text(statement, 0));
    struct row *row = row_of_group(rows, sqlite3_column_int64(statement, 1));
    if (stage != STAGE_COMPUTE)
      row->bytes = max_i64(row->bytes, sqlite3_column_int64(statement, 2));
    cover(row, stage, sqlite3_column_int64(statement, 3), sqlite3_column_int64(statement, 4));
  }
  return more == 0 ? g_steal_pointer(&rows) : NULL;
}

/* Puts neighbours together until there are about ROWS_MOST; the row of the whole model stays by itself. */
static GArray *merge_rows(const GArray *rows)
{
  gint64 merge = (rows->len + ROWS_MOST - 1) / ROWS_MOST;
  GArray *merged = g_array_new(FALSE, FALSE, sizeof(struct row));
  for (guint i = 0; i < rows->len; i++) {
    const struct row *row = &g_array_index(rows, struct row, i);
    struct row *into = merged->len ? &g_array_index(merged, struct row, merged->len - 1) : NULL;
    if (!into || into->first < 0 || row->first / merge != into->first / merge) {
      g_array_append_val(merged, *row);
      continue;
    }
    into->last = row->last;
    into->bytes += row->bytes;
    for (enum stage stage = 0; stage < STAGES; stage++)
      if (row->start_ns[stage] >= 0)
        cover(into, stage, row->start_ns[stage], row->end_ns[stage]);
  }
  return merged;
}

static char *groups_text(const struct row *row)
{
  if (row->first < 0)
    return g_strdup("whole model");
  if (row->first == row->last)
    return g_strdup_printf("group %lld", (long long)row->first);
  return g_strdup_printf("groups %lld to %lld", (long long)row->first, (long long)row->last);
}

static char *span_text(const struct story *story, const struct row *row, enum stage stage)
{
  if (row->start_ns[stage] < 0)
    return g_strdup("-");
  return g_strdup_printf("%.3f to %.3f", story_ms(story, row->start_ns[stage]),
                         story_ms(story, row->end_ns[stage]));
}

static void print_groups(const struct story *story, const GArray *rows)
{
  g_autoptr(Table) table = table_new(2 + STAGES, 1);
  static const char *const titles[2 + STAGES] = {"ms after arrival", "size", "network", "PCIe", "compute"};
  for (size_t i = 0; i < G_N_ELEMENTS(titles); i++)
    table_cell(table, g_strdup(titles[i]), FALSE);
  for (guint i = 0; i < rows->len; i++) {
    const struct row *row = &g_array_index(rows, struct row, i);
    table_cell(table, groups_text(row), FALSE);
    table_cell(table, row->bytes > 0 ? format_bytes(row->bytes) : g_strdup("-"), FALSE);
    for (enum stage stage = 0; stage < STAGES; stage++)
      table_cell(table, span_text(story, row, stage), FALSE);
  }
  table_print(table, story->out, FALSE);
}

gboolean explain_groups(const struct story *story, GError **error)
{
  struct causes causes;
  if (!find_causes(story, &causes, error))
    return FALSE;
  g_autoptr(GArray) groups = read_groups(story, &causes, error);
  if (!groups)
    return FALSE;
  if (causes.loader >= 0)
    fprintf(story->out, "\nit joined the load that request %lld had caused\n", (long long)causes.loader);
  if (causes.fetcher >= 0 && causes.fetcher != causes.loader)
    fprintf(story->out, "\nthe groups came to the server for request %lld\n", (long long)causes.fetcher);
  if (groups->len == 0)
    return TRUE;
  fputc('\n', story->out);
  g_autoptr(GArray) rows = merge_rows(groups);
  print_groups(story, rows);
  return TRUE;
}
