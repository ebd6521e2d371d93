/* A limit on bytes a second: a token bucket, shared by all threads of one end of a transport; one for each
 * way.
 *
 * Over any stretch of time T at most rate x T + the depth of the bucket goes through; the depth is what the
 * rate gives in PACE_DEPTH_NS, so a thread that wakes up late by less than that loses nothing. It starts
 * empty. Nobody waits inside: who is refused is told when to come again, each at a time of its own, so that
 * they do not all wake up for what one of them takes. */
#ifndef DM_PACE_H
#define DM_PACE_H

#include <glib.h>
#include <stdint.h>

#define PACE_DEPTH_NS 2000000

struct pace;

/* bytes_s > 0. */
struct pace *pace_new(double bytes_s, int64_t now_ns);
void pace_free(struct pace *pace);
/* Up to `want` bytes (at least 1) may go now: how many. 0: none before *again_ns. Pieces below a quarter of
 * the depth are not given unless no more is wanted, so that nobody trickles. now_ns: CLOCK_MONOTONIC. */
uint64_t pace_take(struct pace *pace, uint64_t want, int64_t now_ns, int64_t *again_ns);
/* What was taken and did not go after all. */
void pace_return(struct pace *pace, uint64_t bytes);

/* One of those who share a pace, with the time that it was told. Zeroed: whose pace is NULL has no limit. */
struct pace_share {
  struct pace *pace;
  int64_t again_ns;
};

/* pace_take by the clock, but asks no sooner than it was told. */
uint64_t pace_share_take(struct pace_share *share, uint64_t want, int64_t *again_ns);
void pace_share_return(struct pace_share *share, uint64_t bytes);

#endif
