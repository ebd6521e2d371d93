/* Watches a simulation and holds every place that the core names to the rules of world.h, as if the bytes
 * were real:
 * - places lie within the memories of the sizes that the core asks for;
 * - of two operations under way that are not ordered (`after`, a lane, a stream, the fetch that a copy
 * names), none writes bytes that the other reads or writes;
 * - what a copy or a computation reads has been brought there, of that model, byte for byte;
 * - a fetch reads what the memory server named serves, and what is served is there. */
#ifndef DM_PLACE_CHECK_H
#define DM_PLACE_CHECK_H

#include "backend_sim/sim.h"

struct place_check;

/* config: as it will be when the simulation starts; must outlive it. */
struct place_check *place_check_new(const struct config *config);
void place_check_free(struct place_check *check);
const struct sim_watch *place_check_watch(const struct place_check *check);
/* The first rule that was broken, NULL if none was. */
const char *place_check_problem(const struct place_check *check);
/* Host caches will be made larger than at the start: their memory may grow. */
void place_check_host_grows(struct place_check *check);

/* What was watched: so that a test knows that there was something to find. */
struct place_counts {
  uint64_t fetches, copies, computes, fills, served, unserved, rings, broken, direct;
};
struct place_counts place_check_counts(const struct place_check *check);

#endif
