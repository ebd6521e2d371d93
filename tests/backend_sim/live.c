/* See live.h. */
#include "live.h"

struct live *live_new(actor_id actor, op_id op, enum kind kind, uint32_t model)
{
  struct live *live = g_new0(struct live, 1);
  *live = (struct live){.op = op,
                        .kind = kind,
                        .actor = actor,
                        .model = model,
                        .accesses = g_array_new(FALSE, FALSE, sizeof(struct access))};
  return live;
}

void live_free(gpointer data)
{
  struct live *live = data;
  g_array_unref(live->accesses);
  g_free(live);
}

struct live *live_find(const GPtrArray *all, op_id op)
{
  for (guint i = 0; op != 0 && i < all->len; i++) {
    struct live *live = g_ptr_array_index(all, i);
    if (live->op == op)
      return live;
  }
  return NULL;
}

static gboolean same_lane(const struct live *a, const struct live *b)
{
  return a->kind == b->kind && a->kind != FETCH && a->actor == b->actor && a->gpu == b->gpu &&
         a->lane == b->lane && a->to_host == b->to_host;
}

gboolean live_ordered(const GPtrArray *all, const struct live *a, const struct live *b)
{
  if (b->after == a->op || b->after_fetch == a->op || same_lane(a, b))
    return TRUE;
  const struct live *before = live_find(all, b->after);
  if (before && live_ordered(all, a, before))
    return TRUE;
  for (guint i = 0; i < all->len; i++) {
    const struct live *other = g_ptr_array_index(all, i);
    if (other == b)
      break;
    if (same_lane(other, b) && other != a && live_ordered(all, a, other))
      return TRUE;
  }
  return FALSE;
}

gboolean live_collide(const struct live *a, const struct live *b)
{
  for (guint i = 0; i < a->accesses->len; i++)
    for (guint k = 0; k < b->accesses->len; k++) {
      const struct access *x = &g_array_index(a->accesses, struct access, i);
      const struct access *y = &g_array_index(b->accesses, struct access, k);
      if (x->memory == y->memory && (x->write || y->write) && x->at < y->at + y->length &&
          y->at < x->at + x->length)
        return TRUE;
    }
  return FALSE;
}

void live_doom(const GPtrArray *all, const struct live *failed, uint32_t groups)
{
  gboolean later = FALSE;
  for (guint i = 0; i < all->len; i++) {
    const struct live *other = g_ptr_array_index(all, i);
    gboolean fails = other->after == failed->op ||
                     (later && failed->kind == COPY && same_lane(other, failed)) ||
                     (failed->direct && other->after_fetch == failed->op && other->group >= groups);
    later |= other == failed;
    if (!fails || other->accesses->len == 0)
      continue;
    g_array_set_size(other->accesses, 0);
    live_doom(all, other, 0);
  }
}
