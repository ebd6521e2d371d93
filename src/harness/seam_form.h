/* The written form of what passes between an actor and its world (world.h): what came in, and what the actor
 * did. One table of fields a kind yields the writer, the reader of inputs, the text for people and the
 * comparison, so that they cannot disagree. Pointers are written as what they point to.
 *
 * Numbers in the notation of octets.h; messages as message_encode lays them out. The id
 * that the world gave to an operation or a timer is no part of the form. */
#ifndef DM_SEAM_FORM_H
#define DM_SEAM_FORM_H

#include "core/world.h"
#include "harness/octets.h"

/* Kind, name, the struct that its fields are read from. The order is part of the format of recordings. */
#define SEAM_KINDS_TABLE(X)                                                                                  \
  X(START, "start", struct seam_nothing)                                                                     \
  X(MESSAGE, "message", struct seam_mail)                                                                    \
  X(TIMER_DUE, "timer due", struct seam_tag)                                                                 \
  X(COMPLETION, "completion", struct completion)                                                             \
  X(PEER_LOST, "peer lost", struct seam_peer)                                                                \
  X(SEND, "send", struct seam_mail)                                                                          \
  X(TIMER, "timer", struct seam_timer)                                                                       \
  X(TIMER_CANCEL, "timer cancel", struct seam_tag)                                                           \
  X(FETCH, "fetch", struct fetch_spec)                                                                       \
  X(COPY, "copy", struct copy_spec)                                                                          \
  X(COMPUTE, "compute", struct compute_spec)                                                                 \
  X(CANCEL, "cancel", struct seam_tag)                                                                       \
  X(FILL, "fill", struct seam_place)                                                                         \
  X(SERVE, "serve", struct seam_place)                                                                       \
  X(RECORD, "record", struct record)

enum seam_kind {
#define X(kind, name, type) SEAM_##kind,
  SEAM_KINDS_TABLE(X)
#undef X
      SEAM_KINDS
};

struct seam_nothing {
  char none;
};
struct seam_mail {
  actor_id peer; /* who sent it, or to whom */
  const struct message *message;
};
struct seam_tag {
  uint64_t tag; /* or the id of what is cancelled */
};
struct seam_peer {
  actor_id peer;
};
struct seam_timer {
  int64_t delay_ns;
  uint64_t tag;
};
struct seam_place {
  uint32_t model;
  uint64_t offset, bytes;
  uint32_t gpu; /* of fill; serve: NO_INDEX */
  const struct ranges *place;
};

static inline gboolean seam_is_input(enum seam_kind kind)
{
  return kind <= SEAM_PEER_LOST;
}

/* The world answers with an id. */
static inline gboolean seam_has_id(enum seam_kind kind)
{
  return kind == SEAM_TIMER || (kind >= SEAM_FETCH && kind <= SEAM_COMPUTE);
}

const char *seam_name(enum seam_kind kind);
/* Appends the form of *what, whose type stands in the table. */
void seam_write(struct octets *out, enum seam_kind kind, const void *what);

/* An input, read back. */
struct seam_input {
  enum seam_kind kind;
  actor_id peer; /* MESSAGE, PEER_LOST */
  struct message message;
  struct completion completion; /* its tag: of TIMER_DUE too */
};
/* FALSE: no such input, or its message is out of limits; *input is then undefined. */
gboolean seam_read_input(enum seam_kind kind, const uint8_t *data, size_t size,
                         const struct message_limits *limits, struct seam_input *input);

/* "copy gpu 0, lane 1, …" of a form, as far as it can be read; g_free it. */
char *seam_text(enum seam_kind kind, const uint8_t *data, size_t size);
/* The first field in which two forms of one kind differ: "lane: expected 0, found 1"; g_free it. NULL: none.
 */
char *seam_difference(enum seam_kind kind, const uint8_t *expected, size_t expected_size,
                      const uint8_t *found, size_t found_size);
/* "gpu-server 3". */
char *seam_actor_name(actor_id actor);

#endif
