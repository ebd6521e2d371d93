/* Timers and operations of a replayed run; see replay_pending.h. */
#include "backend_sim/replay_pending.h"

struct timer {
  uint64_t id;
  int64_t at;
};

/* Operations with one tag; of several, the most that any of them may tell. */
struct operations {
  uint32_t count;
  struct pending_most most;
};

struct replay_pending {
  GHashTable *tag_of;     /* id of a timer -> its tag; both boxed */
  GHashTable *timers;     /* tag, boxed -> GArray of struct timer, in the order in which they were set */
  GHashTable *operations; /* tag, boxed -> struct operations */
};

static gpointer box(uint64_t value)
{
  return g_memdup2(&value, sizeof value);
}

struct replay_pending *replay_pending_new(void)
{
  struct replay_pending *p = g_new(struct replay_pending, 1);
  p->tag_of = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
  p->timers = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, (GDestroyNotify)g_array_unref);
  p->operations = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
  return p;
}

void replay_pending_free(struct replay_pending *p)
{
  g_hash_table_unref(p->tag_of);
  g_hash_table_unref(p->timers);
  g_hash_table_unref(p->operations);
  g_free(p);
}

/* --- timers
 * ---------------------------------------------------------------------------------------------------------*/

gboolean pending_timer(struct replay_pending *p, uint64_t id, uint64_t tag, int64_t at)
{
  struct timer timer = {id, at};
  if (id == 0 || g_hash_table_contains(p->tag_of, &id))
    return FALSE;
  GArray *same = g_hash_table_lookup(p->timers, &tag);
  if (!same) {
    same = g_array_new(FALSE, FALSE, sizeof(struct timer));
    g_hash_table_insert(p->timers, box(tag), same);
  }
  g_array_append_val(same, timer);
  g_hash_table_insert(p->tag_of, box(id), box(tag));
  return TRUE;
}

static void timer_remove(struct replay_pending *p, uint64_t tag, GArray *same, guint index)
{
  g_hash_table_remove(p->tag_of, &g_array_index(same, struct timer, index).id);
  g_array_remove_index(same, index);
  if (same->len == 0)
    g_hash_table_remove(p->timers, &tag);
}

void pending_timer_cancel(struct replay_pending *p, uint64_t id)
{
  const uint64_t *found = g_hash_table_lookup(p->tag_of, &id);
  if (!found)
    return;
  uint64_t tag = *found;
  GArray *same = g_hash_table_lookup(p->timers, &tag);
  for (guint i = 0; i < same->len; i++)
    if (g_array_index(same, struct timer, i).id == id) {
      timer_remove(p, tag, same, i);
      return;
    }
}

gboolean pending_timer_due(struct replay_pending *p, uint64_t tag, int64_t now)
{
  GArray *same = g_hash_table_lookup(p->timers, &tag);
  guint first = 0;
  for (guint i = 1; same && i < same->len; i++)
    if (g_array_index(same, struct timer, i).at < g_array_index(same, struct timer, first).at)
      first = i;
  if (!same || g_array_index(same, struct timer, first).at > now)
    return FALSE;
  timer_remove(p, tag, same, first);
  return TRUE;
}

/* --- operations
 * -----------------------------------------------------------------------------------------------------*/

void pending_operation(struct replay_pending *p, uint64_t tag, const struct pending_most *most)
{
  struct operations *same = g_hash_table_lookup(p->operations, &tag);
  if (!same) {
    same = g_new0(struct operations, 1);
    g_hash_table_insert(p->operations, box(tag), same);
  }
  same->count++;
  same->most.bytes = MAX(same->most.bytes, most->bytes);
  same->most.steps = MAX(same->most.steps, most->steps);
  same->most.groups = MAX(same->most.groups, most->groups);
}

gboolean pending_operation_ended(struct replay_pending *p, uint64_t tag, const struct pending_most *told)
{
  struct operations *same = g_hash_table_lookup(p->operations, &tag);
  if (!same || told->bytes > same->most.bytes || told->steps > same->most.steps ||
      told->groups > same->most.groups)
    return FALSE;
  if (--same->count == 0)
    g_hash_table_remove(p->operations, &tag);
  return TRUE;
}
