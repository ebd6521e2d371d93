/* What a verbs shelf serves: regions and their registrations; see transport_verbs_shelf.h.
 *
 * Each range of a model's place is registered once, for reading alone, large ones in chunks by several
 * threads; each registration has a key of its own, and readers are told of it by letter. When a region ends
 * whole, its registration is taken back before shelf_serve returns, so nobody reads there any more. That no
 * honest reader is in the middle of it is the core's doing: a memory server lets shards go on DROP
 * (core/memory_move.c), which the controller sends once every GPU server has acknowledged the new plan
 * (plan_settled in core/controller_members.c), and each does that only when no fetch by the old plan is left;
 * servers that fetch shards from one another are through when they say PLACED, which is before that.
 *
 * When a part of a region ends, the rest is read on, perhaps at this moment, by the key of the whole. So the
 * rest is registered anew and told, and the old registration stays until all readers have gone over, have
 * lost their lines, or had LEAVE_NS. Until then the part that ended is guarded by the core's protocol alone:
 * a reader that was admitted and is no honest one could still read what is put there next. */
#include "backend_real/transport_verbs_shelf.h"

#include <string.h>

#include "backend_real/bell.h"
#include "backend_real/verbs_parallel.h"

/* Regions that ended whole are of no use to anybody: telling that can wait for a letter that must go, or this
 * many. */
#define UNTOLD_MAX 256

/* Of a range that is registered: in about so many registrations, each within these bounds. */
#define CHUNKS    8
#define CHUNK_MIN (32ULL << 20)
#define CHUNK_MAX (256ULL << 20)

/* --- letters
 * -------------------------------------------------------------------------------------------------------*/

static void send_letter(struct shelf *shelf, const struct visitor *visitor, GByteArray *letter)
{
  shelf->post(shelf->context, visitor->reader, letter->data, letter->len);
  g_byte_array_unref(letter);
}

/* Sends as many letters as the entries take. Only the last has the serial: who follows it has seen all. */
struct telling {
  struct shelf *shelf;
  struct visitor *visitor;
  GByteArray *letter;
};

static void tell(struct telling *t, const struct verbs_region *region)
{
  if (verbs_regions_add(t->letter, region))
    return;
  verbs_regions_set_serial(t->letter, t->shelf->serial ? t->shelf->serial - 1 : 0);
  send_letter(t->shelf, t->visitor, t->letter);
  t->letter = verbs_regions_begin(t->visitor->attempt, t->shelf->serial, t->shelf->rails);
  verbs_regions_add(t->letter, region);
}

static struct verbs_region entry_of(const struct shelf *shelf, const struct region *region, gboolean add)
{
  struct verbs_region entry = {
      .model = region->span.model, .add = add, .offset = region->span.offset, .bytes = region->span.bytes};
  for (uint32_t r = 0; r < shelf->rails; r++) {
    entry.rail[r].address = region->exposed[r].address;
    entry.rail[r].key = region->exposed[r].key;
  }
  return entry;
}

static gboolean tell_span(struct span *span, void *context)
{
  struct telling *t = context;
  struct verbs_region entry = entry_of(t->shelf, (struct region *)span, TRUE);
  tell(t, &entry);
  return TRUE;
}

void shelf_tell_all(struct shelf *shelf, struct visitor *visitor)
{
  struct telling t = {shelf, visitor, verbs_regions_begin(visitor->attempt, shelf->serial, shelf->rails)};
  spans_each(shelf->regions, tell_span, &t);
  send_letter(shelf, visitor, t.letter);
  visitor->follows = shelf->serial;
}

static void tell_changes(struct shelf *shelf)
{
  for (guint i = 0; i < shelf->in_order->len; i++) {
    struct visitor *visitor = g_ptr_array_index(shelf->in_order, i);
    if (!visitor->attempt)
      continue;
    struct telling t = {shelf, visitor, verbs_regions_begin(visitor->attempt, shelf->serial, shelf->rails)};
    for (guint e = 0; e < shelf->untold->len; e++)
      tell(&t, &g_array_index(shelf->untold, struct verbs_region, e));
    send_letter(shelf, visitor, t.letter);
  }
  g_array_set_size(shelf->untold, 0);
}

