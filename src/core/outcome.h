/* How a request ended, and how it found its model; shared by messages, metrics and the result database. */
#ifndef DM_OUTCOME_H
#define DM_OUTCOME_H

#define FOUND_KINDS(X)                                                                                       \
  X(RESIDENT, "resident")                                                                                    \
  X(JOINED, "joined")                                                                                        \
  X(HOST, "host")                                                                                            \
  X(SSD, "ssd")                                                                                              \
  X(REMOTE, "remote")                                                                                        \
  X(PROCESS_START, "process_start")

enum found {
#define X(name, text) FOUND_##name,
  FOUND_KINDS(X)
#undef X
      FOUND_COUNT
};

#define OUTCOME_KINDS(X)                                                                                     \
  X(COMPLETED, "completed")                                                                                  \
  X(REJECTED, "rejected")       /* queue full */                                                             \
  X(TIMED_OUT, "timed_out")     /* counted as failed */                                                      \
  X(LOST, "lost")               /* no copy of the model left, or no server; counted as failed */             \
  X(INTERRUPTED, "interrupted") /* in flight at Ctrl-C; counted as failed */

enum outcome {
#define X(name, text) OUTCOME_##name,
  OUTCOME_KINDS(X)
#undef X
      OUTCOME_COUNT
};

const char *found_name(enum found found);
const char *outcome_name(enum outcome outcome);

#endif
