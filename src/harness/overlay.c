/* Overlaid copies of a trace; see overlay.h. */
#include "harness/overlay.h"

struct copy {
  uint64_t row, left;  /* the next one, and how many are still to come */
  int64_t shift_ns;    /* added to the rows' times; lower by the span until the trace's end has passed */
  uint64_t held_block; /* in asks */
  struct ask asks[ASK_BLOCK];
};

struct entry {
  int64_t at_ns;
  uint32_t copy;
};

struct overlay {
  struct ask_spool *spool;
  int64_t span_ns;
  struct copy *copy; /* [copies] */
  struct entry *heap;
  uint32_t copies, waiting; /* waiting: entries of the heap */
};

static gboolean hold(struct overlay *overlay, struct copy *copy, GError **error)
{
  uint64_t block = copy->row / ASK_BLOCK;
  if (block == copy->held_block)
    return TRUE;
  copy->held_block = block;
  return ask_spool_read(overlay->spool, block, copy->asks, error);
}

static int64_t next_time(const struct copy *copy)
{
  return copy->asks[copy->row % ASK_BLOCK].arrival_ns + copy->shift_ns;
}

static gboolean before(struct entry a, struct entry b)
{
  return a.at_ns < b.at_ns || (a.at_ns == b.at_ns && a.copy < b.copy);
}

/* Puts entry where the hole at the top sinks to. */
static void heap_sink(struct overlay *overlay, struct entry entry)
{
  struct entry *heap = overlay->heap;
  uint32_t hole = 0, child;
  while ((child = 2 * hole + 1) < overlay->waiting) {
    if (child + 1 < overlay->waiting && before(heap[child + 1], heap[child]))
      child++;
    if (!before(heap[child], entry))
      break;
    heap[hole] = heap[child];
    hole = child;
  }
  heap[hole] = entry;
}

static void heap_add(struct overlay *overlay, struct entry entry)
{
  uint32_t hole = overlay->waiting++;
  for (; hole > 0 && before(entry, overlay->heap[(hole - 1) / 2]); hole = (hole - 1) / 2)
    overlay->heap[hole] = overlay->heap[(hole - 1) / 2];
  overlay->heap[hole] = entry;
}

/* The copy begins with the first row that its offset takes past the end of the span. */
static gboolean copy_begin(struct overlay *overlay, uint32_t index, int64_t offset_ns, GError **error)
{
  struct copy *copy = &overlay->copy[index];
  uint64_t rows = ask_spool_rows(overlay->spool);
  *copy = (struct copy){.left = rows, .held_block = UINT64_MAX};
  if (!ask_spool_find(overlay->spool, overlay->span_ns - offset_ns, &copy->row, error))
    return FALSE;
  copy->shift_ns = offset_ns - overlay->span_ns;
  if (copy->row == rows) { /* no row is that late: it begins at the beginning */
    copy->row = 0;
    copy->shift_ns = offset_ns;
  }
  if (!hold(overlay, copy, error))
    return FALSE;
  heap_add(overlay, (struct entry){next_time(copy), index});
  return TRUE;
}

struct overlay *overlay_new(struct ask_spool *spool, int64_t span_ns, uint32_t copies, gsl_rng *rng,
                            GError **error)
{
  struct overlay *overlay = g_new0(struct overlay, 1);
  overlay->spool = spool;
  overlay->span_ns = span_ns;
  overlay->copies = copies;
  overlay->copy = g_new0(struct copy, copies);
  overlay->heap = g_new(struct entry, copies);
  for (uint32_t i = 0; i < copies; i++) {
    int64_t offset_ns = i == 0 ? 0 : (int64_t)(gsl_rng_uniform(rng) * (double)span_ns);
    if (!copy_begin(overlay, i, offset_ns, error)) {
      overlay_free(overlay);
      return NULL;
    }
  }
  return overlay;
}

void overlay_free(struct overlay *overlay)
{
  if (!overlay)
    return;
  ask_spool_free(overlay->spool);
  g_free(overlay->copy);
  g_free(overlay->heap);
  g_free(overlay);
}

int overlay_next(struct overlay *overlay, struct ask *ask, GError **error)
{
  if (overlay->waiting == 0)
    return 0;
  uint32_t index = overlay->heap[0].copy;
  struct copy *copy = &overlay->copy[index];
  *ask = copy->asks[copy->row % ASK_BLOCK];
  ask->arrival_ns = overlay->heap[0].at_ns;
  if (--copy->left == 0) {
    if (--overlay->waiting > 0)
      heap_sink(overlay, overlay->heap[overlay->waiting]);
    return 1;
  }
  if (++copy->row == ask_spool_rows(overlay->spool)) {
    copy->row = 0;
    copy->shift_ns += overlay->span_ns;
  }
  if (!hold(overlay, copy, error))
    return -1;
  heap_sink(overlay, (struct entry){next_time(copy), index});
  return 1;
}
