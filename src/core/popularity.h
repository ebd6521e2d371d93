/* Popularity: how often each model was used lately, as a decayed count.
 *
 * A use adds 1; the count halves every POPULARITY_HALF_LIFE_NS. It decays in POPULARITY_STEPS equal steps a
 * half-life, on one grid for all models that starts at the first use of any, so that only differences of time
 * matter and two models' order never changes by waiting. Decay multiplies by constants, so the same build
 * gives the same bits everywhere. */
#ifndef DM_POPULARITY_H
#define DM_POPULARITY_H

#include <glib.h>
#include "core/units.h"

#define POPULARITY_HALF_LIFE_NS (60 * NS_PER_S)
#define POPULARITY_STEPS        8

struct popularity;

struct popularity *popularity_new(uint32_t models);
void popularity_free(struct popularity *popularity);
/* Counts one use. Time that goes back counts as standing still. */
void popularity_use(struct popularity *popularity, uint32_t model, int64_t now_ns);
/* Uses of model, decayed to now. */
double popularity_count(const struct popularity *popularity, uint32_t model, int64_t now_ns);

#endif
