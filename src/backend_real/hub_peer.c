/* The hub's table of connections; see hub_peer.h. */
#include "backend_real/hub_peer.h"

#include <string.h>

static guint routing_hash(gconstpointer key)
{
  const struct routing *routing = key;
  guint hash = routing->size;
  for (size_t i = 0; i < routing->size; i++)
    hash = 31 * hash + routing->bytes[i];
  return hash;
}

static gboolean routing_equal(gconstpointer a, gconstpointer b)
{
  const struct routing *x = a, *y = b;
  return x->size == y->size && memcmp(x->bytes, y->bytes, x->size) == 0;
}

static void peer_free(gpointer data)
{
  struct peer *peer = data;
  outbox_free(peer->outbox);
  g_free(peer->why);
  g_free(peer);
}

GHashTable *peer_table_new(void)
{
  return g_hash_table_new_full(routing_hash, routing_equal, NULL, peer_free);
}

struct peer *peer_table_add(GHashTable *table, void *socket, const struct routing *routing, const char *user,
                            const char *address)
{
  struct peer *peer = g_new0(struct peer, 1);
  peer->routing = *routing;
  g_strlcpy(peer->user, user, sizeof peer->user);
  g_strlcpy(peer->address, address, sizeof peer->address);
  peer->outbox = outbox_new(socket, routing->bytes, routing->size);
  g_hash_table_insert(table, &peer->routing, peer);
  return peer;
}
