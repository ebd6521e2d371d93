/* Shifting demand: slots that each ask for one variant; every period one slot, in turn, draws a new one by
 * Zipf. A function of experiment and seed alone, in both worlds, however late it is asked. */
#ifndef DM_DEMAND_H
#define DM_DEMAND_H

#include "harness/setup.h"

struct demand;

struct demand *demand_new(const struct setup *setup, uint32_t slots);
void demand_free(struct demand *demand);
/* The model that a slot asks for at a time; times must not decrease. */
uint32_t demand_model(struct demand *demand, uint32_t slot, int64_t at_ns);
/* Slots that send at a time, and (in *until_ns) until when that holds; TIME_NEVER = for ever. */
uint32_t demand_active(const struct demand *demand, int64_t at_ns, int64_t *until_ns);

#endif
