/* The reader's half of reads by datagram: what to ask of which shelf, and what to do with what comes.
 *
 * It knows no device: its owner moves the datagrams, posts `receives` buffers, and has posted each again
 * before it asks for the next datagram to send. A peer is a shelf that is read from. Nothing is locked: its
 * owner sees to that. Steady use allocates nothing. */
#ifndef DM_SRD_READER_H
#define DM_SRD_READER_H

#include "backend_real/srd_wire.h"

struct srd_reader;

struct srd_reader_config {
  uint32_t receives; /* buffers posted */
  uint32_t peers;    /* most at once, at most `receives` and SRD_PEERS_MAX: each has receives / peers */
  uint32_t reads;    /* most that are asked of a peer at once; peers x reads at most 65536 */
};

struct srd_reader *srd_reader_new(const struct srd_reader_config *config);
void srd_reader_free(struct srd_reader *reader); /* reads under way are forgotten */
/* Datagrams that a shelf may send before the first credit; its letter tells it. */
uint32_t srd_reader_share(const struct srd_reader *reader);

/* A shelf joins: its index among the peers, and the token that it has to show (made of `random`). FALSE:
 * there are too many. */
gboolean srd_reader_join(struct srd_reader *reader, uint64_t random, uint32_t *peer, uint64_t *token);

/* What its letter said. */
struct srd_shelf_end {
  uint64_t token;    /* that it wants to be shown */
  uint32_t requests; /* that it has buffers for; > 0 */
  uint32_t segment;  /* bytes, SRD_SEGMENT_LEAST to READ_BYTES_MAX; both ends' */
};
/* From now on it is asked. */
void srd_reader_meet(struct srd_reader *reader, uint32_t peer, const struct srd_shelf_end *shelf);
/* It is lost or given up: each call ends one of its reads, which failed; FALSE: there is none left, and the
 * peer is forgotten. What still comes from it is a stranger's. */
gboolean srd_reader_leave(struct srd_reader *reader, uint32_t peer, uint64_t *tag);

struct srd_read {
  uint32_t key, bytes; /* at most READ_BYTES_MAX */
  uint64_t address, tag;
  uint8_t *place;
};

/* Reads of a peer end in any order. */
void srd_reader_read(struct srd_reader *reader, uint32_t peer, const struct srd_read *read);

/* To be called about once a second: peers that have been asked and were silent since the last call are
 * probed, if nothing is on its way to them: what is says as well that they are lost. */
void srd_reader_tick(struct srd_reader *reader);

/* The next datagram to send, to whom; size 0: there is none now. One that is returned must be sent, or the
 * peer be given up. Peers take turns. */
size_t srd_reader_next(struct srd_reader *reader, uint8_t wire[SRD_HEAD_BYTES], uint32_t *peer);
/* One of them was delivered to the peer. */
void srd_reader_sent(struct srd_reader *reader, uint32_t peer);

enum srd_outcome {
  SRD_STORED,   /* a part of a read that goes on */
  SRD_LATE,     /* of a read that is over: it was refused after this had been sent */
  SRD_FOREIGN,  /* no peer's token */
  SRD_NONSENSE, /* no datagram of this protocol, or not one for a reader */
  SRD_DONE,     /* a read ended well: its tag */
  SRD_FAILED,   /* a read ended, refused: its tag */
  SRD_FAULT,    /* the peer broke the protocol, and is to be dropped */
};

/* A datagram came. Only SRD_STORED and SRD_DONE wrote anything. *peer, *tag: of the last three. */
enum srd_outcome srd_reader_take(struct srd_reader *reader, const uint8_t *data, size_t size, uint32_t *peer,
                                 uint64_t *tag);

#endif
