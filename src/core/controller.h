/* The controller: admits requests, sends each to a GPU by the balancer's choice, learns from reports, keeps
 * the members of both pools by heartbeat, hands idle GPUs to training and takes them back.
 *
 * An actor of world.h. Owns one slot for each request in the system; a request is answered exactly once. */
#ifndef DM_CONTROLLER_H
#define DM_CONTROLLER_H

#include "core/config.h"
#include "core/outcome.h"
#include "core/world.h"

struct controller;

struct controller *controller_new(const struct config *config, struct world *world);
void controller_free(struct controller *controller);
extern const struct actor_ops controller_actor;

/* Requests admitted and not started, as far as it knows: the queue of the usage series. */
uint64_t controller_queue(const struct controller *controller);
/* Training jobs finished. */
uint64_t controller_jobs_done(const struct controller *controller);
/* Training jobs that have reached it. */
uint64_t controller_jobs_seen(const struct controller *controller);
/* … and are not finished. */
uint64_t controller_jobs_left(const struct controller *controller);

/* Upper bounds of the classes of request times; one class more is open. */
#define LATENCY_BOUNDS 14
extern const int64_t latency_bound_ns[LATENCY_BOUNDS];
/* The class of a time, 0 to LATENCY_BOUNDS. */
uint32_t latency_class(int64_t took_ns);

/* What it counted so far. */
struct controller_usage {
  uint64_t admitted;                    /* requests that came, those that were rejected then included */
  uint64_t outcomes[OUTCOME_COUNT];     /* those answered, by outcome: their sum is at most admitted */
  uint64_t found[FOUND_COUNT];          /* completed ones, by how they found their model */
  uint64_t latency[LATENCY_BOUNDS + 1]; /* completed ones, by time from admission to answer */
  double latency_ns;                    /* sum of those times */
  uint64_t retries;                     /* requests sent again after a failure */
  uint64_t heartbeats_missed;           /* looks at a member that had been silent for two heartbeats */
  uint64_t members_lost;                /* servers given up as silent or broken off */
};
void controller_usage(const struct controller *controller, struct controller_usage *usage);
/* Servers of a pool by enum member_state (cluster_view.h): count[MEMBER_STATES]. pool: ACTOR_GPU_SERVER or
 * ACTOR_MEMORY_SERVER. */
void controller_members(const struct controller *controller, enum actor_kind pool, uint32_t *count);

#endif
