/* Inside the verbs reader: what its files share. All but constants is under the lock; see verbs_lock. */
#ifndef DM_TRANSPORT_VERBS_READER_H
#define DM_TRANSPORT_VERBS_READER_H

#include "backend_real/transport_log.h"
#include "backend_real/transport_verbs.h"
#include "backend_real/transport_verbs_known.h"

#define READER_ENDS_MAX 16 /* NICs of a reader */
#define LINE_BURST      64 /* reads given to a line in one call */

/* For a shelf to answer an OPEN letter: it and the controller's process are one hop each, but may be busy. */
#define OPEN_NS (2 * NS_PER_S)
/* For a letter about a region that a read asks for: the controller's word that it is there travels the same
 * way, after the shelf's letter. */
#define HOLD_NS NS_PER_S
/* Between two letters that tell the shelf no more than how much was read. */
#define NEWS_NS NS_PER_S

struct peer;

/* A read that was asked for. In a list while it waits, is held, or has ended. */
struct read {
  struct read *next;
  uint64_t offset, to, tag;
  uint32_t model, memory, bytes;
  uint32_t given;  /* bytes, from the first on, that lines were given */
  uint32_t parts;  /* of these, those under way */
  gboolean listed; /* waits or is held: it has not been given whole */
  gboolean bad;
  gint64 deadline_ns; /* if it is held or was; else 0 */
};

struct read_list {
  struct read *first, **last; /* last: where the next goes */
};

/* A part of a read that lies in one region, under way on one line. */
struct part {
  struct part *next; /* of those that are free */
  struct read *read;
  struct known *known;
  uint32_t bytes;
};

struct line {
  struct verbs_line *queue;
  struct peer *peer; /* NULL once it was given up */
  struct line *next; /* of those */
  uint32_t rail;     /* of the shelf, that it leads to */
  struct verbs_window window;
  uint32_t reads; /* under way */
  uint64_t bytes;
  gboolean full; /* takes no more until a quarter of its window is free, so that reads come in bursts */
  struct verbs_read burst[LINE_BURST];
  uint32_t loaded;
};

enum peer_state {
  PEER_CLOSED,  /* has no lines; the next read opens them */
  PEER_OPENING, /* an OPEN letter is on its way */
  PEER_OPEN,
};

struct peer {
  uint32_t server;
  gboolean usable;
  char *address;
  struct ticket_secret secret;
  struct verbs_end *end[READER_ENDS_MAX]; /* NICs on the way to it */
  uint32_t ends;

  enum peer_state state;
  uint64_t attempt;
  gboolean shelf_opened; /* the shelf may have lines of the attempt */
  gint64 deadline_ns;    /* while it is opening */
  struct line *line[VERBS_LINES_MAX];
  uint32_t lines, chosen;    /* how many; the last that took a read */
  struct known_table *known; /* while it is open */
  struct read_list waiting, held;
  uint64_t serial, told_serial; /* of the shelf's letters: the last, and that which it was told of */
  uint64_t bytes, told_bytes;   /* read in this attempt */
  gint64 told_ns;
};

struct reader_end {
  struct verbs_end *end;
  struct nic_choice choice; /* nic: of nics */
};

struct reader {
  struct transport_log log;
  struct memory *memory; /* [memories]: host arena, then GPUs' */
  uint32_t memories;
  actor_id self;
  struct transport_options options; /* rdma_device is its own */
  void (*ended)(void *context, uint64_t tag, gboolean good);
  void (*post)(void *context, uint32_t server, const void *letter, size_t size);
  void *context;
  GPtrArray *nics;
  const struct verbs_queue_ops *ops;
  uint64_t bytes; /* received; atomic */
  int bell;       /* of the thread */
  GThread *thread;

  gint waiting; /* who want the lock besides the reader's own thread; atomic */
  GMutex lock;
  gboolean stop;
  struct reader_end end[READER_ENDS_MAX];
  uint32_t ends;
  GHashTable *peers;     /* server -> struct peer; looked up */
  GPtrArray *in_order;   /* the same, in the order in which they came */
  struct line *given_up; /* lines whose reads have not all come out */
  uint64_t attempt;      /* the last of all peers */
  uint32_t under_way;    /* parts on all lines */
  struct read_list over; /* ended, to be told by the reader's thread */
  struct read_list free_reads;
  struct part *free_parts;
};

/* The reader's own thread takes the lock again and again while it polls; others must get it in between. */
void verbs_lock(struct reader *reader);
void verbs_unlock(struct reader *reader);

/* transport_verbs_give.c: reads; under the lock */

void list_init(struct read_list *list);
void list_push(struct read_list *list, struct read *read);
struct read *list_pop(struct read_list *list); /* NULL: empty */
struct read *read_take(struct reader *reader);
/* It was given whole, or will not be: it ends once nothing of it is under way. */
void read_settle(struct reader *reader, struct read *read);
/* Gives lines of the peer, which is open, what waits, as much as they take. */
void peer_give(struct reader *reader, struct peer *peer);
/* What is held waits again. */
void peer_release(struct peer *peer);
/* All that waits or is held fails. */
void peer_fail(struct reader *reader, struct peer *peer);
/* What is held for longer than it may be fails. Returns when the next one's time is over; 0: none is held. */
gint64 peer_expire(struct reader *reader, struct peer *peer, gint64 now);
/* A part came out of poll. */
void part_done(struct reader *reader, const struct verbs_done *done);

/* transport_verbs_peer.c; under the lock, on the loop's thread but for peer_close */

/* Makes lines and sends an OPEN letter; all reads fail if that cannot be. The peer is closed. */
void peer_open(struct reader *reader, struct peer *peer);
/* Ends the attempt: lines are given up, all reads fail. why NULL: nothing to log. */
void peer_close(struct reader *reader, struct peer *peer, const char *why);
/* Tells the shelf, if it does not know, that the attempt is over or will be now. */
void peer_tell_closed(struct reader *reader, struct peer *peer);
/* Tells the shelf, where there is something to tell, what its reader has gone over to and how much was read.
 */
void peer_tell_news(struct reader *reader, struct peer *peer);

/* transport_verbs_reader.c */

struct peer *verbs_find_peer(const struct reader *reader, uint32_t server);
/* What another thread than the reader's own has ended is told by that one. */
void verbs_unlock_and_wake(struct reader *reader);
/* Wakes the reader's thread. */
void verbs_wake(struct reader *reader);

/* transport_verbs_poll.c: the thread */

gpointer verbs_reader_run(gpointer reader);
/* After the thread has ended: until every read has ended and been told. */
void verbs_reader_drain(struct reader *reader);

#endif
