/* Indexed 4-ary heap of pending events; see event_queue.h.
 *
 * An entry is 16 bytes, its whole order and its id, so the four children of a node share one cache line and
 * nothing else is read on the way down. Kind and payload wait in a slot that is read once, when the event is
 * taken. Entries are compared as one 128-bit number, without a branch: the children of a node are in no order
 * that a branch predictor could learn. */
#include "backend_sim/event_queue.h"

#include <string.h>

#include "core/units.h"

#define ARITY      4
#define FIRST_SIZE 64
#define CACHE_LINE 64
/* Bits of an entry's low word: the event's number since the base, and its id below. */
#define ID_BITS       28
#define SEQUENCE_BITS 36
/* The root's place: puts first children at multiples of four, at the start of a line. */
#define ROOT (ARITY - 1)

typedef unsigned __int128 event_key;

struct entry {
  uint64_t time;
  uint64_t order; /* (sequence - base) << ID_BITS | id */
};

struct slot {
  uint64_t payload;
  uint32_t kind;
  event_id next_free;
};

struct event_queue {
  struct entry *heap; /* from ROOT on, aligned to lines */
  uint32_t *place;    /* of a pending event in the heap, by id */
  struct slot *slots;
  size_t end;  /* of the heap: ROOT and the number of events */
  size_t size; /* number of events that there is room for */
  event_id ids_used;
  event_id free;
  uint64_t sequence; /* next number to give out */
  uint64_t base;
};

static inline event_key entry_key(const struct entry *entry)
{
  return (event_key)entry->time << 64 | entry->order;
}

static inline event_id entry_id(const struct entry *entry)
{
  return (event_id)(entry->order & ((1u << ID_BITS) - 1));
}

struct event_queue *event_queue_new(void)
{
  struct event_queue *queue = g_new0(struct event_queue, 1);
  queue->free = EVENT_NONE;
  queue->end = ROOT;
  return queue;
}

void event_queue_free(struct event_queue *queue)
{
  if (!queue)
    return;
  g_aligned_free(queue->heap);
  g_free(queue->place);
  g_free(queue->slots);
  g_free(queue);
}

static void queue_grow(struct event_queue *queue)
{
  queue->size = queue->size ? queue->size * 2 : FIRST_SIZE;
  if (queue->size > (size_t)1 << ID_BITS)
    g_error("event queue: more than %u events pending", 1u << ID_BITS);
  struct entry *heap = g_aligned_alloc(queue->size + ROOT, sizeof *heap, CACHE_LINE);
  if (queue->heap)
    memcpy(heap, queue->heap, queue->end * sizeof *heap);
  g_aligned_free(queue->heap);
  queue->heap = heap;
  queue->place = g_renew(uint32_t, queue->place, queue->size);
  queue->slots = g_renew(struct slot, queue->slots, queue->size);
}

static inline void entry_put(struct event_queue *queue, size_t place, struct entry entry)
{
  queue->heap[place] = entry;
  queue->place[entry_id(&entry)] = (uint32_t)place;
}

/* With ROOT = 3 the children of place p are 4 (p - 2) and the three after it. */
static inline size_t place_parent(size_t place)
{
  return place / ARITY + ROOT - 1;
}

static inline size_t place_child(size_t place)
{
  return (place - ROOT + 1) * ARITY;
}

/* Puts the entry at the hole or, while its parent is later, above it. */
static void hole_rise(struct event_queue *queue, size_t hole, struct entry entry)
{
  event_key key = entry_key(&entry);
  while (hole > ROOT) {
    size_t parent = place_parent(hole);
    if (entry_key(&queue->heap[parent]) < key)
      break;
    entry_put(queue, hole, queue->heap[parent]);
    hole = parent;
  }
  entry_put(queue, hole, entry);
}

static inline size_t least_child(const struct event_queue *queue, size_t child)
{
  const struct entry *heap = queue->heap;
  if (G_LIKELY(child + ARITY <= queue->end)) {
    size_t left = child + (entry_key(&heap[child + 1]) < entry_key(&heap[child]));
    size_t right = child + 2 + (entry_key(&heap[child + 3]) < entry_key(&heap[child + 2]));
    return left + (right - left) * (entry_key(&heap[right]) < entry_key(&heap[left]));
  }
  size_t least = child;
  for (size_t i = child + 1; i < queue->end; i++)
    least = entry_key(&heap[i]) < entry_key(&heap[least]) ? i : least;
  return least;
}

