/* Operations under way, of all kinds: found by their ids, ended, used anew. What they do: real_fetch.c,
 * real_gpu.c. */
#include "backend_real/real_world_internal.h"

#include <string.h>

static struct slab *slab_of(struct real_world *rw, enum op_kind kind)
{
  return kind == OP_FETCH ? &rw->fetches : kind == OP_COPY ? &rw->copies : &rw->computes;
}

struct op *op_take(struct slab *slab, enum op_kind kind, gsize size)
{
  struct op *op;
  if (slab->free == NO_INDEX) {
    op = g_malloc0(size);
    op->index = slab->all->len;
    g_ptr_array_add(slab->all, op);
  } else {
    op = g_ptr_array_index(slab->all, slab->free);
    slab->free = op->next_free;
  }
  op->kind = kind;
  op->generation++;
  op->cancelled = FALSE;
  return op;
}

struct op *op_find(struct real_world *rw, op_id id, enum op_kind kind)
{
  const struct slab *slab = slab_of(rw, kind);
  uint32_t index = (uint32_t)id & 0xfffffff;
  if (id == 0 || ((uint32_t)id >> 28) != (uint32_t)kind || index >= slab->all->len)
    return NULL;
  struct op *op = g_ptr_array_index(slab->all, index);
  return op->kind == kind && op->generation == (uint32_t)(id >> 32) ? op : NULL;
}

void op_end(struct real_world *rw, struct op *op, struct completion completion)
{
  struct slab *slab = slab_of(rw, op->kind);
  completion.tag = op->tag;
  op->kind = OP_FREE;
  op->next_free = slab->free;
  slab->free = op->index;
  if (rw->closed)
    return;
  rw->actor_ops->completion(rw->actor, &completion);
}

void ranges_copy(struct ranges *to, const struct ranges *from)
{
  to->count = from ? from->count : 0;
  if (to->count > to->room) {
    to->range = g_renew(struct range, to->range, to->count);
    to->room = to->count;
  }
  if (to->count > 0)
    memcpy(to->range, from->range, to->count * sizeof *to->range);
}

void ops_init(struct real_world *rw)
{
  for (enum op_kind kind = OP_FETCH; kind <= OP_COMPUTE; kind++)
    *slab_of(rw, kind) = (struct slab){.all = g_ptr_array_new(), .free = NO_INDEX};
}

void ops_free(struct real_world *rw)
{
  for (uint32_t i = 0; i < rw->fetches.all->len; i++) {
    struct fetch_op *fetch = g_ptr_array_index(rw->fetches.all, i);
    ranges_clear(&fetch->place);
    g_free(fetch->stream);
    g_free(fetch->missing);
  }
  for (uint32_t i = 0; i < rw->copies.all->len; i++) {
    struct copy_op *copy = g_ptr_array_index(rw->copies.all, i);
    ranges_clear(&copy->host);
    ranges_clear(&copy->device);
  }
  for (uint32_t i = 0; i < rw->computes.all->len; i++)
    ranges_clear(&((struct compute_op *)g_ptr_array_index(rw->computes.all, i))->device);
  for (enum op_kind kind = OP_FETCH; kind <= OP_COMPUTE; kind++) {
    g_ptr_array_set_free_func(slab_of(rw, kind)->all, g_free);
    g_ptr_array_unref(slab_of(rw, kind)->all);
  }
}
