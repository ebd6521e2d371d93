/* Inside of the controller's process. */
#ifndef DM_COORDINATOR_INTERNAL_H
#define DM_COORDINATOR_INTERNAL_H

#include "backend_real/coordinator.h"
#include "backend_real/metrics_http.h"
#include "backend_real/real_world.h"
#include "backend_real/run_spec.h"
#include "core/controller.h"
#include "harness/recorder.h"

enum member_stage {
  STAGE_GONE,      /* its usage is kept */
  STAGE_LINKED,    /* no part in the run */
  STAGE_PREPARING, /* told to */
  STAGE_READY,     /* waits for the right to read, and to be read */
  STAGE_GOING
};

/* A server, by place. */
struct member {
  actor_id id;
  enum member_stage stage;
  char can[64];         /* transports, of its hello */
  char *address, *text; /* of READY */
  gboolean up;          /* its JOIN has passed, in this run */
  uint32_t metered;     /* number of its last answer */
  struct usage usage;   /* last told */
  struct usage before;  /* of earlier processes in this place */
};

/* The right of a reader at a shelf. */
struct grant {
  actor_id reader;
  uint32_t shelf;
  struct ticket_secret secret;
  gboolean granted;      /* the shelf knows */
  int64_t letters_since; /* a second of letters between the two began then */
  uint32_t letters;      /* in it */
};

enum run_stage { RUN_NONE, RUN_GATHERING, RUN_PREPARING, RUN_STARTING, RUN_ON, RUN_ENDING };

struct coordinator {
  struct loop *loop;
  struct hub *hub;
  GArray *members;             /* of struct member */
  GArray *grants;              /* of struct grant */
  struct recording *recording; /* NULL: none */

  enum run_stage stage;
  uint32_t runs; /* so far: the last one's number */
  actor_id client;
  struct run_spec spec;
  struct experiment *experiment;
  struct setup *setup;
  struct real_world *rw;
  struct controller *controller;
  struct recorder *recorder;       /* NULL: nothing is recorded */
  const struct actor_ops *ear_ops; /* who is told what the controller is to hear: it, or the recorder */
  void *ear;
  GArray *records;
  uint32_t meter;              /* number being asked for, 0 = none */
  uint64_t deadline;           /* timer of what is waited for */
  char failure[FAILURE_BYTES]; /* what a server reported */

  struct metrics_http *metrics; /* NULL: not served */
  struct {
    struct controller_usage usage;
    uint64_t jobs_done;
  } before; /* of the runs that are over */
};

/* coordinator.c */
void coordinator_frame(struct coordinator *c, actor_id to, enum frame_kind kind, GBytes *bytes);
/* Tells the client and ends the run, which is freed. */
void coordinator_fail(struct coordinator *c, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* Ends the run without a word to the client. Servers close their side; nobody waits for them. */
void coordinator_abandon(struct coordinator *c);
/* BEGIN of a client. */
void coordinator_begin(struct coordinator *c, actor_id client, const uint8_t *data, size_t size);
/* The core's controller comes to life: just before the servers' mail does, or it would miss them. */
void coordinator_start(struct coordinator *c);
/* Frees what belongs to the run. */
void coordinator_over(struct coordinator *c);
/* A server has come a stage further: perhaps the run has too. */
void coordinator_members_changed(struct coordinator *c);
/* The core's controller has heard its JOIN. */
void coordinator_member_up(struct coordinator *c, struct member *member);

/* coordinator_hub.c */
extern const struct hub_ops coordinator_hub_ops;

/* coordinator_members.c */
struct grant *grant_find(struct coordinator *c, actor_id reader, uint32_t shelf);
struct member *member_find(struct coordinator *c, actor_id id);
gboolean member_founds(const struct coordinator *c, actor_id id);
gboolean member_has_place(const struct coordinator *c, actor_id id);
/* Every place that the run starts with has a server at `stage` or beyond. */
gboolean members_all(const struct coordinator *c, enum member_stage stage);
void member_linked(struct coordinator *c, actor_id id, const char *can);
void member_lost(struct coordinator *c, struct member *member);
void member_prepare(struct coordinator *c, struct member *member);
void member_ready(struct coordinator *c, struct member *member, const uint8_t *data, size_t size);
/* It cannot take part: the end of a run that cannot begin without it. */
void member_failed(struct coordinator *c, struct member *member, const uint8_t *data, size_t size);
void member_granted(struct coordinator *c, struct member *member, const uint8_t *data, size_t size);
/* Grants what is missing; once all is granted, GO to all with the pool as it is now. */
void members_connect(struct coordinator *c);
void members_end(struct coordinator *c);

/* coordinator_transport.c */
/* "auto" becomes the best transport that every server has with which the run begins. FALSE: there is none;
 * the run has failed. */
gboolean transport_resolve(struct coordinator *c);
/* Carries a letter on, if one of the two may read the other. */
void letter_forward(struct coordinator *c, struct member *from, const uint8_t *data, size_t size);

/* coordinator_metrics.c */
void coordinator_metrics(void *context, GString *text);
/* The run's controller is about to go. */
void coordinator_metrics_keep(struct coordinator *c);

/* coordinator_meter.c */
void meter_ask(struct coordinator *c, uint32_t number);
void meter_answer(struct coordinator *c, struct member *member, const uint8_t *data, size_t size);
/* Sends the sum, if all answers are in. */
void meter_check(struct coordinator *c);

#endif