static void note_change(struct shelf *shelf, const struct region *region, gboolean add)
{
  struct verbs_region entry = entry_of(shelf, region, add);
  g_array_append_val(shelf->untold, entry);
}

/* --- registrations
 * -------------------------------------------------------------------------------------------------*/

static void conceal(struct shelf *shelf, struct region *region)
{
  for (uint32_t r = 0; r < shelf->rails; r++)
    if (region->exposed[r].handle)
      shelf->ops->conceal(shelf->rail[r], &region->exposed[r]);
  g_free(region);
}

/* Regions that begin, or end whole, in one call. */
struct batch {
  struct shelf *shelf;
  GPtrArray *regions;
  GError *error; /* the first; atomic */
};

/* Once for each NIC. */
static gboolean expose(struct shelf *shelf, struct region *region, GError **error)
{
  for (uint32_t r = 0; r < shelf->rails; r++)
    if (!shelf->ops->expose(shelf->rail[r], shelf->memory.base + region->place, region->span.bytes,
                            &region->exposed[r], error)) {
      region->exposed[r].handle = NULL;
      return FALSE;
    }
  return TRUE;
}

static gboolean expose_step(void *context, uint32_t i)
{
  struct batch *batch = context;
  struct region *region = g_ptr_array_index(batch->regions, i);
  GError *error = NULL;
  region->whole = expose(batch->shelf, region, &error);
  if (!region->whole && !g_atomic_pointer_compare_and_exchange(&batch->error, NULL, error))
    g_error_free(error);
  return region->whole;
}

static gboolean conceal_step(void *context, uint32_t i)
{
  struct batch *batch = context;
  conceal(batch->shelf, g_ptr_array_index(batch->regions, i));
  return TRUE;
}

static void in_parallel(struct batch *batch, gboolean (*step)(void *, uint32_t), const char *what)
{
  g_autofree char *text = g_strdup_printf("memory server %u: %s", batch->shelf->index, what);
  struct verbs_steps steps = {.what = text, .steps = batch->regions->len, .step = step, .context = batch};
  for (guint i = 0; i < batch->regions->len; i++)
    steps.bytes += ((const struct region *)g_ptr_array_index(batch->regions, i))->span.bytes;
  steps.bytes_step = steps.bytes / MAX(steps.steps, 1);
  verbs_parallel(&steps);
}

/* What cannot be registered is not served: who opened the shelf is told by shelf_failure. */
static void expose_all(struct shelf *shelf, GPtrArray *regions)
{
  struct batch batch = {shelf, regions};
  in_parallel(&batch, expose_step, "memory to serve is registered");
  for (guint i = 0; i < regions->len; i++) {
    struct region *region = g_ptr_array_index(regions, i);
    if (region->whole) {
      spans_add(shelf->regions, &region->span);
      note_change(shelf, region, TRUE);
    } else {
      conceal(shelf, region);
    }
  }
  if (!batch.error)
    return;
  transport_log(&shelf->log, "shards cannot be served: %s", batch.error->message);
  if (!shelf->failure)
    shelf->failure = g_strdup(batch.error->message);
  g_error_free(batch.error);
}

static void conceal_all(struct shelf *shelf, GPtrArray *regions)
{
  struct batch batch = {shelf, regions};
  in_parallel(&batch, conceal_step, "memory that is served no more is taken back");
}

/* Large ones are cut, so that several threads register them, and so that what is left of one of which a part
 * ends is soon registered anew. */
