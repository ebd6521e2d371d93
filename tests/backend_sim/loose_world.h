/* A world for one GPU server in which everything that world.h leaves open goes by chance: what is ready ends
 * in any order, a fetch is told to have ended long after its last group or before the copies that it fails,
 * the rest of a lane fails with a copy or does not. Stricter than any real backend; has no time. */
#ifndef DM_LOOSE_WORLD_H
#define DM_LOOSE_WORLD_H

#include "place_check.h"

struct loose_world;

/* check hears of all that is asked; done is called for every DONE. Operations fail by themselves once in
 * `fails` (0 = never). */
struct loose_world *loose_world_new(const struct config *config, struct place_check *check, GRand *rand,
                                    uint32_t fails,
                                    void (*done)(void *context, const struct message_done *done),
                                    void *context);
void loose_world_free(struct loose_world *w);
/* The GPU server under test, not started. */
struct gpu_server *loose_world_server(struct loose_world *w);
void loose_world_tell(struct loose_world *w, const struct message *m);
/* One thing happens: an operation goes on or ends, a timer fires. FALSE: nothing can. */
gboolean loose_world_step(struct loose_world *w);
/* Operations failed from now on only as they must. */
void loose_world_calm(struct loose_world *w);

#endif
