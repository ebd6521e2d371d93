/* Indexed 4-ary heap of pending events; see event_queue.h.
 *
 * An entry carries its whole key, so comparing touches the heap alone; kind and payload wait in a slot that
 * is read once, when the event is taken. Time and insertion are compared as one 128-bit number, without a
 * branch: the children of a node are in no order that a branch predictor could learn. */
#include "backend_sim/event_queue.h"

#include "core/units.h"

#define ARITY      4
#define FIRST_SIZE 64

typedef unsigned __int128 event_key;

struct entry {
  uint64_t time;
  uint64_t sequence;
  event_id id;
};

struct slot {
  uint64_t payload;
  uint32_t kind;
  event_id next_free;
};

struct event_queue {
  struct entry *heap;
  uint32_t *place; /* of a pending event in the heap, by id */
  struct slot *slots;
  size_t count;
  size_t size; /* of all three arrays */
  event_id slots_used;
  event_id free;
  uint64_t sequence;
};

static inline event_key entry_key(const struct entry *entry)
{
  return (event_key)entry->time << 64 | entry->sequence;
}

struct event_queue *event_queue_new(void)
{
  struct event_queue *queue = g_new0(struct event_queue, 1);
  queue->free = EVENT_NONE;
  return queue;
}

void event_queue_free(struct event_queue *queue)
{
  if (!queue)
    return;
  g_free(queue->heap);
  g_free(queue->place);
  g_free(queue->slots);
  g_free(queue);
}

static void queue_grow(struct event_queue *queue)
{
  g_assert(queue->size < EVENT_NONE / 2);
  queue->size = queue->size ? queue->size * 2 : FIRST_SIZE;
  queue->heap = g_renew(struct entry, queue->heap, queue->size);
  queue->place = g_renew(uint32_t, queue->place, queue->size);
  queue->slots = g_renew(struct slot, queue->slots, queue->size);
}

static inline void entry_put(struct event_queue *queue, size_t place, struct entry entry)
{
  queue->heap[place] = entry;
  queue->place[entry.id] = (uint32_t)place;
}

/* Puts the entry at the hole or, while its parent is later, above it. */
static void hole_rise(struct event_queue *queue, size_t hole, struct entry entry)
{
  event_key key = entry_key(&entry);
  while (hole) {
    size_t parent = (hole - 1) / ARITY;
    if (entry_key(&queue->heap[parent]) < key)
      break;
    entry_put(queue, hole, queue->heap[parent]);
    hole = parent;
  }
  entry_put(queue, hole, entry);
}

static inline size_t first_child(const struct event_queue *queue, size_t child)
{
  const struct entry *heap = queue->heap;
  if (G_LIKELY(child + ARITY <= queue->count)) {
    size_t left = child + (entry_key(&heap[child + 1]) < entry_key(&heap[child]));
    size_t right = child + 2 + (entry_key(&heap[child + 3]) < entry_key(&heap[child + 2]));
    return left + (right - left) * (entry_key(&heap[right]) < entry_key(&heap[left]));
  }
  size_t least = child;
  for (size_t i = child + 1; i < queue->count; i++)
    least = entry_key(&heap[i]) < entry_key(&heap[least]) ? i : least;
  return least;
}

/* Puts the entry at the hole or below it. The hole goes to the bottom first: an entry from the end of the
 * heap belongs there nearly always, and the way down then needs no comparison with it. */
static void hole_fill(struct event_queue *queue, size_t hole, struct entry entry)
{
  for (size_t child; (child = hole * ARITY + 1) < queue->count;) {
    size_t least = first_child(queue, child);
    entry_put(queue, hole, queue->heap[least]);
    hole = least;
  }
  hole_rise(queue, hole, entry);
}

static void heap_remove(struct event_queue *queue, size_t place)
{
  struct entry last = queue->heap[--queue->count];
  if (place < queue->count)
    hole_fill(queue, place, last);
}

static void slot_free(struct event_queue *queue, event_id id)
{
  queue->slots[id].next_free = queue->free;
  queue->free = id;
}

event_id event_queue_add(struct event_queue *queue, int64_t time_ns, uint32_t kind, uint64_t payload)
{
  event_id id = queue->free;
  if (id != EVENT_NONE) {
    queue->free = queue->slots[id].next_free;
  } else {
    if (queue->slots_used == queue->size)
      queue_grow(queue);
    id = queue->slots_used++;
  }
  queue->slots[id].payload = payload;
  queue->slots[id].kind = kind;
  hole_rise(queue, queue->count++, (struct entry){(uint64_t)time_ns, queue->sequence++, id});
  return id;
}

void event_queue_move(struct event_queue *queue, event_id id, int64_t time_ns)
{
  size_t place = queue->place[id];
  struct entry entry = {(uint64_t)time_ns, queue->sequence++, id};
  /* Its new place among equals is later, so an equal time moves down too. */
  if ((uint64_t)time_ns < queue->heap[place].time)
    hole_rise(queue, place, entry);
  else
    hole_fill(queue, place, entry);
}

void event_queue_remove(struct event_queue *queue, event_id id)
{
  heap_remove(queue, queue->place[id]);
  slot_free(queue, id);
}

int64_t event_queue_next(const struct event_queue *queue)
{
  return queue->count ? (int64_t)queue->heap[0].time : TIME_NEVER;
}

gboolean event_queue_pop(struct event_queue *queue, int64_t *time_ns, uint32_t *kind, uint64_t *payload)
{
  if (!queue->count)
    return FALSE;
  struct entry first = queue->heap[0];
  struct slot slot = queue->slots[first.id];
  *time_ns = (int64_t)first.time;
  *kind = slot.kind;
  *payload = slot.payload;
  slot_free(queue, first.id);
  heap_remove(queue, 0);
  if (queue->count)
    __builtin_prefetch(&queue->slots[queue->heap[0].id]);
  return TRUE;
}

size_t event_queue_size(const struct event_queue *queue)
{
  return queue->count;
}

uint64_t event_queue_sequence(struct event_queue *queue)
{
  return queue->sequence++;
}

uint64_t event_queue_next_sequence(const struct event_queue *queue)
{
  return queue->count ? queue->heap[0].sequence : UINT64_MAX;
}
