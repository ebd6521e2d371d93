/* Shared by the GPU server's files: its state, and what one part calls of another. */
#ifndef DM_GPU_SERVER_INTERNAL_H
#define DM_GPU_SERVER_INTERNAL_H

#include "core/gpu_server.h"

enum task_state { TASK_QUEUED, TASK_SECURED, TASK_RUNNING };

/* A request on its GPU. */
struct task {
  uint64_t id;
  int64_t service_ns, arrived, started;
  uint32_t tag, attempt, model, gpu, stream;
  uint32_t self;                   /* index in the server's tasks */
  uint32_t next;                   /* queue, running list, or free list */
  uint32_t computes;               /* operations under way */
  uint32_t groups_done;            /* groups computed, while its model loads */
  const struct grouping *grouping; /* of the load that it computes behind; NULL: of none */
  enum found found;
  enum task_state state;
  gboolean lost;    /* no copy of its model is left */
  gboolean stalled; /* an operation failed: to go on when the load does */
  gboolean last;    /* computes with everything there: a failure is the device's */
};

/* Bytes on their way into host memory; one network load of a model at a time on a server. Or (direct) into
 * the memory of one GPU, of no use to another; one network load of a model at a time on a GPU. */
struct fetch {
  op_id op;
  uint32_t model, self, next;
  struct plan_ref *plan_ref; /* keeps the plan of the pool; NULL for the SSD */
  const struct fetch_plan *plan;
  enum load_source source;
  uint32_t servers[64];
  uint32_t users;  /* loads that upload from it */
  gboolean direct; /* lands in GPU memory */
  uint32_t load;   /* direct: the load that it is */
  gboolean cached; /* goes into the host cache, else staging */
  uint32_t staging_gpu;
  uint64_t staging_bytes; /* of the ring */
  struct ranges staging;
  gboolean arrived;
  gboolean lost;     /* no copy is left: its loads are being aborted, none may join */
  uint64_t credited; /* bytes uploaded by the user that is furthest; direct: computed on */
};

/* A model on its way onto a GPU. */
struct load {
  uint32_t model, gpu, self, next;
  uint32_t fetch; /* index, NO_INDEX: from the host cache */
  uint32_t lane, groups, uploaded,
      copies; /* uploaded: groups on the GPU, as far as known; copies: under way */
  const struct grouping *grouping;
  op_id *copy; /* [room] of each group */
  uint32_t room;
  uint64_t bytes_uploaded;
  enum load_source source;
  gboolean broken, pins_host;
  uint64_t request;
  int64_t started;
};

enum trainer_state { TRAINER_NONE, TRAINER_LOADING, TRAINER_RUNNING, TRAINER_WAITING, TRAINER_SAVING };

struct trainer {
  enum trainer_state state;
  uint32_t job;
  uint64_t steps; /* of the burst */
  uint64_t lost;
  op_id op;
  gboolean stop; /* inference wants the GPU, or the controller */
};

struct gpu {
  struct tier *memory;  /* NULL: every model is there */
  uint32_t first, last; /* queue of tasks */
  uint32_t unsecured;   /* the first of them that may still have to be secured: none before it has */
  uint32_t running, running_first;
  uint32_t loads_first, loads;
  uint32_t next_lane;
  uint64_t staging_used;
  struct arena *staging; /* its addresses in host memory; NULL where nothing is fetched */
  struct range state;    /* in host memory: the training state while it is not on the GPU */
  int64_t held_since;
  double held_ns;
  struct trainer trainer;
  struct gpu_server *server;
  uint32_t index;
  uint64_t evict_request; /* request on whose behalf models leave now */
  op_id back;     /* last copy of a model back to the host: what comes into its room begins after it */
  uint32_t backs; /* such copies under way; back is 0 when none is */
};

struct plan_ref {
  struct pool_plan *plan;
  uint32_t users;
  gboolean retired;
};

