/* The controller: admits requests, sends each to a GPU by the balancer's choice, learns from reports, keeps
 * the members of both pools by heartbeat, hands idle GPUs to training and takes them back.
 *
 * An actor of world.h. Owns one slot for each request in the system; a request is answered exactly once. */
#ifndef DM_CONTROLLER_H
#define DM_CONTROLLER_H

#include "core/config.h"
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

#endif
