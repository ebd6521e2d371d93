/* An experiment: everything that a run of one or more systems is told, typed and in base units.
 *
 * experiment_load reads the file, the hardware and event lines, applies --set and [system X] overrides and
 * checks every value; one struct experiment is the settings of ONE system. Owned by the caller; strings are
 * owned by the struct. The schema (section, key, type, unit, default, help) is one table in
 * experiment_schema.c, which --print-config prints. A later source wins over an earlier one, key by key: the
 * default, the file, its [system X], --set. */
#ifndef DM_EXPERIMENT_H
#define DM_EXPERIMENT_H

#include <glib.h>
#include "core/grouping.h"
#include "core/hardware.h"
#include "core/sharding.h"

#define EXPERIMENT_POOLS_MAX CATALOG_HW_MAX

enum workload_kind { WORKLOAD_TRACE, WORKLOAD_POISSON, WORKLOAD_GAMMA, WORKLOAD_CLOSED, WORKLOAD_SHIFTING };
enum select_kind { SELECT_ZIPF, SELECT_LOOP };
enum map_kind { MAP_ZIPF, MAP_HASH, MAP_NAME };
enum cache_kind { CACHE_WEIGHTED, CACHE_LRU };
enum fetch_order { ORDER_PARALLEL, ORDER_SEQUENTIAL };
enum yield_kind { YIELD_LAYER, YIELD_STEP };
enum member_kind { MEMBER_GPU_SERVER, MEMBER_MEMORY_SERVER };
enum event_kind { EVENT_FAIL, EVENT_REMOVE, EVENT_ADD, EVENT_SET };

/* `2*h200` of gpu_servers: count servers of one hardware file. */
struct server_pool {
  uint32_t count;
  uint32_t hw; /* index into experiment.hardware */
};

/* One entry of `active = 8:8;8:16`: seconds, then slots that send. */
struct active_phase {
  int64_t duration_ns;
  uint32_t slots;
};

struct model_set {
  char *profile;
  uint32_t variants;
  unsigned line; /* of the experiment file, for messages */
};

/* One line of [events]. */
struct experiment_event {
  char *name;
  int64_t at_ns;
  enum event_kind kind;
  enum member_kind member; /* fail, remove, add */
  uint32_t number;         /* index of fail and remove, count of add */
  uint32_t hw;             /* of add gpu_server */
  char *key;    /* of set: one of cluster.nic_gbit_s, cluster.memory_nic_gbit_s, cluster.pcie_gbyte_s,
                   cluster.host_cache_gb */
  double value; /* of set, in the key's own unit */
};

struct experiment {
  char *path;      /* of the file */
  char *text;      /* whole file as read, for the result database */
  char *overrides; /* "--set" texts joined by newlines, "" if none */
  char *name;
  uint64_t seed;
  char **systems; /* NULL-terminated, in the order asked for */
  char *system;   /* the one these settings are for */
  int64_t warmup_ns;
  gboolean warm; /* initial = warm */

  struct hardware hardware[EXPERIMENT_POOLS_MAX]; /* distinct GPU server kinds, [cluster] overrides applied */
  char *profile_dir[EXPERIMENT_POOLS_MAX];        /* folder of each kind's profiles */
  uint32_t hardware_count;
  struct server_pool pool[EXPERIMENT_POOLS_MAX]; /* in the order written: server 0.. are pool 0's */
  uint32_t pools;
  struct hardware memory_hardware;
  uint32_t gpus_per_server; /* 0 = each hardware's own */
  uint32_t memory_servers;
  uint64_t host_cache_bytes;
  int64_t staging_bytes;    /* -1 = the largest model of the run */
  uint64_t gpu_model_bytes; /* 0 = the hardware's gpu_memory_gb */
  uint32_t gpu_models_max;
  int64_t heartbeat_ns; /* 0 = none */
  uint32_t heartbeat_misses;
  int64_t report_ns;
  uint32_t ssd_copies;

  struct model_set *model;
  uint32_t models;

  enum workload_kind workload;
  char *trace;        /* resolved path */
  char *trace_format; /* "auto" or a reader's name */
  double speedup;
  double load; /* of ideal's capacity; 0 = as it is */
  enum map_kind map;
  uint64_t limit; /* rows; 0 = all */
  gboolean service_from_trace;
  double zipf;
  enum select_kind select;
  int64_t shift_period_ns;     /* 0 = never */
  struct active_phase *active; /* active_phases = 0: all slots, always */
  uint32_t active_phases;
  uint32_t outstanding; /* 0 = one client a slot (shifting) */
  int64_t duration_ns;  /* 0 = a trace's end */
  double rate_rps, cv;
  int64_t timeout_ns;
  uint32_t max_queue;

  char *balancer; /* name in the balancer registry, or NULL: the system's own */
  gboolean cache_set;
  enum cache_kind cache;
  gboolean grouping_set;
  struct grouping_policy grouping;
  gboolean sharding_set;
  enum sharding_kind sharding;
  enum fetch_order order;
  uint64_t window_bytes; /* 0 = unbounded */
  uint32_t replicas;
  gboolean gpudirect;

  char *train_model;     /* NULL = no training without a job trace */
  int64_t train_step_ns; /* batch_ms: one step alone on the GPU */
  uint64_t train_state_bytes;
  gboolean yield_set;
  enum yield_kind yield;
  char *train_trace; /* resolved path of a job trace, or NULL */
  char *train_trace_format;

  double slo_multiple; /* of the model's warm latency; 0 = unused */
  int64_t slo_ns;      /* absolute; 0 = unused */

  struct experiment_event *event; /* in order of time, then of the file */
  uint32_t events;

  char *requests;           /* all | none | sample */
  uint64_t requests_sample; /* every N-th request stored; 1 = all, 0 = none */
  gboolean decisions;
  gboolean usage; /* store the usage time series */
  char *timeline; /* path or NULL */
  int64_t timeline_from_ns, timeline_to_ns;
};

/* Reads path, or where that is not there, the shipped file of that name (resolve_path). system: whose
 * settings ("" = before any [system X]; the list of systems is in ->systems, and the settings of each of them
 * are checked too). sets: NULL-terminated "section.key=value" texts, applied last; may be NULL. NULL +
 * DM_ERROR_INPUT. */
struct experiment *experiment_load(const char *path, const char *system, char **sets, GError **error);
void experiment_free(struct experiment *experiment);
typedef struct experiment Experiment; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Experiment, experiment_free)

/* The full resolved configuration with each value's source (file:line, default, --set), as `--print-config`
 * shows. */
char *experiment_print_config(const char *path, const char *system, char **sets, GError **error);

/* Reads one hardware file; name is a bare name (experiments/hardware/NAME.ini) or a path. */
gboolean hardware_load(const char *name, const char *near_file, struct hardware *hardware, GError **error);

/* Resolves a name as the design says: the folder of near_file, the working directory, the source tree,
 * $PREFIX/share/distmind. Returns a path that exists, or NULL. */
char *resolve_path(const char *name, const char *near_file);

#endif