struct gpu_server {
  const struct config *config;
  struct world *world;
  uint32_t index, hw, gpus;
  const struct hardware *hardware;
  struct gpu *gpu;        /* [gpus] */
  struct tier *host;      /* NULL where there is none */
  uint64_t *home;         /* RESIDENCE_HOST: [profiles] address of the first variant; NULL elsewhere */
  uint64_t cache_request; /* request on whose behalf models leave it now, UINT64_MAX: none, it shrinks */
  GPtrArray *tasks, *loads, *fetches; /* slabs: pointers stay valid */
  uint32_t free_task, free_load, free_fetch;
  uint32_t fetch_first; /* list of active fetches */
  uint32_t active_fetches;
  struct plan_ref *plan;
  uint32_t plans_retired;
  uint64_t dead_members; /* memory servers that do not answer */
  uint32_t epoch;
  struct gpu_server_usage usage;
  gboolean report_armed, report_due, leaving;
  int64_t rate_since;
  uint64_t rate_bytes;   /* arrived since then, of fetches that are over */
  uint32_t rate_fetches; /* those fetches */
  double rate;
};

/* Completion tags: what it was, an index, a detail. */
enum tag_kind { TAG_FETCH = 1, TAG_COPY, TAG_COMPUTE, TAG_BACK, TAG_TRAIN_IN, TAG_TRAIN_OUT, TAG_TRAIN };
#define TAG(kind, index, detail)                                                                             \
  ((uint64_t)(kind) << 56 | (uint64_t)((detail)&0xffffff) << 32 | (uint64_t)(index))
#define TAG_KIND(tag)   ((enum tag_kind)((tag) >> 56))
#define TAG_DETAIL(tag) ((uint32_t)((tag) >> 32) & 0xffffff)
#define TAG_INDEX(tag)  ((uint32_t)(tag))
enum server_timer {
  SERVER_TIMER_REPORT = 1,
  SERVER_TIMER_HEARTBEAT,
  SERVER_TIMER_PROCESS,
  SERVER_TIMER_FIRST
};

static inline struct task *task_at(struct gpu_server *s, uint32_t index)
{
  return g_ptr_array_index(s->tasks, index);
}

static inline struct load *load_at(struct gpu_server *s, uint32_t index)
{
  return g_ptr_array_index(s->loads, index);
}

static inline struct fetch *fetch_at(struct gpu_server *s, uint32_t index)
{
  return g_ptr_array_index(s->fetches, index);
}

/* How a missing model gets to a GPU. */
struct loader_ops {
  const char *name;
  /* Begins the load for the task (model absent). FALSE: not now; it is asked again when something ended. */
  gboolean (*begin)(struct gpu_server *s, struct gpu *gpu, struct task *task);
  /* TRUE: computing may begin while the model loads, group by group. */
  gboolean pipelined;
  /* TRUE: the GPU is held from the begin of the load. */
  gboolean holds;
};
extern const struct loader_ops loader_pipeline, loader_stop_and_go, loader_process;

/* Where a model lies in a host memory that holds all of them. */
struct home {
  struct range range;
  struct ranges ranges;
};

/* gpu_places.c */
/* Gives tiers and stagings their addresses. */
void places_init(struct gpu_server *s);
/* RESIDENCE_HOST only: in *home. */
const struct ranges *places_home(const struct gpu_server *s, uint32_t model, struct home *home);

/* gpu_queue.c */
void gpu_queue_add(struct gpu_server *s, const struct message_dispatch *m);
void gpu_queue_revoke(struct gpu_server *s, const struct message_revoke *m);
/* Secures and starts whatever can be. */
void gpu_advance(struct gpu_server *s, struct gpu *gpu);
void gpu_advance_all(struct gpu_server *s);
void gpu_computed(struct gpu_server *s, struct task *task, uint32_t group, enum op_status status);
/* The load of the model goes on after a failure: stalled tasks too. */
void gpu_resume_tasks(struct gpu_server *s, struct gpu *gpu, struct load *load);
/* Requests for the model have groups under way. */
gboolean gpu_computes(struct gpu_server *s, const struct gpu *gpu, uint32_t model);
/* The model cannot be had: its tasks on the GPU fail. */
void gpu_fail_tasks(struct gpu_server *s, struct gpu *gpu, uint32_t model);
struct load *gpu_find_load(struct gpu_server *s, struct gpu *gpu, uint32_t model);
/* A load has brought the model. */
void gpu_loaded(struct gpu_server *s, struct gpu *gpu, uint32_t model);

