/* Streams: bytes in order over shared links, with milestones; the simulator's network, SSD and PCIe all are
 * these.
 *
 * A stream moves milestone_end[last] bytes over its links at its max-min fair rate and reports each milestone
 * (cumulative byte counts) as it passes. Rates change only when a stream starts, pauses, resumes, ends or a
 * link's capacity changes; all changes of one instant are solved together (stream_net_settle, before the
 * clock moves on).
 *
 * Times are exact: doubles in ns, finer than the event clock. A milestone's event fires at the nearest
 * nanosecond and reports the exact time, so that chains of stages do not collect rounding. */
#ifndef DM_STREAM_H
#define DM_STREAM_H

#include "backend_sim/event_queue.h"
#include "backend_sim/fair_share.h"

typedef uint32_t stream_id;

struct stream_net;

/* milestone i (0-based) of the stream passed at exact_ns; after the last one the stream is gone. May call any
 * function of this module but stream_net_free. */
typedef void (*stream_milestone)(void *context, stream_id stream, uint64_t user, uint32_t milestone,
                                 double exact_ns, gboolean last);

/* Puts its events into queue with kind event_kind; the owner of the queue passes them to stream_net_event. */
struct stream_net *stream_net_new(struct event_queue *queue, uint32_t event_kind,
                                  stream_milestone on_milestone, void *context);
void stream_net_free(struct stream_net *net);
link_id stream_net_add_link(struct stream_net *net, double bytes_s);
/* now_ns: integer event time. */
void stream_net_set_capacity(struct stream_net *net, link_id link, double bytes_s, int64_t now_ns);

/* Starts at exact time start_ns (within half a nanosecond of the event clock). milestone_end: cumulative,
 * increasing, not copied: lives as long as the stream. cap 0 = none. milestones >= 1; a total of 0 bytes ends
 * at once (by an event at the same time). */
stream_id stream_start(struct stream_net *net, double start_ns, const link_id *links, uint32_t count,
                       double cap, const uint64_t *milestone_end, uint32_t milestones, uint64_t user);
void stream_pause(struct stream_net *net, stream_id stream, double at_ns);
void stream_resume(struct stream_net *net, stream_id stream, double at_ns);
/* Ends it now without further reports; returns the bytes that it had moved. */
uint64_t stream_cancel(struct stream_net *net, stream_id stream, int64_t now_ns);

void stream_net_event(struct stream_net *net, int64_t now_ns, uint64_t payload);
/* TRUE if changes wait to be solved. Call until FALSE before popping an event of a later time. */
gboolean stream_net_settle(struct stream_net *net, int64_t now_ns);

#endif
