/* What an actor waits for in a replayed run: timers that are set and operations under way, found by the tags
 * that it gave them. */
#ifndef DM_REPLAY_PENDING_H
#define DM_REPLAY_PENDING_H

#include <glib.h>
#include <stdint.h>

struct replay_pending;

struct replay_pending *replay_pending_new(void);
void replay_pending_free(struct replay_pending *p);

/* FALSE: there is one with this id, or the id is 0. */
gboolean pending_timer(struct replay_pending *p, uint64_t id, uint64_t tag, int64_t at);
/* One that came due or was cancelled already: nothing. */
void pending_timer_cancel(struct replay_pending *p, uint64_t id);
/* The earliest timer with this tag is over. FALSE: there is none, or none is due. */
gboolean pending_timer_due(struct replay_pending *p, uint64_t tag, int64_t now);

/* What the end of an operation may tell at most. */
struct pending_most {
  uint64_t bytes, steps;
  uint32_t groups;
};
void pending_operation(struct replay_pending *p, uint64_t tag, const struct pending_most *most);
/* One with this tag has ended, telling this. FALSE: there is none that can have ended so. */
gboolean pending_operation_ended(struct replay_pending *p, uint64_t tag, const struct pending_most *told);

#endif
