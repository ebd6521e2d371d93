/* Segments in order of address; see content.h. */
#include "content.h"

struct segment {
  uint64_t at, length, image;
  uint32_t model;
};

struct content {
  GArray *segments; /* by address, no overlap */
};

struct content *content_new(void)
{
  struct content *content = g_new(struct content, 1);
  content->segments = g_array_new(FALSE, FALSE, sizeof(struct segment));
  return content;
}

void content_free(struct content *content)
{
  if (!content)
    return;
  g_array_unref(content->segments);
  g_free(content);
}

static struct segment *segment_at(const struct content *content, guint i)
{
  return &g_array_index(content->segments, struct segment, i);
}

/* The first segment that ends after `at`. */
static guint find(const struct content *content, uint64_t at)
{
  guint low = 0, high = content->segments->len;
  while (low < high) {
    guint middle = low + (high - low) / 2;
    const struct segment *s = segment_at(content, middle);
    if (s->at + s->length <= at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void content_clear(struct content *content, uint64_t at, uint64_t length)
{
  uint64_t end = at + length;
  guint i = find(content, at);
  while (length > 0 && i < content->segments->len && segment_at(content, i)->at < end) {
    struct segment old = *segment_at(content, i);
    g_array_remove_index(content->segments, i);
    if (old.at < at) {
      struct segment head = old;
      head.length = at - old.at;
      g_array_insert_val(content->segments, i, head);
      i++;
    }
    if (old.at + old.length > end) {
      struct segment tail = {.at = end,
                             .length = old.at + old.length - end,
                             .image = old.image + (end - old.at),
                             .model = old.model};
      g_array_insert_val(content->segments, i, tail);
    }
  }
}

void content_set(struct content *content, uint64_t at, uint64_t length, uint32_t model, uint64_t image)
{
  struct segment segment = {.at = at, .length = length, .image = image, .model = model};
  if (length == 0)
    return;
  content_clear(content, at, length);
  g_array_insert_val(content->segments, find(content, at), segment);
}

gboolean content_is(const struct content *content, uint64_t at, uint64_t length, uint32_t model,
                    uint64_t image)
{
  uint64_t end = at + length;
  for (guint i = find(content, at); at < end; i++) {
    if (i >= content->segments->len)
      return FALSE;
    const struct segment *s = segment_at(content, i);
    if (s->at > at || s->model != model || s->image + (at - s->at) != image)
      return FALSE;
    uint64_t step = MIN(end, s->at + s->length) - at;
    at += step;
    image += step;
  }
  return TRUE;
}

uint64_t content_bytes(const struct content *content)
{
  uint64_t bytes = 0;
  for (guint i = 0; i < content->segments->len; i++)
    bytes += segment_at(content, i)->length;
  return bytes;
}
