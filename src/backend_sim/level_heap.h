/* Small indexed binary heap of links in order of a rate, inside the fair-share solver. Inline: it is its hot
 * path. */
#ifndef DM_LEVEL_HEAP_H
#define DM_LEVEL_HEAP_H

#include <glib.h>
#include <stdint.h>

#define PLACE_NONE UINT32_MAX

struct level_entry {
  double key;
  uint32_t link;
};

struct level_heap {
  struct level_entry *entries; /* room for every link */
  uint32_t *place;             /* of a link among entries, or PLACE_NONE */
  uint32_t count;
};

static inline void level_heap_put(struct level_heap *heap, uint32_t place, struct level_entry entry)
{
  heap->entries[place] = entry;
  heap->place[entry.link] = place;
}

static inline void level_heap_rise(struct level_heap *heap, uint32_t hole, struct level_entry entry)
{
  for (; hole && entry.key < heap->entries[(hole - 1) / 2].key; hole = (hole - 1) / 2)
    level_heap_put(heap, hole, heap->entries[(hole - 1) / 2]);
  level_heap_put(heap, hole, entry);
}

static inline void level_heap_sink(struct level_heap *heap, uint32_t hole, struct level_entry entry)
{
  for (uint32_t child; (child = 2 * hole + 1) < heap->count; hole = child) {
    if (child + 1 < heap->count && heap->entries[child + 1].key < heap->entries[child].key)
      child++;
    if (!(heap->entries[child].key < entry.key))
      break;
    level_heap_put(heap, hole, heap->entries[child]);
  }
  level_heap_put(heap, hole, entry);
}

/* Adds the link, or moves it where it is in already. */
static inline void level_heap_set(struct level_heap *heap, uint32_t link, double key)
{
  struct level_entry entry = {key, link};
  uint32_t place = heap->place[link];
  if (place == PLACE_NONE)
    level_heap_rise(heap, heap->count++, entry);
  else if (key < heap->entries[place].key)
    level_heap_rise(heap, place, entry);
  else
    level_heap_sink(heap, place, entry);
}

/* Does nothing where the link is not in. */
static inline void level_heap_remove(struct level_heap *heap, uint32_t link)
{
  uint32_t place = heap->place[link];
  if (place == PLACE_NONE)
    return;
  heap->place[link] = PLACE_NONE;
  struct level_entry last = heap->entries[--heap->count];
  if (place == heap->count)
    return;
  if (place && last.key < heap->entries[(place - 1) / 2].key)
    level_heap_rise(heap, place, last);
  else
    level_heap_sink(heap, place, last);
}

#endif
