/* A serving system: a composition of parts, not a fork of the code. One file each, one line in the registry.
 */
#ifndef DM_SYSTEM_H
#define DM_SYSTEM_H

#include "core/grouping.h"
#include "core/sharding.h"

/* Where models are found. */
enum residence {
  RESIDENCE_EVERYWHERE, /* on every GPU, memory unbounded: the bounds */
  RESIDENCE_POOL,       /* memory pool, host cache, GPU memory */
  RESIDENCE_HOST,       /* every server's host memory holds all models; GPU memory */
  RESIDENCE_PROCESS,    /* processes on GPUs; nothing else is kept */
  RESIDENCE_SSD,        /* local SSD of some servers, host cache, GPU memory */
};

/* How a GPU is shared by requests. */
enum gpu_sharing {
  SHARING_EXCLUSIVE, /* one request at a time */
  SHARING_BEST,      /* as many at once as the speed-up table pays for */
  SHARING_PROCESS,   /* each process one at a time, processes side by side */
};

struct loader_ops;

struct system {
  const char *name;
  const char *summary;           /* a line of --help */
  const char *balancer;          /* its own choice, where the experiment says nothing */
  const char *balancer_shifting; /* the same under shifting demand; NULL = balancer */
  enum residence residence;
  enum gpu_sharing sharing;
  const struct loader_ops *loader; /* how a missing model gets to a GPU; NULL: never missing */
  const char *host_policy;         /* tier policy of the host cache */
  struct grouping_policy grouping;
  enum sharding_kind sharding;
  gboolean pipelined;        /* loads overlap with compute, group by group */
  gboolean bound;            /* a bound on what can be had, not a competitor */
  gboolean yield_layer;      /* its trainer gives way at a layer boundary, else at the end of the step */
  gboolean proxy;            /* requests pass an HTTP proxy (ray_proxy_us) */
  uint32_t needs;            /* enum world_capability bits */
  const char *constants[12]; /* hardware keys that act on it, printed under the table; NULL-terminated */
};

const struct system *system_by_name(const char *name);
/* NULL-terminated, in the order of the design's table. */
const struct system *const *systems(void);

#endif
