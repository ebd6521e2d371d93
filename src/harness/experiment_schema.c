/* The table of all keys of an experiment; see experiment_schema.h. */
#include "harness/experiment_schema.h"

#include "harness/experiment_values.h"

const char *const experiment_sections[] = {"experiment", "cluster", "models",   "workload",
                                           "balancing",  "cache",   "pipeline", "training",
                                           "slo",        "events",  "output",   NULL};

const char *const experiment_systems[] = {"ideal", "ideal-shared", "distmind",      "pipeswitch",
                                          "mps",   "ray",          "serverlessllm", NULL};

static const char *const initials[] = {"cold", "warm", NULL};
static const char *const workload_kinds[] = {"trace", "poisson", "gamma", "closed", "shifting", NULL};
static const char *const selects[] = {"zipf", "loop", NULL};
static const char *const maps[] = {"zipf", "hash", "name", NULL};
static const char *const services[] = {"profile", "trace", NULL};
static const char *const orders[] = {"parallel", "sequential", NULL};
static const char *const load_paths[] = {"host", "gpudirect", NULL};
static const char *const none_or_all[] = {"none", "all", NULL};

#define AT(field)    offsetof(struct draft, experiment.field)
#define DRAFT(field) offsetof(struct draft, field)
#define GB           ((double)BYTES_PER_GB)
#define MB           ((double)BYTES_PER_MB)
#define S            ((double)NS_PER_S)
#define MS           ((double)NS_PER_MS)
#define SECONDS_MAX  1e9
#define U32_MAX      4294967295.0
#define U64_MAX      18446744073709551615.0
#define ROW(section_, key_, kind_, ...)                                                                      \
  {                                                                                                          \
    .section = section_, .key = key_, .kind = SETTING_##kind_, __VA_ARGS__                                   \
  }
#define TEXT(field)         .offset = field, .unit = ""
#define CHOICE(field, list) .offset = AT(field), .choices = list, .unit = ""
#define CUSTOM(function)    .custom = function, .unit = ""
#define NUMBER(field, scale_, min_, max_, unit_)                                                             \
  .offset = AT(field), .scale = scale_, .min = min_, .max = max_, .unit = unit_
#define DEFAULT(text, about) .fallback = text, .help = about

