/* Shared by the simulator's files: its state, and what one part calls of another. */
#ifndef DM_SIM_INTERNAL_H
#define DM_SIM_INTERNAL_H

#include "backend_sim/event_queue.h"
#include "backend_sim/sim.h"
#include "backend_sim/stream.h"

enum sim_event {
  EV_STREAM,      /* stream_net */
  EV_TIMER,       /* timer slot */
  EV_FETCH_START, /* fetch: its streams begin */
  EV_FETCH_NEXT,  /* fetch: the next group of a sequential one */
  EV_FETCH_END,   /* fetch: completion */
  EV_COPY_READY,  /* copy: what it waits for is here */
  EV_COPY_BYTES,  /* copy: overhead over, bytes begin (shared switch) */
  EV_COPY_END,    /* copy: completion */
  EV_COPY_FAILED, /* copy: completion without having begun */
  EV_COMPUTE_READY,
  EV_COMPUTE_FAILED,
  EV_GPU, /* GPU: the next operation ends */
};

#define NONE UINT32_MAX

/* One actor and its world. */
struct port {
  struct world world; /* first: a struct world * is a struct port * */
  struct sim *sim;
  actor_id id;
  int64_t offset;
  const struct actor_ops *ops;
  void *actor;
  gboolean up;
  int64_t born, ended;            /* of a server; ended: while it is not up */
  struct gpu_server_usage at_end; /* of a GPU server that failed or left */
  uint32_t first_gpu;
  uint32_t mail_lane;   /* of its hops */
  link_id network, ssd; /* ingress of a GPU server, egress of a memory server */
  link_id ingress;      /* of a memory server, for moving shards */
};

/* A message under way. */
struct mail {
  int64_t time;
  uint64_t sequence;
  actor_id from, to;
  struct message message;
};

/* Those whose hop takes the same time, in the order sent: a ring. */
struct mail_lane {
  int64_t hop;
  struct mail *mail;
  uint32_t room, first, count;
};

#define MAIL_LANES_MAX                                                                                       \
  (CATALOG_HW_MAX + 1) /* a hop takes the control latency of a GPU server's kind, or a memory server's */

struct sim_timer {
  struct port *port;
  uint64_t tag;
  event_id event;
  uint32_t next, generation;
};

struct sim_fetch {
  struct port *port;
  uint64_t tag, request, window, bytes;
  uint64_t ring, ring_end; /* size, 0: all that is read fits; image's byte up to which groups have begun */
  uint32_t self, next, generation;
  gboolean live, sequential, remote, started;
  gboolean direct; /* into the memory of gpu */
  enum op_status status;
  const struct fetch_plan *plan;
  uint32_t model, gpu, groups, streams, first, left;
  uint32_t lowest;  /* first group not fully here */
  uint32_t pending; /* first group not uploaded */
  uint32_t allowed; /* sequential: the group that may come */
  uint32_t paused_count;
  double next_at; /* sequential: when the group before was here */
  double start;   /* exact time at which the streams begin */
  double last_arrival;
  double landed_at; /* direct: when the groups before `lowest` were all there */
  uint64_t arrived, uploaded;
  uint32_t room_groups, room_slices;
  uint32_t servers[MEMORY_SERVERS_MAX];
  stream_id stream[MEMORY_SERVERS_MAX];
  uint32_t passed[MEMORY_SERVERS_MAX]; /* milestones passed */
  uint32_t milestones[MEMORY_SERVERS_MAX];
  gboolean paused[MEMORY_SERVERS_MAX], stalled[MEMORY_SERVERS_MAX];
  /* by group */
  uint32_t *remaining; /* slices still to come */
  double *byte_time;   /* last slice's last byte, exact */
  double *arrival;     /* with overheads; NaN while not known */
  uint32_t *waiter;    /* list of copies that wait for it; direct: of computes */
  uint8_t *credited;   /* uploaded once */
  /* [streams * groups] */
  uint64_t *slice_end;
  uint32_t *slice_group;
};

