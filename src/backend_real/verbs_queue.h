/* Below the letters of the verbs transport: queues that move bytes, one table of functions a kind of NIC
 * (verbs_rc.c: reliable connected queue pairs; verbs_srd.c: EFA's scalable reliable datagrams).
 *
 * An end is one NIC of one transport end, a shelf's or a reader's: device context, protection domain,
 * registered memory, completion queue. A line is a way between a reader's end and a shelf's: RC, a queue
 * pair; SRD, a peer's address. The transport makes several lines a peer, over several ends where there are
 * several NICs, and carries opaque offers between them in its letters:
 *
 *   reader   line_new, offer  -> OPEN letter   -> shelf   line_new, connect(offer of the reader), offer
 *   reader   connect(offer of the shelf)       <- ACCEPT letter with the shelf's offer
 *
 * A shelf's line is ready to serve once connect has returned, so the reader may post as soon as it connected.
 *
 * Threads: all calls about one end and its lines are made one at a time (the transport holds a lock), on any
 * thread, but expose and conceal, several of which may be under way at once; none may block for longer than a
 * command to the NIC takes, but open, expose, conceal and close. Between arm and the next poll a thread
 * sleeps in poll(2) on the descriptors, without the lock. An end may have threads of its own (SRD without
 * RDMA READ needs one at the shelf); they take care of themselves, and never call the transport. */
#ifndef DM_VERBS_QUEUE_H
#define DM_VERBS_QUEUE_H

#include "backend_real/nic.h"
#include "backend_real/transport.h"

struct verbs_queue_ops;

/* First in each kind's own struct. */
struct verbs_end {
  const struct verbs_queue_ops *ops;
  char name[80]; /* "rxe0:1", for messages */
};

struct verbs_line {
  struct verbs_end *end;
  void *context; /* the transport's: of line_new */
};

struct verbs_end_config {
  const struct nic *nic; /* read in the call only */
  struct nic_gid gid;
  gboolean serves; /* a shelf's: answers reads and asks none; else a reader's: the opposite */
  /* A reader's: where reads land. memory[0] is the host arena, the others GPUs'. Registered by open, writable
   * for reads of this end alone (no right for others). */
  const struct memory *memory;
  uint32_t memories;
};

/* Memory of a shelf that peers may read and not write. */
struct verbs_exposed {
  uint64_t address; /* as peers ask for it */
  uint32_t key;     /* as peers ask for it; of this end */
  void *handle;     /* the end's own */
};

/* A read of a reader's line. Its bytes lie in one exposed region of the peer's end. */
struct verbs_read {
  uint64_t address; /* first byte at the peer */
  uint64_t to;      /* offset in memory[memory] of the end's config; the transport has checked bounds */
  uint32_t key;
  uint32_t memory;
  uint32_t bytes; /* 1 to READ_BYTES_MAX */
  uint64_t tag;
};

/* How a read has ended. failed: the peer refused it, is lost, or the line broke or was broken; what lies
 * where it was to land is then undefined, but nothing lands there any more. */
struct verbs_done {
  struct verbs_line *line;
  uint64_t tag;
  gboolean good;
};

/* How much may be under way on a connected line: reads posted and not come out of poll, and their bytes.
 * Enough to cover the bandwidth-delay product, no more than the ports answer at once plus what waits in the
 * queue behind. */
struct verbs_window {
  uint32_t reads;
  uint64_t bytes;
};

/* Bytes that cover the bandwidth-delay product between two ports of so many Gbit/s; 0 = unknown. */
uint64_t verbs_window_bytes(uint32_t a_gbit_s, uint32_t b_gbit_s);

#define VERBS_OFFER_BYTES 128 /* most that an offer takes */

struct verbs_queue_ops {
  const char *name; /* "RC" */
  uint32_t lines;   /* to a peer, where nobody says how many; there are at least as many as NICs */

  /* DM_ERROR_FAILED, one line, with what to do where something can be done (limits of memlock). */
  struct verbs_end *(*open)(const struct verbs_end_config *config, GError **error);
  /* Its lines are freed already, its exposed regions are concealed. */
  void (*close)(struct verbs_end *end);

  /* A shelf's: registers memory that begins at base, for reading alone. FALSE: DM_ERROR_FAILED. */
  gboolean (*expose)(struct verbs_end *end, uint8_t *base, uint64_t bytes, struct verbs_exposed *exposed,
                     GError **error);
  /* When it returns nobody reads these bytes by this key any more. Reads under way of them fail, and may
   * break the reader's line. */
  void (*conceal)(struct verbs_end *end, struct verbs_exposed *exposed);

  /* NULL + DM_ERROR_FAILED: the NIC has no more. */
  struct verbs_line *(*line_new)(struct verbs_end *end, void *context, GError **error);
  /* What the peer needs to connect. Returns its size. May be called at once after line_new, and gives the
   * same always. */
  size_t (*offer)(struct verbs_line *line, uint8_t offer[VERBS_OFFER_BYTES]);
  /* The GID of the NIC that an untrusted offer of a reader's comes from. FALSE: malformed. */
  gboolean (*origin)(const uint8_t *offer, size_t size, uint8_t gid[16]);
  /* Once. The offer is untrusted: FALSE + DM_ERROR_FAILED: malformed, or it cannot be reached from here. */
  gboolean (*connect)(struct verbs_line *line, const uint8_t *offer, size_t size, GError **error);
  /* Of a reader's connected line. */
  void (*window)(const struct verbs_line *line, struct verbs_window *window);
  /* Gives a reader's connected line reads, in this order, which never end from inside the call. The transport
   * keeps to the window. Takes all of them: what cannot be posted comes out of poll as failed. Completions
   * may be asked for with some only (one in N), but always with the last of a call. */
  void (*post)(struct verbs_line *line, const struct verbs_read *read, uint32_t reads);
  /* NULL, or why the line is broken (static or the line's own text): nothing can be posted to it any more
   * with success. Of a shelf's line: what the NIC reported about it. */
  const char *(*broken)(const struct verbs_line *line);
  /* Gives the line up. A reader's: every read that it still has comes out of poll as failed, each once no
   * byte of it can land any more; no read is posted after. A shelf's: when it returns the peer reads nothing
   * by this line any more (SRD: see verbs_srd.c for what its NIC can promise). */
  void (*line_break)(struct verbs_line *line);
  /* A reader's: broken off and without reads (all have come out of poll). A shelf's: at any time, breaks it
   * first. */
  void (*line_free)(struct verbs_line *line);

  /* Reads that have ended, up to `room`; all of a read's bytes are there. A call takes in a bounded number of
   * completions, of which none need end a read; *more: there may be others, so call again before sleeping. A
   * reader's end. */
  uint32_t (*poll)(struct verbs_end *end, struct verbs_done *done, uint32_t room, gboolean *more);
  /* Asks for `fds` to become readable at the next completion. What came before is not told: poll before
   * sleeping, until there is no more. A reader's end. */
  void (*arm)(struct verbs_end *end);
  /* Descriptors to sleep on (poll(2), POLLIN). Returns how many, at most VERBS_FDS. Of a shelf's end: news of
   * its lines and its NIC. */
  uint32_t (*fds)(const struct verbs_end *end, int fd[]);
  /* Called when one of them may be readable: takes in what is to be known there, logs what
   * happened to the NIC, marks lines broken. */
  void (*woken)(struct verbs_end *end);
};

#define VERBS_FDS 4

/* The table for a kind of NIC; NULL: there is none. */
const struct verbs_queue_ops *verbs_queue_ops(enum nic_kind kind);

extern const struct verbs_queue_ops verbs_rc, verbs_srd;

#endif
