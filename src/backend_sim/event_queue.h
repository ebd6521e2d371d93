/* Event queue of the simulator: pending events in order of (time, insertion), equal times in order of
 * insertion, so a run is a function of its input alone. An indexed 4-ary heap: an event can be moved or
 * removed by its handle. */
#ifndef DM_EVENT_QUEUE_H
#define DM_EVENT_QUEUE_H

#include <glib.h>
#include <stdint.h>

#define EVENT_NONE UINT32_MAX

typedef uint32_t event_id;

struct event_queue;

struct event_queue *event_queue_new(void);
void event_queue_free(struct event_queue *queue);
/* kind and payload come back as they are. No allocation once the queue has grown to its largest size. */
event_id event_queue_add(struct event_queue *queue, int64_t time_ns, uint32_t kind, uint64_t payload);
/* Moves a pending event; it takes a new place among equals, as if removed and added. */
void event_queue_move(struct event_queue *queue, event_id id, int64_t time_ns);
void event_queue_remove(struct event_queue *queue, event_id id);
/* Time of the first event, TIME_NEVER when empty. */
int64_t event_queue_next(const struct event_queue *queue);
/* Takes the first event; FALSE when empty. */
gboolean event_queue_pop(struct event_queue *queue, int64_t *time_ns, uint32_t *kind, uint64_t *payload);
/* The insertion counter, so that other ordered sources (message lanes) can share one order with the queue:
 * draws the next number, or count of them, of which it gives the first. */
uint64_t event_queue_sequence(struct event_queue *queue);
uint64_t event_queue_reserve(struct event_queue *queue, uint64_t count);
/* Number of the first event, UINT64_MAX when empty. (An event that has waited for 2^35 insertions gets a
 * higher one.) */
uint64_t event_queue_next_sequence(const struct event_queue *queue);

#endif