struct sim_copy {
  struct port *port;
  struct copy_spec spec;
  uint32_t self, next, generation; /* next: lane, waiters or free list */
  uint32_t lane_next, waiter_next;
  uint32_t dependents, compute_dependents; /* what waits for it */
  uint32_t waits;                          /* conditions not met yet, its place in the lane included */
  gboolean live, failing;
  double ready, start; /* exact */
  uint64_t bytes_end;  /* milestone of its stream */
};

struct sim_compute {
  struct port *port;
  struct compute_spec spec;
  uint32_t self, next, generation, waiter_next;
  gboolean live, waits, failing, cancelled, running;
  double ready, begin; /* exact */
  double work, left;   /* ns at speed 1 */
};

struct lane {
  uint32_t id, first, last;
};

/* One direction of a GPU's PCIe connection: one copy at a time. */
struct engine {
  GArray *lanes;  /* of struct lane */
  GArray *ready;  /* of uint32_t: copies that can begin, in the order in which they could */
  uint32_t busy;  /* copy or NONE */
  double free_at; /* exact */
  link_id link, uplink;
  gboolean shared; /* the uplink carries more than its copies: of other GPUs, or what NICs write */
  stream_id stream;
};

struct gpu_stream {
  uint32_t id, first, last;
  double free_at;
};

struct sim_gpu {
  struct port *port;
  uint32_t global, local;
  const struct hardware *hardware;
  struct engine down, up; /* to the GPU, to the host */
  GArray *streams;        /* of struct gpu_stream */
  GArray *running;        /* of uint32_t: computes */
  uint32_t inference;     /* running, not training */
  event_id event;
  double clock; /* exact time up to which work is accounted */
  double inference_ns, training_ns, any_ns;
};

struct sim {
  const struct config *config;
  struct sim_options options;
  struct event_queue *queue;
  struct stream_net *net;
  int64_t now;
  uint64_t handled;
  gboolean stopped;

  struct mail_lane mail_lane[MAIL_LANES_MAX];
  uint32_t mail_lanes, mail_next; /* next: whose first is the earliest, as last looked up */

  struct port client, controller;
  struct port *server; /* [servers] */
  struct port *memory; /* [memory_servers] */
  struct sim_gpu *gpu; /* [gpus] */
  struct controller *control;
  gboolean *dead_memory;
  double nic, memory_nic, pcie; /* set by events; < 0: the hardware's */
  uint64_t host_cache;          /* set by an event */
  gboolean host_cache_set;
  link_id spine;
  gboolean has_spine;

  GPtrArray *timers, *fetches, *copies, *computes;
  uint32_t free_timer, free_fetch, free_copy, free_compute;
  uint64_t net_bytes, pcie_bytes;
};

extern const struct world_ops sim_world_ops;

/* op_id: kind, generation, index. */
enum sim_op { SIM_FETCH = 1, SIM_COPY, SIM_COMPUTE };
#define OP(kind, generation, index) ((op_id)(kind) << 60 | (op_id)((generation)&0xfffffff) << 32 | (index))
#define OP_KIND(op)                 ((enum sim_op)((op) >> 60))
#define OP_GENERATION(op)           ((uint32_t)((op) >> 32) & 0xfffffff)
#define OP_INDEX(op)                ((uint32_t)(op))

static inline struct sim_fetch *sim_fetch_at(struct sim *sim, uint32_t i)
{
  return g_ptr_array_index(sim->fetches, i);
}

static inline struct sim_copy *sim_copy_at(struct sim *sim, uint32_t i)
{
  return g_ptr_array_index(sim->copies, i);
}

static inline struct sim_compute *sim_compute_at(struct sim *sim, uint32_t i)
{
  return g_ptr_array_index(sim->computes, i);
}

/* The live operation that an id names, NULL if it has ended. */
struct sim_fetch *sim_fetch_by_id(struct sim *sim, op_id op);
struct sim_copy *sim_copy_by_id(struct sim *sim, op_id op);
struct sim_compute *sim_compute_by_id(struct sim *sim, op_id op);

/* sim_mail.c */
void sim_mail_init(struct sim *sim);
void sim_mail_clear(struct sim *sim);
void sim_mail_send(struct port *from, actor_id to, const struct message *message);
/* The next to be delivered, NULL if none is under way; it is the one that sim_mail_take then takes. */
const struct mail *sim_mail_first(struct sim *sim);
struct mail sim_mail_take(struct sim *sim);

