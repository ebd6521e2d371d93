/* Inside of the client: one run of it. */
#ifndef DM_CLIENT_INTERNAL_H
#define DM_CLIENT_INTERNAL_H

#include "backend_real/client.h"
#include "backend_real/metrics_http.h"
#include "backend_real/real_world.h"
#include "core/controller.h"
#include "harness/metrics.h"
#include "harness/progress.h"
#include "harness/usage.h"
#include "harness/workload.h"

#define USAGE_POINTS 1000             /* samples of a run, about */
#define TICK_NS      (50 * NS_PER_MS) /* Ctrl-C, progress, what is over */

enum run_state { STATE_BEGINNING, STATE_ON, STATE_ENDING, STATE_OVER };
enum meter_purpose { METER_WARMUP = 1, METER_END, METER_SAMPLE };

struct client_run {
  const struct client_options *options;
  const struct setup *setup;
  const struct experiment *experiment;
  const struct run_outputs *outputs;
  struct workload *workload;
  struct recorder *recorder;       /* NULL: nothing is recorded */
  const struct actor_ops *ear_ops; /* who is told what the workload is to hear: it, or the recorder */
  void *ear;
  struct metrics *metrics;
  struct progress *progress;
  struct real_world *rw;
  enum run_state state;
  uint32_t number; /* of the run, once it is ready */
  char *ready;     /* what the servers are */
  GError *error;
  int64_t start, warmup, end; /* start: clock; the others from there */
  int64_t sample, next_sample, deadline;
  uint32_t next_event;
  uint32_t wanted; /* bits of enum meter_purpose, not yet asked */
  gboolean asking;
  gboolean asked_warmup, asked_end, told_end, whole;
  uint64_t jobs_left, jobs_seen;
  struct usage at_warmup, at_end, at_sample, now;
  int64_t sampled_at;
  uint64_t completed, rejected, failed;
  GArray *asked_at; /* of int64_t: time of each METER, by its number >> 2 */
};

/* Of all runs: for an onlooker. */
struct client_counts {
  uint64_t sent, ended;                 /* requests */
  uint64_t outcomes[OUTCOME_COUNT];     /* by their end */
  uint64_t found[FOUND_COUNT];          /* completed ones, by how they found their model */
  uint64_t latency[LATENCY_BOUNDS + 1]; /* … by time from the intended arrival to the answer */
  double latency_ns;                    /* sum of those times */
};

struct client {
  struct loop *loop;
  struct link *link;
  struct metrics_http *metrics; /* NULL: not served */
  struct client_counts counts;
  gboolean welcome;
  char *lost;
  gboolean began; /* a run, if only one */
  struct client_run *run;
};

/* client.c */
void client_frame(struct client *c, enum frame_kind kind, GBytes *bytes);
/* Nanoseconds since the run began. */
int64_t run_now(const struct client *c);
/* Ends the run by the first error that it met; takes it. */
void run_fail(struct client *c, GError *error);

/* client_course.c */
void run_start(struct client *c, struct run_ready *ready);
/* Does what is due now: meters, events, the end. */
void run_on(struct client *c);
gboolean run_is_over(const struct client *c);
/* A timer's: runs on, minds deadlines and Ctrl-C, and sets itself again. */
void run_look(void *context, uint64_t tag);

/* client_meter.c */
void run_meter_ask(struct client *c, enum meter_purpose purpose);
void run_meter_came(struct client *c, const struct run_meter *meter, gboolean last);
/* Records that a server, or the controller, sent: to the store and the timeline. */
void run_records_came(struct client *c, const uint8_t *data, size_t size);

/* client_metrics.c */
void client_count(struct client_counts *counts, const struct request_row *row);
void client_metrics(void *context, GString *text);

/* client_events.c */
gboolean run_events_can_be(const struct client_run *run, GError **error);
void run_event(struct client *c, const struct experiment_event *event);

#endif
