/* The memories of a watched simulation: each server's host memory, each GPU's, and what lies in them. */
#ifndef DM_MEMORIES_H
#define DM_MEMORIES_H

#include "backend_sim/sim.h"
#include "content.h"

struct memory {
  actor_id actor;
  uint32_t gpu; /* NO_INDEX: host memory */
  uint64_t bytes;
  struct content *content;
};

struct memories;

/* config: as it will be when the simulation starts; must outlive them. */
struct memories *memories_new(const struct config *config);
void memories_free(struct memories *memories);
/* gpu NO_INDEX: host memory. */
struct memory *memories_of(struct memories *memories, actor_id actor, uint32_t gpu);
/* Host memory that is asked for from now on has no end. */
void memories_host_grows(struct memories *memories);

#endif
