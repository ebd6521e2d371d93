/* A memory server: the shards it holds and where they lie. GPU servers read them one-sided, so it only says
 * what may be read, follows changes of the plan by fetching what it lacks from the other memory servers, and
 * sends heartbeats. An actor of world.h. */
#ifndef DM_MEMORY_SERVER_H
#define DM_MEMORY_SERVER_H

#include "core/config.h"
#include "core/world.h"

struct memory_server;

struct memory_server *memory_server_new(const struct config *config, uint32_t index, struct world *world);
void memory_server_free(struct memory_server *server);
extern const struct actor_ops memory_server_actor;

/* How large its host memory must be for the places that it names: what it may hold, at most every model once,
 * and slack. */
uint64_t memory_server_bytes(const struct config *config, uint32_t index);
/* The most bytes of shards that it ever held. */
uint64_t memory_server_peak(const struct memory_server *server);
/* Those that it holds now. */
uint64_t memory_server_held(const struct memory_server *server);

#endif
