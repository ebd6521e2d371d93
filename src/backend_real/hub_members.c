/* Who holds which place, and how a peer is lost: told to the owner from the loop, never from inside one of
 * its calls, once for each that joined, and after the frames that came before its connection ended. */
#include "backend_real/hub_internal.h"

#include <string.h>

#include "core/config.h"
#include "core/units.h"

/* Frames of a connection that has ended are still read, unless others hold that up for so long. */
#define LAST_FRAMES_NS (100 * NS_PER_MS)

static const uint32_t places[HUB_KINDS] = {
    [ACTOR_CLIENT] = 1024,
    [ACTOR_GPU_SERVER] = GPU_SERVERS_MAX,
    [ACTOR_MEMORY_SERVER] = MEMORY_SERVERS_MAX,
};

struct peer *hub_place(const struct hub *hub, actor_id id)
{
  uint32_t kind = ACTOR_KIND(id), index = ACTOR_INDEX(id);
  return kind < HUB_KINDS && index < places[kind] ? hub->place[kind][index] : NULL;
}

void hub_mark_dirty(struct hub *hub, struct peer *peer)
{
  if (peer->dirty)
    return;
  peer->dirty = TRUE;
  g_ptr_array_add(hub->dirty, peer);
}

/* --- losses
 * ------------------------------------------------------------------------------------------------------*/

static void settle_later(struct hub *hub);

static void add_pending(struct hub *hub, struct peer *peer)
{
  if (!peer->pending)
    g_ptr_array_add(hub->pending, peer);
  peer->pending = TRUE;
  settle_later(hub);
}

static void leave_place(struct hub *hub, struct peer *peer, const char *why)
{
  if (peer->state == PEER_JOINED) {
    hub->place[ACTOR_KIND(peer->id)][ACTOR_INDEX(peer->id)] = NULL;
    g_free(peer->why);
    peer->why = g_strdup(why);
    add_pending(hub, peer);
  }
  peer->state = PEER_OUT;
}

void hub_refuse(struct hub *hub, struct peer *peer, const char *why)
{
  if (peer->state == PEER_OUT)
    return;
  if (peer->state == PEER_JOINED) {
    hub->expelled++;
    control_log_peer(peer->id, why);
  } else {
    refusals_log(&hub->refusals, peer->address, peer->user, why);
  }
  leave_place(hub, peer, why);
  outbox_clear(peer->outbox);
  if (peer->gone)
    return;
  hub->touched = TRUE;
  outbox_frame(peer->outbox, FRAME_REFUSED, why, MIN(strlen(why), frame_payload_max(FRAME_REFUSED)));
  outbox_flush_all(peer->outbox);
}

void hub_leave(struct hub *hub, struct peer *peer)
{
  outbox_clear(peer->outbox);
  leave_place(hub, peer, HUB_LEFT);
}

/* The place is kept until its last frames are read. */
void hub_lose_connection(struct hub *hub, struct peer *peer, const char *why)
{
  if (peer->gone)
    return;
  peer->gone = TRUE;
  peer->gone_at = loop_now(hub->loop);
  outbox_clear(peer->outbox);
  if (peer->state == PEER_JOINED)
    peer->why = g_strdup(why);
  else
    peer->state = PEER_OUT;
  add_pending(hub, peer);
}

/* Tells the owner; forgets the connection if it is over. */
static void settle(struct hub *hub, struct peer *peer)
{
  if (peer->state == PEER_JOINED) {
    control_log_peer(peer->id, peer->why);
    hub->place[ACTOR_KIND(peer->id)][ACTOR_INDEX(peer->id)] = NULL;
    peer->state = PEER_OUT;
  }
  g_autofree char *why = g_steal_pointer(&peer->why);
  actor_id id = peer->id;
  peer->pending = FALSE;
  if (peer->gone) {
    if (peer->dirty)
      g_ptr_array_remove_fast(hub->dirty, peer);
    g_hash_table_remove(hub->peers, &peer->routing);
  }
  if (why) {
    hub->lost++;
    hub->ops->lost(hub->context, id, why);
  }
}

static gboolean has_last_frames(struct hub *hub, const struct peer *peer)
{
  hub->touched = TRUE;
  return peer->state == PEER_JOINED && loop_now(hub->loop) - peer->gone_at < LAST_FRAMES_NS &&
         control_socket_ready(hub->control.socket);
}

