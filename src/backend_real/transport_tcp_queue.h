/* Reads that wait for their turn at a TCP reader: in order of asking within a party, fair by bytes between
 * parties (struct transport_read), so that one that begins to load has its first groups soon. Start-time fair
 * queueing (Goyal, Vin, Cheng, SIGCOMM 1996): the next read is of the party that has had least; one that
 * comes anew counts as having had as much as the one served last. */
#ifndef DM_TRANSPORT_TCP_QUEUE_H
#define DM_TRANSPORT_TCP_QUEUE_H

#include "backend_real/pace.h"

struct read {
  uint64_t offset, tag;
  uint8_t *at; /* where it lands */
  uint32_t server, model, bytes;
  /* With a pace: */
  gint64 since_ns; /* it waits */
  gint64 ask_ns;   /* not before; without a pace 0 */
  struct pace_slot slot;
};

struct read_flow;

/* Zeros: empty. Steady use allocates nothing. */
struct read_queue {
  struct read_flow *flow; /* [flows], some without reads */
  uint32_t flows;
  uint64_t had; /* bytes, by the flow served last when its turn came */
};

/* At the end of flow `key`: a party, or 0 for all where one order is wanted. */
void read_queue_push(struct read_queue *queue, uint32_t key, const struct read *read);
/* Whose turn it is; NULL: nothing waits. Valid until the next call. */
const struct read *read_queue_first(const struct read_queue *queue);
void read_queue_pop(struct read_queue *queue);
/* Moves all reads from a server to the end of flow 0 of `to`. */
void read_queue_move(struct read_queue *queue, uint32_t server, struct read_queue *to);
void read_queue_clear(struct read_queue *queue);

#endif