const struct setting experiment_settings[] = {
    ROW("experiment", "name", CUSTOM, CUSTOM(name_apply),
        DEFAULT("none", "shown in tables and stored; default: the file's name")),
    ROW("experiment", "seed", UINT64, NUMBER(seed, 1, 0, U64_MAX, ""), DEFAULT("1", "of every random draw")),
    ROW("experiment", "systems", CUSTOM, CUSTOM(systems_apply),
        DEFAULT("ideal;distmind;pipeswitch;mps;ray", "to compare, in this order")),
    ROW("experiment", "warmup_s", TIME, NUMBER(warmup_ns, S, 0, SECONDS_MAX, "s"),
        DEFAULT("0", "figures cover arrivals in [warmup_s, duration_s]")),
    ROW("experiment", "initial", CHOICE, CHOICE(warm, initials),
        DEFAULT("warm", "warm: tiers filled to each system's own limits, most popular first; or cold")),

    ROW("cluster", "hardware", TEXT, TEXT(DRAFT(hardware)),
        DEFAULT(
            "p3dn",
            "of the GPU servers: experiments/hardware/NAME.ini or a path; any key of it may stand here too")),
    ROW("cluster", "memory_hardware", TEXT, TEXT(DRAFT(memory_hardware)),
        DEFAULT("same", "of the memory servers; same: as the first GPU servers")),
    ROW("cluster", "gpu_servers", TEXT, TEXT(DRAFT(gpu_servers)),
        DEFAULT("1", "how many, or COUNT*HARDWARE;COUNT*HARDWARE")),
    ROW("cluster", "gpus_per_server", UINT32, NUMBER(gpus_per_server, 1, 0, 64, ""),
        DEFAULT("0", "0: as the hardware has")),
    ROW("cluster", "memory_servers", UINT32, NUMBER(memory_servers, 1, 0, EXPERIMENT_SERVERS_MAX, ""),
        DEFAULT("1", "servers of the memory pool")),
    ROW("cluster", "host_cache_gb", BYTES, NUMBER(host_cache_bytes, GB, 0, 1e6, "GB"),
        DEFAULT("0", "whole models cached in each GPU server's memory; 0 = no cache")),
    ROW("cluster", "staging_gb", CUSTOM, CUSTOM(staging_apply), .scale = GB, .max = 1e6,
        DEFAULT("largest", "GB a GPU through which uncached loads stream; largest: the run's largest model")),
    ROW("cluster", "gpu_model_gb", BYTES, NUMBER(gpu_model_bytes, GB, 0, 1e6, "GB"),
        DEFAULT("0", "of models resident on one GPU; 0: its gpu_memory_gb")),
    ROW("cluster", "gpu_models_max", UINT32, NUMBER(gpu_models_max, 1, 0, EXPERIMENT_MODELS_MAX, ""),
        DEFAULT("0", "models resident on one GPU; 0 = no limit")),
    ROW("cluster", "heartbeat_ms", TIME, NUMBER(heartbeat_ns, MS, 0, 1e9, "ms"),
        DEFAULT("100", "between heartbeats; 0 = none")),
    ROW("cluster", "heartbeat_misses", UINT32, NUMBER(heartbeat_misses, 1, 1, 1000, ""),
        DEFAULT("3", "missed in a row: the server is lost")),
    ROW("cluster", "report_ms", TIME, NUMBER(report_ns, MS, 0, 1e9, "ms"),
        DEFAULT("10", "between reports of link use; 0 = none")),
    ROW("cluster", "ssd_copies", UINT32, NUMBER(ssd_copies, 1, 1, EXPERIMENT_SERVERS_MAX, ""),
        DEFAULT("1", "servers whose SSD holds a model (serverlessllm)")),

    ROW("models", "profile_dir", TEXT, TEXT(DRAFT(profile_dir)),
        DEFAULT("none", "folder of profiles; none: experiments/profiles/GPU of each hardware. Other keys: "
                        "PROFILE = VARIANTS")),

    ROW("workload", "kind", CHOICE, CHOICE(workload, workload_kinds),
        DEFAULT("poisson", "trace | poisson | gamma | closed | shifting")),
    ROW("workload", "trace", TEXT, TEXT(AT(trace)), DEFAULT("none", "trace: the file")),
    ROW("workload", "format", TEXT, TEXT(AT(trace_format)),
        DEFAULT("auto", "trace: its layout, auto: by its first lines")),
    ROW("workload", "speedup", REAL, NUMBER(speedup, 1, 1e-6, 1e9, ""),
        DEFAULT("1", "trace: divides the times between arrivals")),
    ROW("workload", "load", REAL, NUMBER(load, 1, 0, 100, ""),
        DEFAULT("0", "trace: of ideal's capacity, by overlaying copies with seeded offsets; 0 = as traced")),
    ROW("workload", "map", CHOICE, CHOICE(map, maps),
        DEFAULT("zipf",
                "trace: names that are no model draw by popularity, rank by row count, or must match")),
    ROW("workload", "limit", UINT64, NUMBER(limit, 1, 0, U64_MAX, ""),
        DEFAULT("0", "trace: rows read; 0 = all")),
    ROW("workload", "service", CHOICE, CHOICE(service_from_trace, services),
        DEFAULT("profile", "trace: compute time from the profile or the trace's service_s")),
    ROW("workload", "zipf", REAL, NUMBER(zipf, 1, 0, 100, ""),
        DEFAULT("0.9", "popularity exponent over the variants")),
    ROW("workload", "select", CHOICE, CHOICE(select, selects),
        DEFAULT("zipf", "models drawn by popularity or in a loop")),
    ROW("workload", "shift_period_s", TIME, NUMBER(shift_period_ns, S, 0, SECONDS_MAX, "s"),
        DEFAULT("1", "shifting: one slot after the other draws a new model; 0 = never")),
    ROW("workload", "active", CUSTOM, CUSTOM(active_apply),
        DEFAULT("all", "shifting: slots that send; all, or SECONDS:SLOTS;... repeated")),
    ROW("workload", "outstanding", CUSTOM, CUSTOM(outstanding_apply),
        DEFAULT("auto", "closed, shifting: clients with one request in flight each; auto: 1, or one a slot")),
    ROW("workload", "duration_s", TIME, NUMBER(duration_ns, S, 0, SECONDS_MAX, "s"),
        DEFAULT("60", "no arrival after it; 0 = a trace's end")),
    ROW("workload", "rate_rps", REAL, NUMBER(rate_rps, 1, 0, 1e9, "1/s"),
        DEFAULT("0", "poisson, gamma: mean arrivals a second")),
    ROW("workload", "cv", REAL, NUMBER(cv, 1, 1e-3, 1e3, ""),
        DEFAULT("1", "gamma: coefficient of variation of the gaps")),
    ROW("workload", "timeout_s", TIME, NUMBER(timeout_ns, S, 0, SECONDS_MAX, "s"),
        DEFAULT("0", "of a request; 0 = never")),
    ROW("workload", "max_queue", UINT32, NUMBER(max_queue, 1, 0, U32_MAX, ""),
        DEFAULT("0", "waiting requests beyond which new ones are rejected; 0 = no limit")),

    ROW("balancing", "policy", CUSTOM, CUSTOM(balancer_apply),
        DEFAULT("default", "default: the system's own; cache_aware | least_loaded | round_robin | ...")),
    ROW("cache", "policy", CUSTOM, CUSTOM(cache_apply),
        DEFAULT("default", "default: the system's own; weighted | lru")),
    ROW("pipeline", "grouping", CUSTOM, CUSTOM(grouping_apply),
        DEFAULT("default", "default | per-layer | fixed:BYTES | count:N | per-app | optimal")),
    ROW("pipeline", "sharding", CUSTOM, CUSTOM(sharding_apply),
        DEFAULT("default", "default | per-app | horizontal | vertical | hybrid")),
    ROW("pipeline", "order", CHOICE, CHOICE(order, orders),
        DEFAULT("parallel", "streams of a load at once, or group after group")),
    ROW("pipeline", "window_mb", BYTES, NUMBER(window_bytes, MB, 0, 1e9, "MB"),
        DEFAULT("0", "arrived bytes waiting for PCIe at which a stream pauses; 0 = unbounded; nothing waits "
                     "where path = gpudirect")),
    ROW("pipeline", "replicas", UINT32, NUMBER(replicas, 1, 1, EXPERIMENT_SERVERS_MAX, ""),
        DEFAULT("1", "copies of each shard")),
    ROW("pipeline", "path", CHOICE, CHOICE(gpudirect, load_paths),
        DEFAULT("host",
                "loads from the memory pool go through host memory, or gpudirect: NICs write them into "
                "GPU memory")),

    ROW("training", "model", TEXT, TEXT(AT(train_model)),
        DEFAULT("none", "profile that trains on GPUs without requests")),
    ROW("training", "batch_ms", TIME, NUMBER(train_step_ns, MS, 0, 1e9, "ms"),
        DEFAULT("0", "one step alone on the GPU")),
    ROW("training", "state_gb", BYTES, NUMBER(train_state_bytes, GB, 0, 1e6, "GB"),
        DEFAULT("0", "copied over PCIe when training gives the GPU back")),
    ROW("training", "yield", CUSTOM, CUSTOM(yield_apply),
        DEFAULT("default", "default: as the system can; layer | step")),
    ROW("training", "trace", TEXT, TEXT(AT(train_trace)), DEFAULT("none", "file of training jobs")),
    ROW("training", "format", TEXT, TEXT(AT(train_trace_format)), DEFAULT("auto", "its layout")),

    ROW("slo", "multiple", REAL, NUMBER(slo_multiple, 1, 0, 1e6, ""),
        DEFAULT("5", "of the model's warm latency")),
    ROW("slo", "absolute_ms", TIME, NUMBER(slo_ns, MS, 0, 1e12, "ms"),
        DEFAULT("0", "above 0: takes the place of multiple")),

    ROW("output", "requests", CUSTOM, CUSTOM(requests_apply),
        DEFAULT("all", "stored: all | sample:N | none")),
    ROW("output", "decisions", CHOICE, CHOICE(decisions, none_or_all),
        DEFAULT("none", "stored reasons of dispatches, loads, evictions, preemptions: all | none")),
    ROW("output", "usage", CHOICE, CHOICE(usage, none_or_all),
        DEFAULT("all", "stored time series: all | none")),
    ROW("output", "timeline", TEXT, TEXT(AT(timeline)), DEFAULT("none", "FILE.json of Chrome trace events")),
    ROW("output", "timeline_from_s", TIME, NUMBER(timeline_from_ns, S, 0, SECONDS_MAX, "s"),
        DEFAULT("0", "first time in it")),
    ROW("output", "timeline_to_s", TIME, NUMBER(timeline_to_ns, S, 0, SECONDS_MAX, "s"),
        DEFAULT("0", "last time in it; 0 = the end")),
    {.key = NULL}};
