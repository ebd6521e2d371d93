/* The shelf's half of reads by datagram: what its readers asked for and is still to be sent, and in which
 * order.
 *
 * It knows no device: its owner moves the datagrams, and for every reader has srd_answers_receives() buffers
 * posted, each again before it asks for the next piece to send. Readers take turns, a segment each; the
 * requests of one are answered in order. Nothing is locked; nothing is allocated after the start. */
#ifndef DM_SRD_ANSWERS_H
#define DM_SRD_ANSWERS_H

#include "backend_real/srd_wire.h"

struct srd_answers;

/* readers: most at once, at most SRD_PEERS_MAX; requests: most of one that wait at once. */
struct srd_answers *srd_answers_new(uint32_t readers, uint32_t requests);
void srd_answers_free(struct srd_answers *answers);
/* Datagrams of one reader that may be under way: requests, credits, a probe. */
uint32_t srd_answers_receives(const struct srd_answers *answers);

/* A reader may come: its index, and the token that it has to show (made of `random`). FALSE: too many. */
gboolean srd_answers_admit(struct srd_answers *answers, uint64_t random, uint32_t *reader, uint64_t *token);

/* What its letter said. */
struct srd_visitor {
  uint64_t token;   /* that it wants to be shown */
  uint32_t share;   /* of its receive buffers; > 0, at most SRD_SHARE_MAX */
  uint32_t segment; /* bytes; both ends' */
};
#define SRD_SHARE_MAX (1U << 30)
/* From now on it may ask. */
void srd_answers_meet(struct srd_answers *answers, uint32_t reader, const struct srd_visitor *visitor);
/* It is lost, or may no longer: all that it asked for is forgotten. */
void srd_answers_expel(struct srd_answers *answers, uint32_t reader);

enum srd_taken {
  SRD_TAKEN,
  SRD_MALFORMED, /* no datagram of this protocol, or not one for a shelf */
  SRD_STRANGER,  /* no reader's token */
  SRD_EXCESS,    /* more requests than a reader may have, or more credit than its share: to be expelled */
};
/* Nothing can be sent to the reader for now (its queue is full), or again. */
void srd_answers_hold(struct srd_answers *answers, uint32_t reader, gboolean held);
/* A datagram came; only the first changed anything. *reader: of the first and the last. */
enum srd_taken srd_answers_take(struct srd_answers *answers, const uint8_t *data, size_t size,
                                uint32_t *reader);

/* A segment that can be sent: what the reader asked for by that key and address. */
struct srd_piece {
  uint32_t reader, key, bytes;
  uint64_t address;
};
/* The next one; FALSE: none now. Until it is sent or refused, the next one is the same, unless a datagram
 * came or a reader went. */
gboolean srd_answers_next(struct srd_answers *answers, struct srd_piece *piece);
/* The piece of the last srd_answers_next() is sent: its head, behind which go piece.bytes of payload; or its
 * whole request is refused: the whole datagram. Returns the size. */
size_t srd_answers_send(struct srd_answers *answers, const struct srd_piece *piece,
                        uint8_t wire[SRD_HEAD_BYTES]);
size_t srd_answers_refuse(struct srd_answers *answers, const struct srd_piece *piece,
                          uint8_t wire[SRD_HEAD_BYTES]);

#endif
