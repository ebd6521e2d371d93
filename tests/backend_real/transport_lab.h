/* A shelf and a reader in one process, over loopback, for tests that hold for every transport.
 *
 * The image of every model is a function of (model, offset), and lies at the shelf in pieces of random sizes;
 * the reader's memory is filled with LAB_BLANK.
 *
 * Letters between the two wait in a queue, as they would in a loop, and are delivered on the test's thread by
 * lab_pump, which all that wait, read or serve here call. */
#ifndef DM_TEST_TRANSPORT_LAB_H
#define DM_TEST_TRANSPORT_LAB_H

#include <sys/types.h>

#include "backend_real/transport.h"

#define LAB_SHELF   3 /* index of the shelf */
#define LAB_READER  ACTOR(ACTOR_GPU_SERVER, 1)
#define LAB_BLANK   0xEE
#define LAB_READS   65536 /* tags 0 .. */
#define LAB_WAIT_NS 20000000000

enum lab_end { LAB_PENDING, LAB_GOOD, LAB_FAILED };

struct lab {
  const struct transport_ops *ops;
  struct shelf *shelf;
  struct reader *reader;
  struct memory from, to;
  struct ticket_secret secret;
  GRand *random;
  uint64_t used; /* of from */
  GMutex lock;
  GCond changed;
  GQueue letters;             /* of struct lab_letter, not delivered yet */
  GQueue caught;              /* of struct lab_letter: those for other readers than the lab's */
  int remote;                 /* socket to a shelf in another process (lab_new_apart); -1: none */
  uint8_t end[LAB_READS];     /* enum lab_end, by tag */
  gint64 ended_us[LAB_READS]; /* monotonic */
  uint32_t good, failed;
};

struct lab_letter {
  gboolean to_shelf;
  actor_id peer; /* the reader's, whoever writes */
  GBytes *bytes;
};

void lab_letter_free(struct lab_letter *letter);

/* All of it, ready to read. */
struct lab *transport_lab_new(const struct transport_ops *ops, uint64_t from_bytes, uint64_t to_bytes,
                              const struct transport_options *options);
void transport_lab_free(struct lab *lab);
/* Only memories and lock, and a reader; no shelf. */
struct lab *lab_new_reader(const struct transport_ops *ops, uint64_t from_bytes, uint64_t to_bytes,
                           const struct transport_options *options);
/* As the lab's reader and shelf are configured. */
struct reader_config lab_reader_config(struct lab *lab, const struct transport_options *options);
struct shelf_config lab_shelf_config(struct lab *lab, const char *address,
                                     const struct transport_options *options);
/* Delivers all letters, and those that are written meanwhile. */
void lab_pump(struct lab *lab);
void lab_open_shelf(struct lab *lab, const char *address, const struct transport_options *options);
/* Puts bytes [offset, offset + bytes) of a model into `from`, in pieces of at most piece_max (a multiple of
 * ARENA_ALIGN) bytes with gaps between them, and serves them. Returns the place. */
struct ranges lab_serve(struct lab *lab, uint32_t model, uint64_t offset, uint64_t bytes, uint64_t piece_max);
/* Each model is a party of its own. */
void lab_read(struct lab *lab, uint32_t model, uint64_t offset, uint64_t to, uint32_t bytes, uint64_t tag);
/* Waits until so many reads have ended in all; fails the test when that takes too long. */
void lab_wait(struct lab *lab, uint32_t ended);
uint32_t lab_ended(struct lab *lab);
enum lab_end lab_end(struct lab *lab, uint64_t tag);
uint8_t lab_byte(uint32_t model, uint64_t offset);
/* The reader's memory has the model's bytes there. */
gboolean lab_has(const struct lab *lab, uint32_t model, uint64_t offset, uint64_t to, uint64_t bytes);
gboolean lab_blank(const struct lab *lab, uint64_t to, uint64_t bytes);

/* A lab with a reader, and a shelf in a process of its own, which serves model 1, `bytes` bytes of 0, to
 * LAB_READER until it is killed; tells its address. The reader may then be given it as a peer. secret NULL:
 * the lab's. The process is forked before the reader has threads, whose locks it would inherit. */
struct lab *lab_new_apart(const struct transport_ops *ops, uint64_t to_bytes, uint64_t bytes,
                          const struct ticket_secret *secret, pid_t *child, char address[64]);

/* A test that runs over every transport that can be used here, and, where there is no RDMA device, over verbs
 * on a fake EFA with and without RDMA READ. */
void lab_run_over_transports(void (*test)(const struct transport_ops *));
#define TRANSPORT_TEST(NAME)                                                                                 \
  static void NAME(const struct transport_ops *ops);                                                         \
  Test(transport, NAME)                                                                                      \
  {                                                                                                          \
    lab_run_over_transports(NAME);                                                                           \
  }                                                                                                          \
  static void NAME(const struct transport_ops *ops)

#endif
