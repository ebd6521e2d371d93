/* What the controller believes of the cluster: from its own dispatches and from what servers reported,
 * nothing else.
 *
 * For each GPU: when it will be free (a forecast, corrected by every completion) and which models it will
 * hold once everything sent to it has run: a shadow of its memory, kept with the same tier policy. For each
 * GPU server: its host cache and link use as last reported. Times are the controller's clock in ns. */
#ifndef DM_CLUSTER_VIEW_H
#define DM_CLUSTER_VIEW_H

#include "core/config.h"
#include "core/world.h"

enum member_state { MEMBER_ABSENT, MEMBER_UP, MEMBER_LEAVING, MEMBER_LOST, MEMBER_STATES };

struct cluster_view;

struct shadow_owner {
  struct cluster_view *view;
  uint32_t gpu;
};

struct gpu_view {
  uint32_t server, hw;
  uint32_t outstanding;  /* requests sent and not yet answered */
  double work_ns;        /* their compute time */
  int64_t load_until;    /* forecast end of its loads */
  int64_t last_dispatch; /* INT64_MIN: none yet */
  int64_t shift;         /* sum of the corrections of free_at */
  uint32_t first, last;  /* outstanding requests in order of dispatch (tags), NO_INDEX = none */
  gboolean training;     /* a trainer has it */
  gboolean saving;       /* it was told to stop and has not said that it did */
  struct tier *shadow;   /* NULL where every GPU holds every model */
  struct shadow_owner owner;
};

struct server_view {
  enum member_state state;
  uint32_t epoch;
  int64_t last_heard;
  uint64_t net_left; /* bytes still to come, as reported, and sent for since */
  uint32_t fetches;  /* loads that share the link */
  double net_rate;   /* achieved while fetching; 0 = none reported */
};

struct cluster_view {
  const struct config *config;
  uint32_t gpus, gpu_words, server_words;
  int64_t *free_at;           /* [gpus] end of all that was sent; TIME_NEVER: not to be used */
  struct gpu_view *gpu;       /* [gpus] */
  struct server_view *server; /* [servers] */
  uint64_t *holds;            /* [models * gpu_words] will be on the GPU */
  uint64_t *ready;            /* [models * gpu_words] is on the GPU, as reported */
  uint64_t *coming;           /* [models * server_words] the server fetches it, by what was sent there */
  uint64_t *cached;           /* [models * server_words] in the host cache, as reported */
  uint32_t up_gpus;
  uint32_t turn;                        /* round robin */
  uint32_t concurrency[CATALOG_HW_MAX]; /* requests that one GPU of each kind runs at once */
  double *speed;                        /* [hw] total speed at that concurrency */
  int64_t hop_ns[CATALOG_HW_MAX];       /* control latency to a server of each kind */
};

/* What is weighed for one GPU. */
struct forecast {
  int64_t finish_ns; /* absolute */
  int64_t wait_ns;   /* from now until the GPU is free */
  int64_t load_ns;   /* load and compute, or compute alone */
  int64_t loaded_ns; /* absolute end of the load, where one is needed */
  enum record_reason reason;
  enum load_source source; /* of a load; LOAD_SOURCES = none needed */
};

struct cluster_view *cluster_view_new(const struct config *config);
void cluster_view_free(struct cluster_view *view);
/* A server's GPUs come with empty memories / are not to be used any more. */
void cluster_view_up(struct cluster_view *view, uint32_t server, int64_t now);
void cluster_view_down(struct cluster_view *view, uint32_t server, enum member_state state);

/* Compute time of a request on a GPU that has the model. service_ns 0 = the profile's. */
double cluster_view_service_ns(const struct cluster_view *view, uint32_t gpu, uint32_t model,
                               int64_t service_ns);
void cluster_view_forecast(const struct cluster_view *view, uint32_t gpu, uint32_t model, int64_t service_ns,
                           int64_t now, struct forecast *forecast);
/* Bytes that would leave the GPU's memory for the model; 0 if it is there. */
uint64_t cluster_view_evicts(const struct cluster_view *view, uint32_t gpu, uint32_t model);

/* Books a dispatch; returns the forecast end that free_at now holds. */
int64_t cluster_view_dispatch(struct cluster_view *view, uint32_t gpu, uint32_t model,
                              const struct forecast *forecast, double service_ns, int64_t now);
/* Corrects by what really happened: predicted and shift as they were at the dispatch; ended_ns: now. */
void cluster_view_done(struct cluster_view *view, uint32_t gpu, uint32_t model, double service_ns,
                       int64_t predicted, int64_t shift, int64_t now);
void cluster_view_model_state(struct cluster_view *view, uint32_t server,
                              const struct message_model_state *state, gboolean wanted, int64_t now);
void cluster_view_report(struct cluster_view *view, uint32_t server, const struct message_report *report);

static inline gboolean bit_get(const uint64_t *words, uint32_t bit)
{
  return words[bit / 64] >> (bit % 64) & 1;
}

static inline void bit_set(uint64_t *words, uint32_t bit, gboolean value)
{
  uint64_t mask = 1ULL << (bit % 64);
  words[bit / 64] = value ? words[bit / 64] | mask : words[bit / 64] & ~mask;
}

static inline uint64_t *view_holds(const struct cluster_view *view, uint32_t model)
{
  return view->holds + (size_t)model * view->gpu_words;
}

#endif