/* gpu_compute.c */
/* The groups that are not computed yet, each after its upload. load: NULL once every group is there. */
void gpu_compute_groups(struct gpu_server *s, struct task *task, const struct grouping *grouping,
                        const struct load *load);
void gpu_compute_resident(struct gpu_server *s, struct task *task);

/* gpu_load.c */
struct load *load_new(struct gpu_server *s, struct gpu *gpu, struct task *task, enum load_source source,
                      const struct grouping *grouping);
void load_copied(struct gpu_server *s, struct load *load, uint32_t group, enum op_status status);
/* The model is on the GPU. */
void load_finish(struct gpu_server *s, struct load *load);
void load_abort(struct gpu_server *s, struct load *load);
/* It broke: what it lacks is brought anew, or it is aborted, once nothing of it is under way. */
void load_mend(struct gpu_server *s, struct load *load);
/* Uploads groups from first on, each after its arrival; nothing where its fetch brings them to the GPU. */
void load_upload(struct gpu_server *s, struct load *load, uint32_t first);
/* Lets the computation begin once the group is on the GPU. load NULL: it is. */
void load_order(struct gpu_server *s, const struct load *load, struct compute_spec *spec);
/* So many groups of the model have been computed on while it is loaded. */
void load_computed(struct gpu_server *s, struct gpu *gpu, uint32_t model, uint32_t groups);
/* Its fetch, which brings it straight to the GPU, has ended: on the GPU are `groups` groups. */
void load_landed(struct gpu_server *s, struct load *load, uint32_t groups);

/* gpu_fetch.c */
struct fetch *fetch_find(struct gpu_server *s, uint32_t model);
/* FALSE: its bytes are freed as they are uploaded, and cannot serve a second GPU. */
gboolean fetch_joinable(const struct fetch *fetch);
/* Where in host memory it puts the model, and the bytes of that ring. */
const struct ranges *fetch_place(const struct gpu_server *s, const struct fetch *fetch, uint64_t *ring_bytes);
/* FALSE: no room for it now. *lost is set where no server has a part of it. One that lands in GPU memory is
 * only made: fetch_land begins it, once there is room on the GPU. */
gboolean fetch_begin(struct gpu_server *s, struct gpu *gpu, struct task *task, enum load_source source,
                     struct fetch **out, gboolean *lost);
void fetch_land(struct gpu_server *s, struct fetch *fetch, const struct gpu *gpu, const struct load *load);
void fetch_release(struct gpu_server *s, struct fetch *fetch);
void fetch_ended(struct gpu_server *s, struct fetch *fetch, const struct completion *completion);
/* Reads from another copy what a broken fetch did not bring, once its loads are quiet; aborts them where none
 * is left. */
void fetch_mend(struct gpu_server *s, struct fetch *fetch);
void fetch_member(struct gpu_server *s, const struct message_member *m);
void fetch_plan_changed(struct gpu_server *s, const struct message_plan *m);
/* Something that the controller weighs has changed. */
void fetch_report(struct gpu_server *s);
void fetch_report_timer(struct gpu_server *s);

/* loader_process.c: the next phase of a start. */
void process_timer(struct gpu_server *s, enum server_timer timer, uint32_t load);
void process_copied(struct gpu_server *s, struct load *load);
/* loader_stop_and_go.c: a model that must leave is copied back first. */
void stop_and_go_evicted(struct gpu_server *s, struct gpu *gpu, uint32_t model);

/* gpu_training.c */
void trainer_train(struct gpu_server *s, const struct message_train *m);
/* Inference wants the GPU: the trainer gives way. */
void trainer_yield(struct gpu_server *s, struct gpu *gpu);
/* A trainer computes, or its step ends: requests wait. */
gboolean trainer_blocks(const struct gpu_server *s, const struct gpu *gpu);
void trainer_copied(struct gpu_server *s, struct gpu *gpu, gboolean in);
void trainer_stepped(struct gpu_server *s, struct gpu *gpu, const struct completion *completion);

/* gpu_server.c */
void server_tell_state(struct gpu_server *s, uint32_t gpu, uint32_t model, enum tier_state state);
void server_record(struct gpu_server *s, struct record record);
void server_send(struct gpu_server *s, const struct message *m);

#endif
