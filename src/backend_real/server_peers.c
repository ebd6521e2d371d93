/* Whom a server reads from: the memory servers of the pool, as the controller's process and the core's
 * controller tell of them, and what the data connections show.
 *
 * The controller knows who lives. A server whose data connections broke although the controller hears it is
 * tried again after a while; one that the controller gave up is left alone until it says otherwise. */
#include "backend_real/server.h"

#include <string.h>

#define RETRY_NS NS_PER_S

static const struct run_peer *peer_find(const GArray *peers, uint32_t server)
{
  for (guint i = 0; i < peers->len; i++)
    if (g_array_index(peers, struct run_peer, i).server == server)
      return &g_array_index(peers, struct run_peer, i);
  return NULL;
}

static void tell_actor(struct server *s, uint32_t server, gboolean alive)
{
  struct message m = {.type = MESSAGE_MEMBER, .member = {.index = server, .alive = alive}};
  s->ear_ops->message(s->ear, ACTOR(ACTOR_CONTROLLER, 0), &m);
}

static void peer_open(struct server *s, uint32_t server)
{
  const struct run_peer *peer = peer_find(s->peers, server);
  if (peer)
    real_world_peer(s->rw, server, peer->address, &peer->secret);
}

static void peer_drop(struct server *s, uint32_t server)
{
  s->broken &= ~(1ULL << server);
  real_world_drop_peer(s->rw, server);
}

static void peer_mend(struct server *s, uint32_t server)
{
  if (!(s->broken >> server & 1))
    return;
  s->broken &= ~(1ULL << server);
  peer_open(s, server);
  tell_actor(s, server, TRUE);
}

static void retry(void *context, uint64_t tag)
{
  struct server *s = context;
  if (s->actor && (uint32_t)(tag >> 32) == s->spec.run)
    peer_mend(s, (uint32_t)tag);
}

void server_peer_broken(void *context, uint32_t server)
{
  struct server *s = context;
  g_message("run %u: reads from memory server %u failed; trying again in 1 s", s->spec.run, server);
  s->broken |= 1ULL << server;
  loop_timer(s->loop, loop_now(s->loop) + RETRY_NS, retry, s, (uint64_t)s->spec.run << 32 | server);
}

/* A memory server that began anew has another address and another secret: what was asked of the one before
 * will not be answered. */
static gboolean is_another(const struct run_peer *a, const struct run_peer *b)
{
  return strcmp(a->address, b->address) != 0 || memcmp(&a->secret, &b->secret, sizeof a->secret) != 0;
}

void server_peers_set(struct server *s, GArray *peers)
{
  g_autoptr(GArray) before = s->peers;
  s->peers = peers;
  for (guint i = 0; i < peers->len; i++) {
    const struct run_peer *peer = &g_array_index(peers, struct run_peer, i);
    const struct run_peer *old = peer_find(before, peer->server);
    if (old && is_another(old, peer))
      real_world_drop_peer(s->rw, peer->server);
    if (s->broken >> peer->server & 1)
      peer_mend(s, peer->server);
    else if (!(s->given_up >> peer->server & 1))
      peer_open(s, peer->server);
  }
}

/* PLACE names those that hold shards and answer; reads from any other would hold the change up for ever. */
static void follow_place(struct server *s, const struct message_place *m)
{
  uint32_t servers = s->setup->config.memory_servers;
  for (uint32_t i = 0; i < servers; i++)
    if (m->from >> i & 1)
      peer_open(s, i);
    else if (m->present >> i & 1)
      peer_drop(s, i);
}

/* --- letters
 * --------------------------------------------------------------------------------------------------------*/

static void post(struct server *s, actor_id to, gboolean to_shelf, const void *bytes, size_t size)
{
  struct run_letter letter = {
      .run = s->spec.run, .peer = to, .to_shelf = to_shelf, .bytes = bytes, .size = size};
  g_autoptr(GBytes) frame = run_letter_pack(&letter);
  gsize length;
  const void *data = g_bytes_get_data(frame, &length);
  link_send(s->link, FRAME_LETTER, data, length);
}

void server_post_to_shelf(void *context, uint32_t server, const void *letter, size_t size)
{
  post(context, ACTOR(ACTOR_MEMORY_SERVER, server), TRUE, letter, size);
}

void server_post_to_reader(void *context, actor_id reader, const void *letter, size_t size)
{
  post(context, reader, FALSE, letter, size);
}

void server_letter(struct server *s, const uint8_t *data, size_t size)
{
  struct run_letter letter;
  g_autoptr(GVariant) hold = NULL;
  if (!run_letter_unpack(data, size, &letter, &hold) || letter.run != s->spec.run || !s->rw)
    return;
  if (!letter.to_shelf)
    real_world_letter(s->rw, ACTOR_INDEX(letter.peer), letter.bytes, letter.size);
  else if (s->shelf && s->transport->shelf_letter)
    s->transport->shelf_letter(s->shelf, letter.peer, letter.bytes, letter.size);
}

void server_peers_follow(struct server *s, const struct message *m)
{
  uint64_t bit = m->type == MESSAGE_MEMBER ? 1ULL << m->member.index : 0;
  if (m->type == MESSAGE_PLACE) {
    follow_place(s, &m->place);
  } else if (m->type == MESSAGE_MEMBER && m->member.alive) {
    s->given_up &= ~bit;
    s->broken &= ~bit;
    peer_open(s, m->member.index);
  } else if (m->type == MESSAGE_MEMBER) {
    s->given_up |= bit;
    peer_drop(s, m->member.index);
  }
}
