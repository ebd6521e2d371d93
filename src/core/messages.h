/* Messages between actors: fixed, pointer-free structs from one table, which yields the structs, the encoder,
 * the decoder with its bounds, and the fuzz target. Durations only, never another actor's clock.
 *
 * A field is F(type, name, bound): type u32, u64 or i64; bound names the check of the decoder:
 * ANY, durations (-1 for none, or at most MESSAGE_DURATION_MAX: sums of a few keep within 64 bits), or one of
 * struct message_limits' members (the value must be below it), or gpus_or_none (NO_INDEX is
 * allowed too). */
#ifndef DM_MESSAGES_H
#define DM_MESSAGES_H

#include <glib.h>
#include "core/outcome.h"
#include "core/record.h"

/* M(TYPE, name, fields). Who sends it to whom stands beside it. */
#define MESSAGE_TABLE(M)                                                                                     \
  /* client -> controller: serve this; service_ns 0 = the profile's time; slot: demand slot or NO_INDEX */   \
  M(REQUEST, request, F(u64, id, ANY) F(u32, model, models) F(u32, slot, ANY) F(i64, service_ns, durations)) \
  /* controller -> client. queued: at the controller; waited: at the GPU server until it held the GPU;       \
   * executed */                                                                                             \
  M(ANSWER, answer,                                                                                          \
    F(u64, id, ANY) F(u32, outcome, outcomes) F(u32, found, founds) F(u32, gpu, ANY)                         \
        F(i64, queued_ns, durations) F(i64, waited_ns, durations) F(i64, executed_ns, durations))            \
  /* controller -> GPU server: run it on gpu (of the server); tag comes back with DONE */                    \
  M(DISPATCH, dispatch,                                                                                      \
    F(u64, id, ANY) F(u32, tag, ANY) F(u32, attempt, ANY) F(u32, model, models) F(u32, gpu, gpus)            \
        F(i64, service_ns, durations))                                                                       \
  /* controller -> GPU server: the client no longer waits; drop it if it has not started */                  \
  M(REVOKE, revoke, F(u64, id, ANY) F(u32, attempt, ANY) F(u32, gpu, gpus))                                  \
  /* GPU server -> controller */                                                                             \
  M(DONE, done,                                                                                              \
    F(u64, id, ANY) F(u32, tag, ANY) F(u32, attempt, ANY) F(u32, outcome, outcomes) F(u32, found, founds)    \
        F(i64, waited_ns, durations) F(i64, executed_ns, durations))                                         \
  /* GPU server -> controller: a model's state (enum tier_state) on a GPU, or in the host cache (gpu =       \
   * NO_INDEX) */                                                                                            \
  M(MODEL_STATE, model_state, F(u32, model, models) F(u32, gpu, gpus_or_none) F(u32, state, states))         \
  /* GPU server -> controller, when something changed, at most every report_ms: network bytes still to come, \
   * achieved rate while fetching (bytes/s, 0 = none yet) */                                                 \
  M(REPORT, report, F(u64, net_left_bytes, ANY) F(u64, net_rate, ANY) F(u32, fetches, ANY))                  \
  /* any server -> controller */                                                                             \
  M(JOIN, join, F(u32, epoch, ANY) F(u64, memory_bytes, ANY))                                                \
  M(HEARTBEAT, heartbeat, F(u32, epoch, ANY))                                                                \
  /* operator -> controller: take this server out when its work is done; kind: enum actor_kind */            \
  M(REMOVE, remove, F(u32, kind, kinds) F(u32, index, ANY))                                                  \
  /* controller -> server: nothing more will come, go */                                                     \
  M(LEAVE, leave, F(u32, epoch, ANY))                                                                        \
  /* controller -> GPU servers: shards lie on these memory servers (bit i = server i); answered by PLAN when \
   * no fetch uses an older plan */                                                                          \
  M(PLAN, plan, F(u32, version, ANY) F(u64, members, ANY))                                                   \
  /* controller -> GPU servers: a memory server no longer answers (alive 0) or does again */                 \
  M(MEMBER, member, F(u32, index, memory_servers) F(u32, alive, ANY))                                        \
  /* controller -> memory server: hold your shards of the plan (fetch what is missing from the holders in    \
   * `from` of the plan with members `present`, read from its source what none of them has); answered by     \
   * PLACED (enum placed_result). DROP: older plans' shards may go */                                        \
  M(PLACE, place, F(u32, version, ANY) F(u64, members, ANY) F(u64, present, ANY) F(u64, from, ANY))          \
  M(PLACED, placed, F(u32, version, ANY) F(u32, result, ANY))                                                \
  M(DROP, drop, F(u32, version, ANY))                                                                        \
  /* controller -> GPU server: train up to steps steps of job on gpu; steps 0: stop. GPU server ->           \
   * controller: how far */                                                                                  \
  M(TRAIN, train, F(u32, gpu, gpus) F(u32, job, ANY) F(u64, steps, ANY))                                     \
  M(TRAINED, trained,                                                                                        \
    F(u32, gpu, gpus) F(u32, job, ANY) F(u64, steps, ANY) F(u64, lost, ANY) F(u32, stopped, ANY))            \
  /* operator -> GPU server: the host cache's size */                                                        \
  M(CACHE_SIZE, cache_size, F(u64, bytes, ANY))                                                              \
  /* client -> controller: a training job wants gpus x duration (fractions of a GPU count in thousandths) */ \
  M(JOB, job, F(u32, gpus_milli, ANY) F(i64, duration_ns, durations))

typedef uint32_t message_u32;
typedef uint64_t message_u64;
typedef int64_t message_i64;

/* How a change of the memory pool's plan went at a memory server. */
enum placed_result {
  PLACED_NO_ROOM, /* the shards do not fit: nor will they later */
  PLACED_DONE,
  PLACED_GIVEN_UP /* a fetch failed: another try may do */
};

enum message_type {
#define M(TYPE, name, fields) MESSAGE_##TYPE,
  MESSAGE_TABLE(M)
#undef M
      MESSAGE_TYPES
};

#define F(type, field, bound) message_##type field;
#define M(TYPE, name, fields)                                                                                \
  struct message_##name {                                                                                    \
    fields                                                                                                   \
  };
MESSAGE_TABLE(M)
#undef M
#undef F

struct message {
  enum message_type type;
  union {
#define M(TYPE, name, fields) struct message_##name name;
    MESSAGE_TABLE(M)
#undef M
  };
};

/* What values a decoded message may hold: each field is below its limit. */
struct message_limits {
  uint32_t models, gpus /* of the largest server */, memory_servers;
  uint32_t outcomes, founds, states, kinds; /* set by message_limits_init */
};

#define MESSAGE_BYTES_MAX    64
#define MESSAGE_DURATION_MAX 1000000000000000000 /* ns: 31 years */

void message_limits_init(struct message_limits *limits, uint32_t models, uint32_t gpus,
                         uint32_t memory_servers);
/* Little-endian, no padding: type (u32), then the fields. Returns the size, at most MESSAGE_BYTES_MAX. */
size_t message_encode(const struct message *message, uint8_t out[MESSAGE_BYTES_MAX]);
/* Bytes of a message of this type on the wire, its type included; 0 = no such type. So messages can be laid
 * end to end. */
size_t message_size(uint32_t type);
/* FALSE: unknown type, wrong size, or a value out of its bounds; *message is then undefined. */
gboolean message_decode(const uint8_t *data, size_t size, const struct message_limits *limits,
                        struct message *message);
const char *message_name(enum message_type type);

#endif
