/* Shared by the controller's files: its state, and what one part calls of another. */
#ifndef DM_CONTROLLER_INTERNAL_H
#define DM_CONTROLLER_INTERNAL_H

#include "core/balancer.h"
#include "core/controller.h"

enum request_state { REQUEST_FREE, REQUEST_PROXY, REQUEST_CENTRAL, REQUEST_SENT, REQUEST_ABANDONED };

/* One request in the system. Lists are of tags (indexes of slots). */
struct request_slot {
  uint64_t id;
  int64_t service_ns;
  int64_t arrived, dispatched; /* controller's clock */
  int64_t predicted, shift;    /* free_at of its GPU when it was sent */
  double work_ns;
  uint32_t model, slot, gpu, attempt;
  uint32_t next, previous;             /* of its GPU's outstanding requests, or of the central queue */
  uint32_t model_next, model_previous; /* central queue: of the same model */
  uint32_t open_next, open_previous; /* of those not answered, in order of arrival; only with a time limit */
  enum request_state state;
};

struct tag_list {
  uint32_t first, last;
};

/* A training job: steps of the run's training model on up to gpus GPUs. */
struct job {
  uint32_t gpus;
  uint64_t steps_left; /* not yet handed out; UINT64_MAX: endless */
  uint64_t steps_out;  /* handed out, not yet reported */
  uint32_t next;       /* the next one to look at: those between are done */
  uint32_t running;    /* GPUs on it */
  gboolean done;
};

struct trainee {
  uint32_t job; /* NO_INDEX = none */
  uint64_t steps;
  int64_t idle_since;
  timer_id timer; /* set when it fell idle */
};

struct memory_member {
  enum member_state state;
  uint32_t epoch;
  int64_t last_heard;
  gboolean placed;
  gboolean told_dead; /* GPU servers take it for dead */
  gboolean leaving;   /* is to go, also while it is lost */
};

struct controller {
  const struct config *config;
  struct world *world;
  struct cluster_view *view;

  struct request_slot *slot;
  uint32_t slots, free_slot;
  struct tag_list central;
  struct tag_list *central_model; /* [models] */
  uint64_t central_length;
  uint64_t queued;      /* waiting on GPUs */
  struct tag_list open; /* not answered yet; kept only where requests have a time limit */
  gboolean late_armed;

  struct memory_member *memory; /* [memory_servers] */
  uint64_t plan_members, next_members, alive_members;
  uint64_t asked_members; /* of the next plan: those that are to hold their shards */
  uint32_t plan_version, next_version;
  gboolean plan_again;      /* the last try was given up: the next heartbeat is another */
  uint32_t *server_plan;    /* [servers] plan version acknowledged */
  gboolean *server_leaving; /* [servers] is to go, also while it is lost */

  GArray *jobs; /* of struct job */
  uint32_t first_job, jobs_left;
  uint64_t jobs_seen, jobs_done;
  struct trainee *trainee; /* [gpus] */
  struct controller_usage usage;
};

enum controller_timer { TIMER_PROXY, TIMER_LATE, TIMER_HEARTBEAT, TIMER_TRAIN };
#define TIMER_TAG(kind, value) ((uint64_t)(kind) << 32 | (value))

/* controller_slots.c: a tag is a slot's index; a slot is in at most one of the first two lists */
uint32_t controller_slot_take(struct controller *c);
void controller_slot_give(struct controller *c, uint32_t tag);
void controller_outstanding_add(struct controller *c, uint32_t tag);
void controller_outstanding_remove(struct controller *c, uint32_t tag);
void controller_central_add(struct controller *c, uint32_t tag);
void controller_central_remove(struct controller *c, uint32_t tag);
void controller_open_add(struct controller *c, uint32_t tag);
void controller_open_remove(struct controller *c, uint32_t tag);

static inline gboolean member_is_there(enum member_state state)
{
  return state == MEMBER_UP || state == MEMBER_LEAVING;
}

/* controller_requests.c */
void controller_request(struct controller *c, const struct message_request *m);
void controller_done(struct controller *c, uint32_t server, const struct message_done *m);
void controller_proxy_passed(struct controller *c, uint32_t tag);
void controller_late(struct controller *c);
/* Sends every outstanding request of a lost server elsewhere. */
void controller_retry_server(struct controller *c, uint32_t server);
/* Looks at the central queue again; model: whose process may have room (NO_INDEX = none in particular). */
void controller_drain_central(struct controller *c, uint32_t model);
/* With no GPU server left the central queue will never be served. */
void controller_give_up_central(struct controller *c);

/* controller_members.c: `from` is a server of the configuration */
void controller_join(struct controller *c, actor_id from, const struct message_join *m);
void controller_heard(struct controller *c, actor_id from, uint32_t epoch);
void controller_remove(struct controller *c, const struct message_remove *m);
void controller_check_heartbeats(struct controller *c);
void controller_lost(struct controller *c, actor_id peer);
/* A leaving server whose last request is done may go. */
void controller_leave_if_idle(struct controller *c, uint32_t server);
/* GPU servers are told whether a memory server answers. */
void controller_tell_member(struct controller *c, uint32_t index, gboolean alive);
void controller_record_member(struct controller *c, actor_id member, enum record_reason reason);

/* controller_plan.c */
/* The memory pool's members have changed: a change of the plan may begin, a server that is to leave may go.
 */
void controller_replan(struct controller *c);
/* GPU servers have changed: one less may be waited for. */
void controller_plan_settled(struct controller *c);
void controller_send_plan(struct controller *c, uint32_t server);
void controller_placed(struct controller *c, uint32_t server, const struct message_placed *m);
void controller_plan_ack(struct controller *c, uint32_t server, const struct message_plan *m);

/* controller_training.c */
void controller_job(struct controller *c, const struct message_job *m);
void controller_trained(struct controller *c, uint32_t server, const struct message_trained *m);
/* A GPU has nothing to do: a job may have it. */
void controller_gpu_idle(struct controller *c, uint32_t gpu);
/* It fell idle as long ago as a switch costs: if it still is, it may train now. */
void controller_train_timer(struct controller *c, uint32_t gpu);
void controller_stop_training(struct controller *c, uint32_t gpu);
void controller_training_lost(struct controller *c, uint32_t gpu);

/* controller_usage.c: an answer goes out now */
void controller_count_answer(struct controller *c, const struct request_slot *r, enum outcome outcome,
                             enum found found);

void controller_record(struct controller *c, struct record record);

#endif
