/* What a server's process tells of itself: metrics over all of its runs (metrics_text.h). */
#ifndef DM_SERVER_METRICS_H
#define DM_SERVER_METRICS_H

#include <glib.h>
#include "core/record.h"
#include "harness/usage.h"

struct server;

/* Counters never fall: those of the runs that are over are kept. */
struct server_totals {
  struct usage usage;
  uint64_t evicted[REASON_COUNT];
  uint64_t sent_bytes, refused; /* of a shelf */
  uint64_t ssd_bytes;           /* read */
};

void server_metrics(void *server, GString *text);
/* What the run counted is about to go. */
void server_metrics_keep(struct server *server);

#endif