static uint64_t chunk_of(uint64_t bytes)
{
  uint64_t chunk = (bytes / CHUNKS + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
  return CLAMP(chunk, CHUNK_MIN, CHUNK_MAX);
}

static void begin_regions(GPtrArray *fresh, uint32_t model, uint64_t offset, uint64_t bytes, uint64_t place)
{
  uint64_t chunk = chunk_of(bytes);
  for (uint64_t done = 0; done < bytes; done += chunk) {
    struct region *region = g_new0(struct region, 1);
    region->span = (struct span){model, offset + done, MIN(chunk, bytes - done)};
    region->place = place + done;
    g_ptr_array_add(fresh, region);
  }
}

/* What is left of a region on one side of what ends. */
static void begin_rest(GPtrArray *fresh, const struct region *whole, uint64_t from, uint64_t to)
{
  if (from < to)
    begin_regions(fresh, whole->span.model, from, to - from, whole->place + (from - whole->span.offset));
}

static gboolean is_followed(const struct shelf *shelf, const struct region *region)
{
  for (guint i = 0; i < shelf->in_order->len; i++) {
    const struct visitor *visitor = g_ptr_array_index(shelf->in_order, i);
    if (visitor->attempt && visitor->follows < region->serial)
      return FALSE;
  }
  return TRUE;
}

gint64 shelf_retire(struct shelf *shelf, gint64 now)
{
  gint64 next = 0;
  for (struct region **at = &shelf->leaving; *at;) {
    struct region *region = *at;
    if (region->deadline_ns <= now || is_followed(shelf, region)) {
      *at = region->next;
      conceal(shelf, region);
    } else {
      next = next ? MIN(next, region->deadline_ns) : region->deadline_ns;
      at = &region->next;
    }
  }
  return next;
}

static gboolean conceal_span(struct span *span, void *context)
{
  conceal(context, (struct region *)span);
  return TRUE;
}

void shelf_retire_all(struct shelf *shelf)
{
  shelf_retire(shelf, G_MAXINT64);
  spans_each(shelf->regions, conceal_span, shelf);
}

/* --- serving
 * -------------------------------------------------------------------------------------------------------*/

/* Takes [offset, end) out. over: regions that end whole; fresh: what is left of others. TRUE: of some only a
 * part ended. */
static gboolean cut(struct shelf *shelf, uint32_t model, uint64_t offset, uint64_t end, GPtrArray *over,
                    GPtrArray *fresh)
{
  struct span *span;
  gboolean parted = FALSE;
  while ((span = spans_first(shelf->regions, model, offset, end - offset))) {
    struct region *region = (struct region *)span;
    uint64_t span_end = span->offset + span->bytes;
    spans_remove(shelf->regions, span);
    note_change(shelf, region, FALSE);
    if (span->offset >= offset && span_end <= end) {
      g_ptr_array_add(over, region);
      continue;
    }
    begin_rest(fresh, region, span->offset, offset);
    begin_rest(fresh, region, end, span_end);
    region->serial = shelf->serial + 1;
    region->deadline_ns = g_get_monotonic_time() * 1000 + LEAVE_NS;
    region->next = shelf->leaving;
    shelf->leaving = region;
    parted = TRUE;
  }
  return parted;
}

static void add(GPtrArray *fresh, uint32_t model, uint64_t offset, uint64_t bytes, const struct ranges *place)
{
  uint64_t done = 0;
  for (uint32_t i = 0; i < place->count && done < bytes; i++) {
    uint64_t here = MIN(place->range[i].length, bytes - done);
    begin_regions(fresh, model, offset + done, here, place->range[i].offset);
    done += here;
  }
}

void verbs_shelf_serve(struct shelf *shelf, uint32_t model, uint64_t offset, uint64_t bytes,
                       const struct ranges *place)
{
  g_autoptr(GPtrArray) over = g_ptr_array_new();
  g_autoptr(GPtrArray) fresh = g_ptr_array_new();
  if (bytes == 0)
    return;
  g_mutex_lock(&shelf->lock);
  gboolean parted = cut(shelf, model, offset, offset + bytes, over, fresh);
  if (place)
    add(fresh, model, offset, bytes, place);
  conceal_all(shelf, over);
  expose_all(shelf, fresh);
  if (place || parted || shelf->untold->len > UNTOLD_MAX) {
    shelf->serial++;
    tell_changes(shelf);
  }
  if (shelf_retire(shelf, g_get_monotonic_time() * 1000))
    bell_ring(shelf->bell);
  g_mutex_unlock(&shelf->lock);
}
