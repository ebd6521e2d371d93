/* What comes to the hub: frames of a few hundred connections over one socket, each checked to be its peer's
 * own before anything in it is believed. */
#include "backend_real/hub_internal.h"

#include <string.h>
#include <zmq.h>

/* One round of the loop reads so much at most, then timers and other descriptors get their turn. */
enum { ROUND_FRAMES = 256, ROUND_MESSAGES = 1024 };

static gboolean hand_over(void *context, uint32_t run, const struct message *message)
{
  struct hub *hub = context;
  struct peer *peer = hub->speaking;
  hub->messages++;
  hub->ops->message(hub->context, peer->id, run, message);
  return peer->state == PEER_JOINED; /* the owner may have expelled it */
}

static const char *handle_messages(struct hub *hub, struct peer *peer, const struct frame *frame)
{
  hub->speaking = peer;
  return messages_decode(frame->data, frame->size, &hub->rules, ACTOR_KIND(peer->id), ACTOR_CONTROLLER,
                         hand_over, hub);
}

static const char *handle_joined(struct hub *hub, struct peer *peer, const struct frame *frame)
{
  switch (frame->kind) {
  case FRAME_HELLO:
    return "a second hello";
  case FRAME_SIGN:
    return NULL;
  case FRAME_BYE:
    hub_leave(hub, peer);
    return NULL;
  case FRAME_MESSAGES:
    return handle_messages(hub, peer, frame);
  default:
    hub->ops->frame(hub->context, peer->id, frame->kind, frame->data, frame->size);
    return NULL;
  }
}

static void handle(struct hub *hub, struct peer *peer, const uint8_t *data, size_t size, gboolean whole)
{
  if (peer->state == PEER_OUT) {
    if (!peer->ignored)
      refusals_log(&hub->refusals, peer->address, peer->user, "frames after it was out are ignored");
    peer->ignored = TRUE;
    return;
  }
  struct frame frame;
  const char *why = whole ? frame_parse(data, size, TRUE, &frame) : "a frame of several parts";
  if (!why && !outbox_heard(peer->outbox, &frame))
    why = "it claims to have read what was not sent";
  if (why) {
    hub_refuse(hub, peer, why);
    return;
  }
  if (peer->state == PEER_NEW) {
    hub_hello(hub, peer, &frame);
    return;
  }
  why = handle_joined(hub, peer, &frame);
  if (why)
    hub_refuse(hub, peer, why);
  else if (peer->state == PEER_JOINED && !peer->gone && outbox_pending(peer->outbox))
    hub_mark_dirty(hub, peer);
}

/* The peer that these bytes are of: by what our own socket and authentication say of them. */
static struct peer *sender(struct hub *hub, const struct routing *routing, zmq_msg_t *payload)
{
  const char *user = zmq_msg_gets(payload, "User-Id");
  struct peer *peer = g_hash_table_lookup(hub->peers, routing);
  if (!user)
    user = "";
  if (peer && strcmp(peer->user, user) != 0) {
    hub_replace(hub, peer);
    peer = NULL;
  }
  if (peer)
    return peer;
  const char *address = zmq_msg_gets(payload, "Peer-Address");
  return peer_table_add(hub->peers, hub->control.socket, routing, user, address ? address : "");
}

/* FALSE: nothing is there. */
static gboolean receive(struct hub *hub)
{
  void *socket = hub->control.socket;
  struct routing routing;
  zmq_msg_t name, payload;
  zmq_msg_init(&name);
  gboolean some = control_socket_receive(socket, &name);
  routing.size = (uint8_t)MIN(zmq_msg_size(&name), ROUTING_BYTES_MAX);
  memcpy(routing.bytes, zmq_msg_data(&name), routing.size);
  zmq_msg_close(&name);
  if (!some)
    return FALSE;
  zmq_msg_init(&payload);
  if (control_socket_receive(socket, &payload)) {
    gboolean whole = control_socket_last_part(socket, &payload);
    handle(hub, sender(hub, &routing, &payload), zmq_msg_data(&payload), zmq_msg_size(&payload), whole);
  }
  zmq_msg_close(&payload);
  return TRUE;
}

gboolean hub_ready(void *context)
{
  const struct hub *hub = context;
  return hub->touched && control_socket_ready(hub->control.socket);
}

void hub_readable(void *context)
{
  struct hub *hub = context;
  gboolean some = TRUE;
  hub->messages = 0;
  for (guint frames = 0; some && frames < ROUND_FRAMES && hub->messages < ROUND_MESSAGES; frames++)
    some = receive(hub);
  hub->touched = some; /* or again by what is sent in answer, before the loop waits */
}
