/* One way of a link of a given rate, as a clock (the "virtual scheduling" of the generic cell rate algorithm,
 * ITU-T I.371): shared by all threads of one end of a transport.
 *
 * What is put on it is carried in that order, each when the link is free and there is something to carry, and
 * takes bytes / rate. Nobody waits inside: who puts is told from when until when, and acts on that. So a
 * thread that wakes up late delays its own bytes, never the link; and nothing is saved up while there is
 * nothing to carry, as a network card saves nothing up.
 *
 * What is put before it is there (a receiver's link, on which reads are put as they are asked for) is put
 * with pace_put too, and is carried from pace_came on: a link that was idle carries nothing until the first
 * of it comes, and all that was put on it since begins so much later. */
#ifndef DM_PACE_H
#define DM_PACE_H

#include <glib.h>
#include <stdint.h>

struct pace;

/* bytes_s > 0. */
struct pace *pace_new(double bytes_s);
void pace_free(struct pace *pace);

/* When the link carries what was put on it; CLOCK_MONOTONIC. */
struct pace_slot {
  int64_t begin_ns, end_ns;
  /* For pace_came. */
  uint64_t period; /* how often the link was idle before */
  gboolean came;   /* something of this period had */
};

/* `bytes` that are there from ready_ns on. */
struct pace_slot pace_put(struct pace *pace, uint64_t bytes, int64_t ready_ns);
/* From when on nothing is put on the link; CLOCK_MONOTONIC, maybe past. */
int64_t pace_free_ns(struct pace *pace);
/* What has that slot begins to come at now_ns. Returns when the link has carried it. */
int64_t pace_came(struct pace *pace, const struct pace_slot *slot, int64_t now_ns);

#endif
