/* Inside the TCP reader: what its files share.
 *
 * transport_tcp_reader.c owns peers, queues and which line gets which read; transport_tcp_line.c is one
 * connection to a shelf. A line belongs to the thread of its poller; who has the reader's lock may give it
 * reads and doom it. */
#ifndef DM_TRANSPORT_TCP_READER_H
#define DM_TRANSPORT_TCP_READER_H

#include "backend_real/transport.h"
#include "backend_real/transport_log.h"
#include "backend_real/transport_tcp_poller.h"
#include "backend_real/transport_tcp_queue.h"
#include "backend_real/transport_tcp_wire.h"

#define LINE_READS 64 /* most that one line has been given and has not ended */
/* Bytes of these that have not come; see transport_tcp.h. With a pace most of them are not asked for yet. */
#define LINE_WINDOW       (1U << 20)
#define LINE_WINDOW_PACED (4U << 20)
#define LINE_OUTPUT       2048
#define LINES_MAX         64 /* to one peer */
/* With a pace, the link carries reads in the order in which they are put on it, from when the first of them
 * comes. A read is asked for so long before the link is free for it: the way to the shelf and back, and its
 * copies at both ends, must fit in; tests/bench/NOTES.md has what less and more do. So memory servers do not
 * send what the link cannot take, what is needed first comes first, over many connections too, and a thread
 * that is late by less takes no time off the link (Homa and NDP pull for the same reason: Montazeri et al.,
 * SIGCOMM 2018; Handley et al., SIGCOMM 2017). The link is given work for that time and one read, no more:
 * the rest waits, and what another load asks for meanwhile shares the link with it. */
#define ASK_AHEAD_NS 400000

struct peer {
  uint32_t server;
  gboolean usable;
  char *address;
  struct ticket_secret secret;
  uint64_t serial;              /* of the last ticket made with the secret */
  struct read_queue queue;      /* for its lines */
  struct line *line[LINES_MAX]; /* NULL where none is open */
  uint32_t lines;               /* that are */
  gint64 lost_ns;               /* when the last one broke */
};

struct line {
  struct pollee pollee; /* must be first */
  struct reader *reader;
  struct poller *poller;
  uint32_t server;
  char *address;
  struct ticket_secret secret;
  uint32_t first_model; /* of the ticket that opens it */

  /* Under the reader's lock. Reads in order of asking; the slot of number n is n mod LINE_READS. */
  struct line *next, *before; /* of all lines of the reader */
  struct peer *peer;          /* NULL once dropped */
  struct read read[LINE_READS];
  uint64_t begin, end; /* numbers of the first read not ended, and of the next to be given */
  uint64_t came;       /* number of the next whose answer is not counted yet */
  uint64_t under_way;  /* bytes of reads from that on */
  gint doomed;         /* atomic */

  /* The poller's thread's own. */
  uint64_t asked;    /* number of the next read to be asked for */
  uint64_t answered; /* number of the next read to be answered */
  struct wire_rights rights;
  uint8_t output[LINE_OUTPUT]; /* tickets and requests on their way */
  uint32_t output_begin, output_end;
  enum { LINE_HEAD, LINE_PAYLOAD, LINE_END } awaits;
  uint64_t received;                                /* of the payload */
  uint8_t input[WIRE_END_BYTES + WIRE_REPLY_BYTES]; /* of what is not payload */
  uint32_t input_bytes;
  /* Of what was answered and has not been ended. */
  gboolean good[LINE_READS];
  gint64 due_ns[LINE_READS]; /* when a link of the reader's pace has carried it; 0: now */
  gint64 send_ns;            /* when the output may go; 0: now */
};

struct reader {
  struct transport_log log;
  struct memory memory;
  struct memory *gpu_memory; /* [gpus] */
  uint32_t gpus;
  actor_id self;
  void (*ended)(void *context, uint64_t tag, gboolean good);
  void *context;
  uint32_t connections;  /* lines to a peer */
  struct pace *in, *out; /* NULL: no limit */
  uint64_t bytes;        /* of payload received; atomic */
  struct poller **poller;
  uint32_t pollers;
  struct pollee usher; /* of poller[0]: ends what has failed, and lets on the link what waits for it */

  GMutex lock;
  GHashTable *peers; /* server -> struct peer; looked up, never walked */
  struct line *first;
  uint32_t next_poller;
  struct read_queue failed;
  struct read_queue waiting; /* with a pace: for the link */
  gint64 ahead_ns;           /* the link is given work for */
};

enum turn line_turn(struct line *line, gint64 *again_ns);

/* Reads were answered: others may be given in their place. Those up to number `due` end. */
void reader_ended(struct line *line, uint64_t due);
/* The serial of the line's next ticket; 0: the line was dropped. */
uint64_t reader_serial(struct line *line);
/* The number of the next read that the line will be given. */
uint64_t reader_given(struct line *line);
/* Ends the line, on its own thread, and what it was given fails; why NULL: no more than was asked for. */
void reader_lose(struct line *line, const char *why);

#endif
