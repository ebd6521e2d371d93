/* The memory server's side of a server process: arena, shelf, and a reader for shards that it takes over. */
#include "backend_real/server.h"
#include <string.h>

#include "core/memory_server.h"

char *server_data_address(const char *address)
{
  return g_strconcat(address, strchr(address, ':') ? "" : ":0", NULL);
}

static gboolean open_parts(struct server *s, GError **error)
{
  const struct config *config = &s->setup->config;
  uint32_t index = s->options->index;
  g_autofree char *address = server_data_address(s->options->data_address);
  struct shelf_config shelf = {.memory = {s->memory.base, s->memory.bytes},
                               .address = address,
                               .index = index,
                               .options = s->transport_options,
                               .post = server_post_to_reader,
                               .context = s};
  s->shelf = s->transport->shelf_new(&shelf, error);
  if (!s->shelf || !real_world_open_reader(s->rw, s->transport, &s->transport_options, error))
    return FALSE;
  real_world_set_shelf(s->rw, s->transport, s->shelf);
  s->actor = memory_server_new(config, index, s->seam);
  return TRUE;
}

static void actor_free(void *actor)
{
  memory_server_free(actor);
}

static void usage(const struct server *s, struct usage *u)
{
  struct real_usage of_world;
  real_world_usage(s->rw, &of_world);
  u->net_bytes = of_world.net_bytes; /* shards taken over */
  u->pool_bytes = memory_server_peak(s->actor);
}

static char *describe(const struct server *s)
{
  return g_strdup_printf("memory-server %u: transport %s on %s; arena of %.3f GB in %s", s->options->index,
                         s->transport->name, s->transport->shelf_address(s->shelf),
                         (double)s->memory.bytes / 1e9, s->memory.pages);
}

const struct server_kind server_kind_memory = {.name = "memory-server",
                                               .memory_bytes = memory_server_bytes,
                                               .open = open_parts,
                                               .actor_free = actor_free,
                                               .actor = &memory_server_actor,
                                               .usage = usage,
                                               .describe = describe};