/* sim_outside.c */
/* Nothing of the GPU server goes on. */
void sim_server_end(struct sim *sim, struct port *port);

/* sim.c */
void sim_complete(struct port *port, op_id op, const struct completion *completion);
struct port *sim_port(struct sim *sim, actor_id id);
void sim_emit(struct port *port, struct record record);
struct sim_gpu *sim_gpu_of(struct port *port, uint32_t local);
/* The actor comes to be; the caller starts it. */
void sim_server_birth(struct sim *sim, uint32_t index);
void sim_memory_birth(struct sim *sim, uint32_t index);
event_id sim_at(struct sim *sim, double exact_ns, enum sim_event event, uint64_t payload);

/* sim_fetch.c */
op_id sim_fetch_begin(struct port *port, const struct fetch_spec *spec);
void sim_fetch_event(struct sim *sim, enum sim_event event, uint32_t index);
void sim_fetch_milestone(struct sim *sim, uint64_t user, uint32_t milestone, double exact_ns);
/* The copy waits for the group; FALSE: it is there, *ready_ns says since (or until) when. */
gboolean sim_fetch_wait(struct sim *sim, struct sim_fetch *fetch, uint32_t group, struct sim_copy *copy,
                        double *ready_ns);
/* The computation waits for the group of a fetch into GPU memory; FALSE: it is there, *ready_ns as above. One
 * that the fetch does not bring any more fails. */
gboolean sim_fetch_hold(struct sim *sim, struct sim_fetch *fetch, uint32_t group, struct sim_compute *compute,
                        double *ready_ns);
/* A copy of the group has been made. */
void sim_fetch_credit(struct sim *sim, struct sim_fetch *fetch, uint32_t group, double exact_ns);
void sim_fetch_free(struct sim_fetch *fetch);

/* sim_fetch_end.c */
void sim_fetch_cancel(struct sim *sim, struct sim_fetch *fetch);
/* It is over: its actor is told. */
void sim_fetch_end(struct sim *sim, struct sim_fetch *fetch);
void sim_fetch_server_failed(struct sim *sim, uint32_t memory_server);
void sim_fetch_port_failed(struct sim *sim, struct port *port);

/* sim_fetch_flow.c: streams that run ahead are held back */
/* The stream is at the end of a group, or at its start: it goes on with its next group, or pauses. */
void sim_fetch_go_on(struct sim *sim, struct sim_fetch *fetch, uint32_t stream, double exact_ns);
/* More of them may go on. */
void sim_fetch_resume(struct sim *sim, struct sim_fetch *fetch, double exact_ns);
/* Sequential order: the next group may come once the one before is here, and window and ring have room. */
void sim_fetch_allow_next(struct sim *sim, struct sim_fetch *fetch, double exact_ns);

/* sim_copy.c */
op_id sim_copy_begin(struct port *port, const struct copy_spec *spec);
void sim_copy_event(struct sim *sim, enum sim_event event, uint32_t index);
void sim_copy_milestone(struct sim *sim, uint32_t index, double exact_ns);
/* One condition of the copy is met, at ready_ns (exact, may lie ahead). */
void sim_copy_met(struct sim *sim, struct sim_copy *copy, double ready_ns);
void sim_copy_fail(struct sim *sim, struct sim_copy *copy);
void sim_engine_init(struct sim *sim, struct engine *engine, link_id link, link_id uplink, gboolean shared);
void sim_engine_clear(struct engine *engine);

/* sim_gpu.c */
op_id sim_compute_begin(struct port *port, const struct compute_spec *spec);
void sim_compute_event(struct sim *sim, enum sim_event event, uint32_t index);
void sim_compute_met(struct sim *sim, struct sim_compute *compute, double ready_ns);
void sim_compute_fail(struct sim *sim, struct sim_compute *compute);
void sim_compute_cancel(struct sim *sim, struct sim_compute *compute);
/* Its server is dead: nothing of it goes on. */
void sim_gpu_failed(struct sim *sim, struct sim_gpu *gpu);

#endif
