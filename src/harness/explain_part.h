/* What the parts of a request's story share. Private to explain*.c. */
#ifndef DM_EXPLAIN_PART_H
#define DM_EXPLAIN_PART_H

#include "harness/explain.h"
#include "harness/store_schema.h"

/* The request as stored; times in ns, -1 = never; gpu -1 = none. */
struct story {
  struct store_reader *reader;
  FILE *out;
  int64_t run;
  int64_t id, gpu;
  char *system, *model, *outcome, *found; /* found "" where it did not complete */
  int64_t arrival_ns, dispatch_ns, start_ns, end_ns;
  gboolean slo_met;
};

/* ns after the request's arrival, in ms. */
double story_ms(const struct story *story, int64_t ns);
/* A statement about this story: ?1 = run, ?2 = request. NULL + error. */
sqlite3_stmt *story_prepare(const struct story *story, const char *sql, GError **error);
/* "437.9 MB"; free with g_free. */
char *format_bytes(int64_t bytes);

/* What happened, in order of time: milestones of the request and the decisions made for it. */
gboolean explain_events(const struct story *story, GError **error);
/* The table of groups: network, PCIe, compute. */
gboolean explain_groups(const struct story *story, GError **error);

#endif
