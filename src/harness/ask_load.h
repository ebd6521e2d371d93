/* How much of ideal's capacity a trace asks for: the sum of what its rows are expected to take on one GPU,
 * with the models that will be drawn for them (map, select), their tokens or their traced service times.
 *
 * Ideal's capacity is that of the GPUs there at the start, one request at a time on each: the sum over the
 * GPUs of one over the mean time of a request there. */
#ifndef DM_ASK_LOAD_H
#define DM_ASK_LOAD_H

#include "harness/ask.h"

struct ask_load;

struct ask_load *ask_load_new(const struct setup *setup, const struct model_map *map);
void ask_load_free(struct ask_load *load);
void ask_load_add(struct ask_load *load, const struct ask *ask);
/* Part (1 = all) of ideal's capacity that the rows take when they come within span_ns; 0 where span_ns is 0.
 * Names must be ranked. */
double ask_load_part(const struct ask_load *load, double span_ns);

#endif
