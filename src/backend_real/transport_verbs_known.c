/* What a verbs reader knows of a shelf's regions; see transport_verbs_known.h. */
#include "backend_real/transport_verbs_known.h"

struct known_table {
  struct spans *spans;
  uint32_t rails;
  uint32_t leaving;
  gboolean closed;
};

struct known_table *known_table_new(uint32_t rails)
{
  struct known_table *table = g_new0(struct known_table, 1);
  table->spans = spans_new();
  table->rails = rails;
  return table;
}

static void table_end(struct known_table *table)
{
  if (!table->closed || table->leaving > 0)
    return;
  spans_free(table->spans);
  g_free(table);
}

/* Of one that is in no table any more. */
static void let_go(struct known *known)
{
  known->gone = TRUE;
  if (known->uses > 0)
    known->table->leaving++;
  else
    g_free(known);
}

static gboolean let_go_span(struct span *span, void *context)
{
  (void)context;
  let_go((struct known *)span);
  return TRUE;
}

void known_table_close(struct known_table *table)
{
  if (!table)
    return;
  spans_each(table->spans, let_go_span, NULL);
  table->closed = TRUE;
  table_end(table);
}

uint32_t known_rails(const struct known_table *table)
{
  return table->rails;
}

static void take_away(struct known_table *table, uint32_t model, uint64_t offset, uint64_t bytes)
{
  struct span *span;
  while ((span = spans_first(table->spans, model, offset, bytes))) {
    spans_remove(table->spans, span);
    let_go((struct known *)span);
  }
}

gboolean known_apply(struct known_table *table, const struct verbs_region *entry)
{
  take_away(table, entry->model, entry->offset, entry->bytes);
  if (!entry->add)
    return TRUE;
  if (spans_count(table->spans) >= KNOWN_MAX)
    return FALSE;
  struct known *known = g_malloc0(sizeof *known + table->rails * sizeof known->rail[0]);
  known->span = (struct span){entry->model, entry->offset, entry->bytes};
  known->table = table;
  for (uint32_t r = 0; r < table->rails; r++) {
    known->rail[r].address = entry->rail[r].address;
    known->rail[r].key = entry->rail[r].key;
  }
  spans_add(table->spans, &known->span);
  return TRUE;
}

struct known *known_find(const struct known_table *table, uint32_t model, uint64_t offset)
{
  return (struct known *)spans_first(table->spans, model, offset, 1);
}

gboolean known_covers(const struct known_table *table, uint32_t model, uint64_t offset, uint64_t bytes)
{
  for (uint64_t at = offset, end = offset + bytes; at < end;) {
    const struct known *known = known_find(table, model, at);
    if (!known)
      return FALSE;
    at = known->span.offset + known->span.bytes;
  }
  return TRUE;
}

uint32_t known_leaving(const struct known_table *table)
{
  return table->leaving;
}

void known_use(struct known *known)
{
  known->uses++;
}

void known_done(struct known *known)
{
  struct known_table *table = known->table;
  if (--known->uses > 0 || !known->gone)
    return;
  table->leaving--;
  g_free(known);
  table_end(table);
}
