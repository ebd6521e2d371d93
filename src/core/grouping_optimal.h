/* The cut of least predicted latency: the search behind GROUPING_OPTIMAL. Private to grouping.c and its
 * tests. */
#ifndef DM_GROUPING_OPTIMAL_H
#define DM_GROUPING_OPTIMAL_H

#include "core/grouping.h"

/* Up to here every layer boundary may be a cut; of longer models only every second, third … boundary may. */
#define OPTIMAL_LAYERS_MAX 2048

/* Writes the first layers of the groups whose grouping_latency_ns on path is least (ties: fewest groups, then
 * lexicographically smallest) to first_layer[profile->layers + 1], closed by the number of layers; returns
 * their number. */
uint32_t grouping_optimal(const struct profile *profile, uint32_t hw, const struct load_path *path,
                          uint32_t *first_layer);

#endif