/* Puts the entry at the hole or below it. The hole goes to the bottom first: an entry from the end of the
 * heap belongs there nearly always, and the way down then needs no comparison with it. */
static void hole_fill(struct event_queue *queue, size_t hole, struct entry entry)
{
  for (size_t child; (child = place_child(hole)) < queue->end;) {
    size_t least = least_child(queue, child);
    entry_put(queue, hole, queue->heap[least]);
    hole = least;
  }
  hole_rise(queue, hole, entry);
}

/* Takes the event out of the heap and frees its id. */
static void heap_remove(struct event_queue *queue, size_t place)
{
  event_id id = entry_id(&queue->heap[place]);
  struct entry last = queue->heap[--queue->end];
  if (place < queue->end)
    hole_fill(queue, place, last);
  queue->slots[id].next_free = queue->free;
  queue->free = id;
}

/* Makes room for the numbers to come: the base rises by half of what an entry can tell. An event that has
 * waited for longer than that many insertions keeps the lowest number, before all later ones. Entries keep
 * their order, but for such old ones of one time among themselves: those fall back to the order of their ids.
 */
static void queue_rebase(struct event_queue *queue)
{
  uint64_t base = queue->sequence - ((uint64_t)1 << (SEQUENCE_BITS - 1)), rise = base - queue->base;
  queue->base = base;
  size_t end = queue->end;
  for (queue->end = ROOT; queue->end < end; queue->end++) {
    struct entry entry = queue->heap[queue->end];
    uint64_t number = entry.order >> ID_BITS;
    entry.order = (number > rise ? number - rise : 0) << ID_BITS | entry_id(&entry);
    hole_rise(queue, queue->end, entry);
  }
}

static inline uint64_t order_next(struct event_queue *queue, event_id id)
{
  if (G_UNLIKELY((queue->sequence - queue->base) >> SEQUENCE_BITS))
    queue_rebase(queue);
  return (queue->sequence++ - queue->base) << ID_BITS | id;
}

event_id event_queue_add(struct event_queue *queue, int64_t time_ns, uint32_t kind, uint64_t payload)
{
  event_id id = queue->free;
  if (id != EVENT_NONE) {
    queue->free = queue->slots[id].next_free;
  } else {
    if (queue->ids_used == queue->size)
      queue_grow(queue);
    id = queue->ids_used++;
  }
  queue->slots[id].payload = payload;
  queue->slots[id].kind = kind;
  uint64_t order = order_next(queue, id);
  hole_rise(queue, queue->end++, (struct entry){(uint64_t)time_ns, order});
  return id;
}

void event_queue_move(struct event_queue *queue, event_id id, int64_t time_ns)
{
  struct entry entry = {(uint64_t)time_ns, order_next(queue, id)};
  size_t place = queue->place[id];
  /* Its new place among equals is later, so an equal time moves down too. */
  if (entry.time < queue->heap[place].time)
    hole_rise(queue, place, entry);
  else
    hole_fill(queue, place, entry);
}

void event_queue_remove(struct event_queue *queue, event_id id)
{
  heap_remove(queue, queue->place[id]);
}

int64_t event_queue_next(const struct event_queue *queue)
{
  return queue->end > ROOT ? (int64_t)queue->heap[ROOT].time : TIME_NEVER;
}

gboolean event_queue_pop(struct event_queue *queue, int64_t *time_ns, uint32_t *kind, uint64_t *payload)
{
  if (queue->end == ROOT)
    return FALSE;
  struct entry first = queue->heap[ROOT];
  const struct slot *slot = &queue->slots[entry_id(&first)];
  *time_ns = (int64_t)first.time;
  *kind = slot->kind;
  *payload = slot->payload;
  heap_remove(queue, ROOT);
  if (queue->end > ROOT)
    __builtin_prefetch(&queue->slots[entry_id(&queue->heap[ROOT])]);
  return TRUE;
}

uint64_t event_queue_sequence(struct event_queue *queue)
{
  return event_queue_reserve(queue, 1);
}

uint64_t event_queue_reserve(struct event_queue *queue, uint64_t count)
{
  uint64_t first = queue->sequence;
  queue->sequence += count;
  return first;
}

uint64_t event_queue_next_sequence(const struct event_queue *queue)
{
  return queue->end > ROOT ? queue->base + (queue->heap[ROOT].order >> ID_BITS) : UINT64_MAX;
}
