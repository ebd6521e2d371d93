/* Copies out of and into pageable memory, as a framework's .cuda() and .cpu() make them: tensor by tensor,
 * each waited for by the thread that asked, on a thread of its own for each GPU. Nothing of a framework's own
 * cost is added (the simulator adds what the profile says, swap_extra_ms). */
#include "backend_real/real_world_internal.h"

struct mover {
  GThreadPool *pool;
  uint8_t *taken; /* what .cpu() takes for a model that leaves the GPU: its bytes are those of the home, so
                     nobody reads it */
  uint64_t room;
};

static uint8_t *host_place(struct mover *mover, struct copy_op *copy, uint64_t at, uint64_t *piece)
{
  const struct copy_spec *spec = &copy->spec;
  if (copy->host.count > 0)
    return copy->rw->memory->base +
           ranges_piece(&copy->host, (spec->offset + at) % spec->ring_bytes, *piece, piece);
  if (spec->bytes > mover->room) {
    g_free(mover->taken);
    mover->taken = g_malloc(spec->bytes);
    mover->room = spec->bytes;
  }
  return mover->taken + at;
}

/* One tensor, in as many moves as its places have pieces. */
static gboolean move_bytes(struct mover *mover, struct copy_op *copy, uint64_t at, uint64_t bytes)
{
  struct real_world *rw = copy->rw;
  for (uint64_t end = at + bytes, piece; at < end; at += piece) {
    piece = end - at;
    uint64_t on_gpu = ranges_piece(&copy->device, copy->spec.offset + at, piece, &piece);
    uint8_t *host = host_place(mover, copy, at, &piece);
    if (!rw->device_ops->move(rw->device, copy->spec.gpu, copy->spec.to_host, host, on_gpu, piece))
      return FALSE;
  }
  return TRUE;
}

/* The profile tells the tensors of a model in all, not of each layer: each gets its share, by number, and
 * equal parts of its bytes. */
static gboolean move_tensors(struct mover *mover, struct copy_op *copy)
{
  const struct profile *profile = catalog_profile(copy->rw->is.config->catalog, copy->spec.model);
  uint64_t at = 0;
  for (uint32_t l = 0; l < profile->layers; l++) {
    uint64_t before = (uint64_t)profile->tensors * l / profile->layers;
    uint64_t parts = MAX(1, (uint64_t)profile->tensors * (l + 1) / profile->layers - before);
    uint64_t bytes = profile->layer_bytes[l];
    for (uint64_t p = 0; p < parts; p++)
      if (!move_bytes(mover, copy, at + bytes * p / parts, bytes * (p + 1) / parts - bytes * p / parts))
        return FALSE;
    at += bytes;
  }
  return TRUE;
}

static void move_copy(gpointer data, gpointer context)
{
  struct copy_op *copy = data;
  copy->start = loop_clock();
  gboolean whole = copy->spec.model != NO_INDEX &&
                   copy->spec.bytes == catalog_bytes(copy->rw->is.config->catalog, copy->spec.model);
  copy->failed = !(whole ? move_tensors(context, copy) : move_bytes(context, copy, 0, copy->spec.bytes));
  copy->end = loop_clock();
  note_post(copy->rw->is.loop, &copy->note);
}

void real_pageable_issue(struct real_world *rw, struct copy_op *copy)
{
  struct real_gpu *gpu = &rw->gpu[copy->spec.gpu];
  if (!gpu->mover) {
    gpu->mover = g_new0(struct mover, 1);
    gpu->mover->pool = g_thread_pool_new(move_copy, gpu->mover, 1, TRUE, NULL);
  }
  g_thread_pool_push(gpu->mover->pool, copy, NULL);
}

void real_pageable_close(struct real_gpu *gpu)
{
  if (!gpu->mover)
    return;
  g_thread_pool_free(gpu->mover->pool, FALSE, TRUE);
  g_free(gpu->mover->taken);
  g_free(gpu->mover);
  gpu->mover = NULL;
}
