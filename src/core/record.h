/* What the core tells an onlooker: decisions with their reasons, and the stages of loads. Plain structs, no
 * pointers.
 *
 * A world hands records to whoever listens (the result store, the timeline); with nobody listening none is
 * built. */
#ifndef DM_RECORD_H
#define DM_RECORD_H

#include "core/units.h"

#define NO_INDEX UINT32_MAX

/* One list yields enum, name and meaning. */
#define RECORD_KINDS(X)                                                                                      \
  X(DISPATCH, "dispatch")     /* a request was sent to a GPU */                                              \
  X(LOAD, "load")             /* a load of a model began */                                                  \
  X(LOADED, "loaded")         /* it ended: a = bytes, b = duration ns */                                     \
  X(EVICT, "evict")           /* a model left a GPU or a host cache: a = bytes */                            \
  X(PREEMPT, "preempt")       /* training gave a GPU back */                                                 \
  X(GROUP_NET, "net")         /* a group's last byte arrived: group, a = bytes */                            \
  X(GROUP_PCIE, "pcie")       /* a group was uploaded: group, a = bytes, b = start ns */                     \
  X(GROUP_COMPUTE, "compute") /* a group was computed: group, b = start ns */                                \
  X(MEMBER, "member")         /* a server joined, left, was lost, … */                                     \
  X(TRAIN, "train")           /* training started or stopped: a = steps done, b = steps lost */

enum record_kind {
#define X(name, text) RECORD_##name,
  RECORD_KINDS(X)
#undef X
      RECORD_KIND_COUNT
};

/* Reasons: one list for all kinds. Text is what `explain` and `report --decisions` print. */
#define RECORD_REASONS(X)                                                                                    \
  X(NONE, "")                                                                                                \
  X(RESIDENT, "model resident, earliest finish")                                                             \
  X(JOIN, "model loading there, earliest finish")                                                            \
  X(HOST, "model in host cache, earliest finish")                                                            \
  X(REMOTE, "loading from the memory pool there finishes earliest")                                          \
  X(SSD, "loading from the SSD there starts earliest")                                                       \
  X(LEAST_LOADED, "least outstanding work")                                                                  \
  X(ROUND_ROBIN, "next in turn")                                                                             \
  X(PINNED, "replica of the demand slot")                                                                    \
  X(SHORT_QUEUE, "process or replica with the model, shortest queue")                                        \
  X(PROCESS_START, "no process has room, idle GPU: start one")                                               \
  X(RETRY, "sent again after a failure")                                                                     \
  X(MISS, "not on this GPU")                                                                                 \
  X(SPACE, "room for another model")                                                                         \
  X(LIMIT, "limit of models a GPU")                                                                          \
  X(CACHE_SPACE, "room in the host cache")                                                                   \
  X(SHRUNK, "cache size was lowered")                                                                        \
  X(INFERENCE, "inference needs the GPU")                                                                    \
  X(IDLE, "GPU idle")                                                                                        \
  X(JOINED, "joined")                                                                                        \
  X(LEFT, "left")                                                                                            \
  X(LOST, "lost: no heartbeat, or broken off")                                                               \
  X(NO_ROOM, "shards of the next plan do not fit there")                                                     \
  X(LOAD_DEAR, "waits where the model is: a load behind others elsewhere gains too little")

enum record_reason {
#define X(name, text) REASON_##name,
  RECORD_REASONS(X)
#undef X
      REASON_COUNT
};

struct record {
  int64_t time_ns;
  enum record_kind kind;
  enum record_reason reason;
  uint64_t request; /* id, or UINT64_MAX */
  uint32_t model;   /* or NO_INDEX */
  uint32_t server;  /* GPU server, or NO_INDEX */
  uint32_t gpu;     /* global GPU number, or NO_INDEX (a host cache) */
  uint32_t group;   /* of group records */
  uint32_t source;  /* enum load_source of loads, or NO_INDEX */
  int64_t a, b, c,
      d; /* numbers weighed; meaning by kind. DISPATCH: a = predicted finish, b = queue wait, c = load, d =
            predicted finish of the best other GPU, all ns from now (TIME_NEVER: none). EVICT: a = bytes,
            b = ns since last use, c = value that was least. LOAD: a = bytes, b = groups. */
};

const char *record_kind_name(enum record_kind kind);
const char *record_reason_text(enum record_reason reason);

#endif
