/* Streams that run at one common rate, because one link holds them all back: one clock of bytes for all of
 * them.
 *
 * The group counts the bytes that each of its streams would have moved ("virtual bytes"). A stream's next
 * milestone is a fixed target on that count, so a change of rate touches the group alone, however many
 * streams it slows; the streams wait in a heap by target. (The idea is that of virtual time in fair queueing,
 * Demers, Keshav and Shenker 1989.) */
#ifndef DM_STREAM_GROUP_H
#define DM_STREAM_GROUP_H

#include "backend_sim/event_queue.h"

struct group_entry {
  double target; /* virtual bytes at the stream's next milestone */
  uint32_t stream;
};

struct stream_group {
  double rate;    /* bytes/s, of each stream; INFINITY: no time passes */
  double bytes;   /* virtual bytes at time_ns; starts anew at 0 when the group was empty */
  double time_ns; /* of the last change of rate */
  struct group_entry *heap;
  uint32_t count;
  uint32_t size;
  event_id event; /* at the first target, or EVENT_NONE */
  int64_t event_ns;
  gboolean listed; /* by the owner, to be scheduled anew */
};

struct stream_group stream_group_make(void);
void stream_group_clear(struct stream_group *group);
/* Brings the count of bytes to time_ns. */
void stream_group_advance(struct stream_group *group, double time_ns);
/* The count of bytes at a time, which may be a little before the last change: then that at the change. */
double stream_group_bytes(const struct stream_group *group, double time_ns);
/* Exact time of the first target; the group must not be empty. */
double stream_group_first_ns(const struct stream_group *group);

/* place: of each stream in its group's heap, kept by these. */
void stream_group_add(struct stream_group *group, uint32_t *place, uint32_t stream, double target);
void stream_group_remove(struct stream_group *group, uint32_t *place, uint32_t stream);
/* Gives the first stream a later (or equal) target. */
void stream_group_delay_first(struct stream_group *group, uint32_t *place, double target);

#endif
