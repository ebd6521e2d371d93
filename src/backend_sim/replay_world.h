/* The replaying world: gives an actor the inputs of a recording (harness/recording.h) with the clock that
 * stood then, answers what it does with the ids that it got then, and finds the first thing that it does
 * otherwise.
 *
 * No recording, however wrong, may lead an actor out of the seam's contract: an input must be one that can
 * come (a timer that was set, the end of an operation that was begun, a peer that there may be). */
#ifndef DM_REPLAY_WORLD_H
#define DM_REPLAY_WORLD_H

#include "core/config.h"
#include "harness/recording.h"

struct replay_world;

struct replay_world *replay_world_new(const struct config *config, const struct recording_head *head);
void replay_world_free(struct replay_world *r);
struct world *replay_world_seam(struct replay_world *r);
void replay_world_set_actor(struct replay_world *r, const struct actor_ops *ops, void *actor);

/* Hands the step's input to the actor. FALSE + error without file: DM_ERROR_INPUT: the input is none that can
 * come; DM_ERROR_FAILED: the actor did otherwise. */
gboolean replay_world_step(struct replay_world *r, const struct recorded_step *step, GError **error);
uint64_t replay_world_inputs(const struct replay_world *r);
uint64_t replay_world_outputs(const struct replay_world *r);

#endif
