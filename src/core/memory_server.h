/* A memory server: the shards it holds. GPU servers read them one-sided, so it only keeps account, follows
 * changes of the plan by fetching what it lacks from the other memory servers, and sends heartbeats. An actor
 * of world.h. */
#ifndef DM_MEMORY_SERVER_H
#define DM_MEMORY_SERVER_H

#include "core/config.h"
#include "core/world.h"

struct memory_server;

struct memory_server *memory_server_new(const struct config *config, uint32_t index, struct world *world);
void memory_server_free(struct memory_server *server);
extern const struct actor_ops memory_server_actor;

/* The most bytes of shards that it ever held. */
uint64_t memory_server_peak(const struct memory_server *server);

#endif
