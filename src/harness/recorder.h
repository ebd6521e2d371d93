/* The recorder: stands between an actor and its world, notes what passes (recording.h), and passes it on. To
 * the actor it is a world, to the world an actor.
 *
 * What it notes goes into a buffer of one block; the file is written by the actor's own thread whenever that
 * is full, and every RECORDING_FLUSH_NS. */
#ifndef DM_RECORDER_H
#define DM_RECORDER_H

#include "harness/recording.h"

struct recorder;

/* world and recording must outlive it. */
struct recorder *recorder_new(struct recording *recording, struct world *world);
/* Begins the part, before anything comes in. run: its number in the cluster. */
void recorder_begin(struct recorder *recorder, const struct setup *setup, uint32_t run, actor_id self);
/* Ends the part. */
void recorder_free(struct recorder *recorder);
/* What the actor gets for a world. */
struct world *recorder_seam(struct recorder *recorder);
/* Where to pass on. */
void recorder_set_actor(struct recorder *recorder, const struct actor_ops *ops, void *actor);
/* What the world and all others get for the actor; the actor itself is the recorder. */
extern const struct actor_ops recorder_actor;

#endif
