/* Credit between a shelf that sends datagrams and the reader that posts receive buffers for them.
 *
 * Of its receive buffers a reader sets a fixed share aside for every shelf that it reads from; how many
 * shelves that can be is fixed too. So a shelf that is slow, idle, dead or ill-meaning holds its own share
 * and nobody else's: none starves. The reader counts what arrived from a shelf; `limit` is that count plus
 * the share, and a shelf sends its n-th datagram only once it has heard of a limit of n or more. So never
 * more are under way than the share, and each finds a buffer, whatever the order in which they come.
 *
 * Limits travel in credits, in batches. Credits need receive buffers of the shelf's, so at most
 * CREDITS_UNDER_WAY go before the shelf has told that it took one: every datagram of its carries how many it
 * took. That cannot end in both waiting: the last credit has the highest limit, so having taken it, a shelf
 * with something to send sends at least one datagram more, and that one tells of all credits but those that
 * the last one overtook, which were fewer than CREDITS_UNDER_WAY, since the last one could go.
 *
 * Numbers are counts since the beginning, modulo 2^32, so that late and overtaken ones do no harm. */
#ifndef DM_SRD_CREDIT_H
#define DM_SRD_CREDIT_H

#include <glib.h>
#include <stdint.h>

#define CREDITS_UNDER_WAY 4

/* The reader's side of one shelf. */
struct credit_grant {
  uint32_t share, batch;
  uint32_t granted, arrived;
  uint32_t credits, taken; /* credits sent, and known to have been taken */
};

/* The first limit is share (> 0, at most 2^30), which the shelf learns by letter. */
void credit_grant_init(struct credit_grant *grant, uint32_t share);
/* A datagram has come (and its buffer is posted again) that tells of `taken`. FALSE: it had no credit, or
 * tells of credits that were never sent; nothing changed. */
gboolean credit_grant_arrived(struct credit_grant *grant, uint32_t taken);
/* A credit should be sent. */
gboolean credit_grant_due(const struct credit_grant *grant);
/* It is sent: the limit to put into it. */
uint32_t credit_grant_send(struct credit_grant *grant);

/* The shelf's side of one reader. */
struct credit_line {
  uint32_t share;
  uint32_t limit, used;
  uint32_t taken; /* to be put into what is sent */
};

void credit_line_init(struct credit_line *line, uint32_t share);
/* A credit has come (and its buffer is posted again). FALSE: it is for more than the share. */
gboolean credit_line_take(struct credit_line *line, uint32_t limit);
/* Datagrams that may be sent now. */
uint32_t credit_line_left(const struct credit_line *line);
/* One is sent; there was one left. */
void credit_line_use(struct credit_line *line);

#endif
