/* Timers in order of time: a binary heap, and a table through which each can be cancelled by its id.
 *
 * Knows no clock. Ids are never used twice; 0 is none. Equal times come out in the order in which they were
 * added. Memory grows with the most timers pending at once and is kept. */
#ifndef DM_TIMER_HEAP_H
#define DM_TIMER_HEAP_H

#include <glib.h>
#include <stdint.h>

struct timer_heap;

struct timer {
  int64_t at; /* ns */
  uint64_t id;
  void (*due)(void *context, uint64_t tag);
  void *context;
  uint64_t tag;
};

#define TIMERS_MAX (1U << 22) /* pending at once; one more is a bug that ends the program */

struct timer_heap *timer_heap_new(void);
void timer_heap_free(struct timer_heap *heap);
/* timer->id is filled in and returned. */
uint64_t timer_heap_add(struct timer_heap *heap, const struct timer *timer);
/* FALSE: it is not pending. */
gboolean timer_heap_remove(struct timer_heap *heap, uint64_t id);
/* Removes every timer with this context. */
void timer_heap_remove_all(struct timer_heap *heap, const void *context);
/* The earliest; INT64_MAX = none. */
int64_t timer_heap_first(const struct timer_heap *heap);
/* Takes the earliest, if it is due at `now` and its id is below `limit`. */
gboolean timer_heap_take(struct timer_heap *heap, int64_t now, uint64_t limit, struct timer *timer);
/* Ids of timers added from now on are not below it. */
uint64_t timer_heap_limit(const struct timer_heap *heap);

#endif
