/* Parts of models' images that do not overlap, in order: what either end of the verbs transport knows of what
 * is served. A span is embedded first in what its owner keeps of it. */
#ifndef DM_TRANSPORT_VERBS_SPANS_H
#define DM_TRANSPORT_VERBS_SPANS_H

#include <glib.h>
#include <stdint.h>

/* Bytes [offset, offset + bytes) of a model, bytes > 0, without overflow. */
struct span {
  uint32_t model;
  uint64_t offset, bytes;
};

struct spans;

struct spans *spans_new(void);
void spans_free(struct spans *spans); /* the spans themselves are their owner's */
uint32_t spans_count(const struct spans *spans);
/* Overlaps none of those that there are. */
void spans_add(struct spans *spans, struct span *span);
void spans_remove(struct spans *spans, struct span *span);
/* The first that has a byte in [offset, offset + bytes), NULL if none has. */
struct span *spans_first(const struct spans *spans, uint32_t model, uint64_t offset, uint64_t bytes);
/* By model, then offset. FALSE of each ends it. It must not change the spans. */
void spans_each(const struct spans *spans, gboolean (*each)(struct span *span, void *context), void *context);

#endif
