/* Timers in a binary heap; see timer_heap.h.
 *
 * An id is a serial number above the number of its slot, so ids grow with time and break ties. */
#include "backend_real/timer_heap.h"

#define SLOT_BITS 22
#define SLOT(id)  ((uint32_t)(id) & (TIMERS_MAX - 1))

G_STATIC_ASSERT(TIMERS_MAX == 1U << SLOT_BITS);

/* What orders the heap lies in it; the rest is touched only once a timer is added or taken. */
struct entry {
  int64_t at;
  uint64_t id;
};

struct slot {
  uint64_t id; /* of its timer; 0 = free */
  void (*due)(void *context, uint64_t tag);
  void *context;
  uint64_t tag;
  uint32_t place; /* in the heap; of a free slot: the next free one + 1 */
};

struct timer_heap {
  struct entry *entry;
  struct slot *slot;
  uint32_t count, slots, capacity;
  uint32_t free_slot; /* + 1; 0 = none */
  uint64_t serial;
};

struct timer_heap *timer_heap_new(void)
{
  struct timer_heap *heap = g_new0(struct timer_heap, 1);
  heap->serial = 1;
  return heap;
}

void timer_heap_free(struct timer_heap *heap)
{
  if (!heap)
    return;
  g_free(heap->entry);
  g_free(heap->slot);
  g_free(heap);
}

static gboolean is_before(struct entry a, struct entry b)
{
  return a.at != b.at ? a.at < b.at : a.id < b.id;
}

static void put(struct timer_heap *heap, uint32_t place, struct entry entry)
{
  heap->entry[place] = entry;
  heap->slot[SLOT(entry.id)].place = place;
}

static void sift_up(struct timer_heap *heap, uint32_t place, struct entry entry)
{
  for (; place > 0 && is_before(entry, heap->entry[(place - 1) / 2]); place = (place - 1) / 2)
    put(heap, place, heap->entry[(place - 1) / 2]);
  put(heap, place, entry);
}

static void sift_down(struct timer_heap *heap, uint32_t place, struct entry entry)
{
  for (uint32_t child = 2 * place + 1; child < heap->count; child = 2 * place + 1) {
    if (child + 1 < heap->count && is_before(heap->entry[child + 1], heap->entry[child]))
      child++;
    if (!is_before(heap->entry[child], entry))
      break;
    put(heap, place, heap->entry[child]);
    place = child;
  }
  put(heap, place, entry);
}

static uint32_t take_slot(struct timer_heap *heap)
{
  if (heap->free_slot) {
    uint32_t slot = heap->free_slot - 1;
    heap->free_slot = heap->slot[slot].place;
    return slot;
  }
  if (heap->slots == heap->capacity) {
    if (heap->capacity == TIMERS_MAX)
      g_error("more than %u timers are pending", TIMERS_MAX);
    heap->capacity = MAX(64, 2 * heap->capacity);
    heap->entry = g_renew(struct entry, heap->entry, heap->capacity);
    heap->slot = g_renew(struct slot, heap->slot, heap->capacity);
  }
  return heap->slots++;
}

uint64_t timer_heap_add(struct timer_heap *heap, const struct timer *timer)
{
  uint32_t slot = take_slot(heap);
  uint64_t id = heap->serial++ << SLOT_BITS | slot;
  heap->slot[slot] = (struct slot){.id = id, .due = timer->due, .context = timer->context, .tag = timer->tag};
  sift_up(heap, heap->count++, (struct entry){timer->at, id});
  return id;
}

static void drop(struct timer_heap *heap, uint32_t slot)
{
  uint32_t place = heap->slot[slot].place;
  struct entry last = heap->entry[--heap->count];
  heap->slot[slot] = (struct slot){.place = heap->free_slot};
  heap->free_slot = slot + 1;
  if (place == heap->count)
    return;
  if (place > 0 && is_before(last, heap->entry[(place - 1) / 2]))
    sift_up(heap, place, last);
  else
    sift_down(heap, place, last);
}

gboolean timer_heap_remove(struct timer_heap *heap, uint64_t id)
{
  uint32_t slot = SLOT(id);
  if (id == 0 || slot >= heap->slots || heap->slot[slot].id != id)
    return FALSE;
  drop(heap, slot);
  return TRUE;
}

int64_t timer_heap_first(const struct timer_heap *heap)
{
  return heap->count ? heap->entry[0].at : INT64_MAX;
}

gboolean timer_heap_take(struct timer_heap *heap, int64_t now, uint64_t limit, struct timer *timer)
{
  if (heap->count == 0 || heap->entry[0].at > now || heap->entry[0].id >= limit)
    return FALSE;
  uint32_t number = SLOT(heap->entry[0].id);
  const struct slot *slot = &heap->slot[number];
  *timer = (struct timer){heap->entry[0].at, slot->id, slot->due, slot->context, slot->tag};
  drop(heap, number);
  return TRUE;
}

uint64_t timer_heap_limit(const struct timer_heap *heap)
{
  return heap->serial << SLOT_BITS;
}

void timer_heap_remove_all(struct timer_heap *heap, const void *context)
{
  for (uint32_t slot = 0; slot < heap->slots; slot++)
    if (heap->slot[slot].id != 0 && heap->slot[slot].context == context)
      drop(heap, slot);
}
