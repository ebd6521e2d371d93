/* Copies and computes as the device takes them: cut where either side of a copy, or the parameters of a
 * computation, are no one range. */
#include "backend_real/real_world_internal.h"

/* Part of a copy that is one range on both sides. */
static struct device_piece copy_piece(const struct copy_op *copy, uint64_t at)
{
  const struct copy_spec *spec = &copy->spec;
  uint64_t offset = spec->offset + at, left = spec->bytes - at, host_piece, device_piece;
  uint64_t place = offset % spec->ring_bytes;
  uint64_t host = ranges_piece(&copy->host, place, MIN(left, spec->ring_bytes - place), &host_piece);
  uint64_t device = ranges_piece(&copy->device, offset, host_piece, &device_piece);
  return (struct device_piece){.host = host, .device = device, .bytes = device_piece};
}

void real_issue_copy(struct real_world *rw, struct copy_op *copy)
{
  const struct copy_op *after = (const struct copy_op *)op_find(rw, copy->spec.after, OP_COPY);
  uint64_t at = 0;
  copy->state = COPY_ISSUED;
  if (copy->spec.pageable) {
    real_pageable_issue(rw, copy);
    return;
  }
  do {
    struct device_copy part = {
        .gpu = copy->spec.gpu, .to_host = copy->spec.to_host, .after = after ? after->token : 0};
    while (at < copy->spec.bytes && part.pieces < DEVICE_PIECES) {
      part.piece[part.pieces] = copy_piece(copy, at);
      at += part.piece[part.pieces++].bytes;
    }
    part.tag = at < copy->spec.bytes ? 0 : (uint64_t)(uintptr_t)&copy->op;
    copy->token = rw->device_ops->copy(rw->device, &part);
  } while (at < copy->spec.bytes);
}

/* Training shares no stream with requests. */
static uint32_t device_stream(const struct compute_spec *spec)
{
  return MIN(spec->stream, DEVICE_STREAMS - 1);
}

void real_issue_compute(struct real_world *rw, struct compute_op *compute)
{
  const struct copy_op *after = (const struct copy_op *)op_find(rw, compute->spec.after, OP_COPY);
  const struct compute_spec *spec = &compute->spec;
  uint64_t at = 0, bytes = compute->device.count > 0 ? spec->bytes : 0;
  do {
    struct device_compute part = {
        .gpu = spec->gpu, .stream = device_stream(spec), .after = after ? after->token : 0};
    while (at < bytes && part.pieces < DEVICE_PIECES) {
      struct device_range *piece = &part.piece[part.pieces++];
      piece->offset = spec->offset + at;
      piece->device = ranges_piece(&compute->device, piece->offset, bytes - at, &piece->bytes);
      at += piece->bytes;
    }
    part.more = at < bytes;
    part.landed = bytes > 0 && rw->is.config->gpudirect;
    if (!part.more) {
      part.checksum = bytes > 0 ? images_checksum(rw->images, spec->model, spec->offset, bytes) : 0;
      part.compute_ns = (int64_t)(spec->compute_ns * (double)MAX(1, spec->steps) + 0.5);
      part.stop = spec->steps > 0 ? &compute->stop : NULL;
      part.tag = (uint64_t)(uintptr_t)&compute->op;
    }
    rw->device_ops->compute(rw->device, &part);
  } while (at < bytes);
}
