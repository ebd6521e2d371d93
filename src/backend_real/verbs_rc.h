/* Inside the RC queues: what their two files share. verbs_rc.c: ends and lines; verbs_rc_done.c: reads posted
 * and their completions. */
#ifndef DM_VERBS_RC_H
#define DM_VERBS_RC_H

#include "backend_real/verbs_device.h"
#include "backend_real/verbs_memory.h"
#include "backend_real/verbs_queue.h"
#include "backend_real/verbs_rc_offer.h"

#define RC_SIGNAL_EVERY                                                                                      \
  4 /* of the reads of a call one in so many asks for a completion; so does the last                         \
     */

/* Work requests of one call, while they are posted. */
struct rc_burst {
  struct ibv_send_wr work[RC_DEPTH + 1];
  struct ibv_sge piece[RC_DEPTH][VERBS_SGES];
};

struct rc_end {
  struct verbs_end base; /* must be first */
  gboolean serves;
  struct verbs_device *device;
  struct verbs_memory **memory; /* [memories] */
  uint32_t memories;
  struct ibv_comp_channel *channel; /* a reader's; so are the fields that follow */
  struct ibv_cq *cq;
  uint32_t cq_room; /* completions */
  GPtrArray *slots; /* struct rc_line by slot; NULL: free */
  struct rc_burst burst;
  uint32_t lines;
  uint32_t generation;   /* of the last line that was made */
  struct rc_line *news;  /* those that have ended reads to tell, in order */
  struct rc_line **tail; /* where the next one goes */
};

struct rc_line {
  struct verbs_line base; /* must be first */
  struct ibv_qp *qp;      /* NULL once broken off */
  struct rc_offer own, peer;
  gboolean connected;
  const char *broken; /* NULL: it is not */
  uint32_t slot, generation;

  /* Reads in order of posting; that of number n at n mod RC_DEPTH. All that is below `good` has landed. */
  uint64_t tag[RC_DEPTH];
  uint64_t begin, good, end; /* numbers: the first not told, the first not known to have landed, the next */
  struct rc_line *next;      /* in the end's news */
  gboolean in_news;
};

/* The line can neither post nor be read any more; its reads that have not landed have failed. */
void rc_break(struct rc_line *line, const char *why);
/* All lines of the end. */
void rc_break_all(struct rc_end *end, const char *why);
void rc_post(struct verbs_line *line, const struct verbs_read *read, uint32_t reads);
uint32_t rc_poll(struct verbs_end *end, struct verbs_done *done, uint32_t room, gboolean *more);
void rc_arm(struct verbs_end *end);
/* Takes the line out of the news. */
void rc_forget(struct rc_end *end, struct rc_line *line);

#endif
