/* A world by hand, for one actor: operations end in a drawn order, timers come when they are due, and time
 * passes by drawn steps. Between it and the actor stands a recorder. */
#ifndef DM_HAND_WORLD_H
#define DM_HAND_WORLD_H

#include "core/config.h"
#include "harness/recorder.h"

struct hand_world;

/* Records into a new file of `name`; run number 1. */
struct hand_world *hand_world_new(const char *name, const struct setup *setup, actor_id self, guint32 seed);
/* The recording is closed and whole; returns its path. */
char *hand_world_close(struct hand_world *w);
struct world *hand_world_seam(struct hand_world *w);
void hand_world_start(struct hand_world *w, const struct actor_ops *ops, void *actor);
void hand_world_say(struct hand_world *w, actor_id from, const struct message *message);
void hand_world_lose(struct hand_world *w, actor_id peer);
/* Lets some time pass, and perhaps one thing happen. */
void hand_world_turn(struct hand_world *w);
GRand *hand_world_random(struct hand_world *w);

#endif