/* `keep_last`: leaves alone those who may have frames to read. */
static void settle_all(struct hub *hub, gboolean keep_last)
{
  g_autoptr(GPtrArray) pending = hub->pending;
  hub->pending = g_ptr_array_new(); /* the owner may expel more while it is told */
  for (guint i = 0; i < pending->len; i++) {
    struct peer *peer = pending->pdata[i];
    if (keep_last && has_last_frames(hub, peer))
      g_ptr_array_add(hub->pending, peer);
    else
      settle(hub, peer);
  }
  if (hub->pending->len > 0)
    settle_later(hub);
}

static void settle_due(void *context, uint64_t tag)
{
  (void)tag;
  struct hub *hub = context;
  hub->settle_timer = 0;
  settle_all(hub, TRUE);
}

static void settle_later(struct hub *hub)
{
  if (hub->settle_timer == 0)
    hub->settle_timer = loop_timer(hub->loop, loop_now(hub->loop), settle_due, hub, 0);
}

void hub_replace(struct hub *hub, struct peer *peer)
{
  hub_lose_connection(hub, peer, PEER_GONE);
  settle_all(hub, FALSE);
}

/* --- joining
 * -----------------------------------------------------------------------------------------------------*/

/* Of two who claim one place, the one that started later has it, if it is the same key's. NULL = it is free
 * now. */
static const char *claim(struct hub *hub, const struct peer *peer, actor_id id, uint64_t epoch)
{
  struct peer *holder = hub_place(hub, id);
  if (!holder || holder->gone)
    return NULL;
  if (strcmp(holder->user, peer->user) != 0)
    return "its place is held by another key";
  if (holder->epoch >= epoch)
    return holder->epoch == epoch ? "its place is taken" : "its place is taken by one that started later";
  hub_refuse(hub, holder, "its place was taken by one that started later");
  return NULL;
}

/* Several clients may be there at once: which of them has which place is nobody's business. */
static uint32_t choose_place(const struct hub *hub, const struct hello *hello)
{
  uint32_t index = 0;
  if (hello->role != ACTOR_CLIENT || hello->index != NO_INDEX)
    return hello->index;
  while (index < places[ACTOR_CLIENT] && hub->place[ACTOR_CLIENT][index])
    index++;
  return index;
}

static const char *join(struct hub *hub, struct peer *peer, const struct hello *hello)
{
  uint32_t index = choose_place(hub, hello);
  if (index >= places[hello->role])
    return hello->index == NO_INDEX ? "there is no place left" : "a hello with a place that there is not";
  actor_id id = ACTOR(hello->role, index);
  const char *why = claim(hub, peer, id, hello->epoch);
  if (why)
    return why;
  settle_all(hub, FALSE); /* who held the place is lost before another joins */
  peer->id = id;
  peer->epoch = hello->epoch;
  peer->state = PEER_JOINED;
  hub->place[hello->role][index] = peer;
  uint8_t welcome[WELCOME_BYTES];
  outbox_frame(peer->outbox, FRAME_WELCOME, welcome, welcome_encode(welcome));
  why = hub->ops->joined(hub->context, id, hello);
  if (why && peer->state == PEER_JOINED) {
    hub->place[hello->role][index] = NULL;
    peer->state = PEER_NEW; /* it never joined: no loss is told */
  } else if (!why) {
    hub_mark_dirty(hub, peer);
  }
  return why;
}

void hub_hello(struct hub *hub, struct peer *peer, const struct frame *frame)
{
  struct hello hello;
  const char *why = frame->kind == FRAME_HELLO ? hello_decode(frame->data, frame->size, &hello)
                                               : "its first frame is no hello";
  if (!why)
    why = join(hub, peer, &hello);
  if (why) {
    hub_refuse(hub, peer, why);
  } else if (peer->state == PEER_JOINED) {
    g_autofree char *joined = g_strdup_printf("joined, version %s", hello.version);
    control_log_peer(peer->id, joined);
  }
}

void hub_members_init(struct hub *hub)
{
  for (int kind = 0; kind < HUB_KINDS; kind++)
    hub->place[kind] = g_new0(struct peer *, places[kind]);
  hub->dirty = g_ptr_array_new();
  hub->pending = g_ptr_array_new();
}

void hub_members_clear(struct hub *hub)
{
  loop_timer_cancel(hub->loop, hub->settle_timer);
  for (int kind = 0; kind < HUB_KINDS; kind++)
    g_free(hub->place[kind]);
  g_ptr_array_unref(hub->dirty);
  g_ptr_array_unref(hub->pending);
}
