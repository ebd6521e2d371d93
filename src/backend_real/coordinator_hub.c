/* What a controller's process hears from its hub: who has linked, what peers say, who is lost. */
#include "backend_real/coordinator_internal.h"

#include <string.h>

static const char *on_joined(void *context, actor_id peer, const struct hello *hello)
{
  struct coordinator *c = context;
  if (ACTOR_KIND(peer) == ACTOR_CONTROLLER)
    return "there is a controller";
  if (ACTOR_KIND(peer) == ACTOR_CLIENT)
    return NULL;
  member_linked(c, peer, hello->can);
  if (c->stage != RUN_NONE)
    coordinator_members_changed(c);
  return NULL;
}

static void client_frame(struct coordinator *c, actor_id client, enum frame_kind kind, const uint8_t *data,
                         size_t size)
{
  uint32_t run, number = 0;
  if (kind == FRAME_BEGIN) {
    coordinator_begin(c, client, data, size);
    return;
  }
  if (client != c->client || c->stage == RUN_NONE || !run_numbers_unpack(data, size, &run, &number) ||
      run != c->spec.run)
    return;
  if (kind == FRAME_METER && c->stage == RUN_ON) {
    meter_ask(c, number);
  } else if (kind == FRAME_END && c->stage != RUN_ENDING) {
    c->stage = RUN_ENDING;
    meter_ask(c, number);
  }
}

static void on_frame(void *context, actor_id peer, enum frame_kind kind, const uint8_t *data, size_t size)
{
  struct coordinator *c = context;
  struct member *member = member_find(c, peer);
  if (ACTOR_KIND(peer) == ACTOR_CLIENT)
    client_frame(c, peer, kind, data, size);
  else if (!member || c->stage == RUN_NONE)
    return;
  else if (kind == FRAME_READY)
    member_ready(c, member, data, size);
  else if (kind == FRAME_FAILED)
    member_failed(c, member, data, size);
  else if (kind == FRAME_GRANTED)
    member_granted(c, member, data, size);
  else if (kind == FRAME_METERED || kind == FRAME_ENDED)
    meter_answer(c, member, data, size);
  else if (kind == FRAME_LETTER)
    letter_forward(c, member, data, size);
  else if (kind == FRAME_RECORDS && c->spec.records)
    hub_send(c->hub, c->client, kind, data, size);
}

/* Of a kind that the peer may send: what it may is checked where messages are decoded (control_frame.c). */
static void on_message(void *context, actor_id peer, uint32_t run, const struct message *message)
{
  struct coordinator *c = context;
  struct member *member = member_find(c, peer);
  gboolean client = ACTOR_KIND(peer) == ACTOR_CLIENT;
  if (run != c->spec.run || !c->controller ||
      (client ? peer != c->client : !member || member->stage != STAGE_GOING))
    return;
  c->ear_ops->message(c->ear, client ? ACTOR(ACTOR_CLIENT, 0) : peer, message);
  if (message->type == MESSAGE_JOIN)
    coordinator_member_up(c, member);
}

static void server_lost(struct coordinator *c, struct member *member, const char *why)
{
  actor_id id = member->id;
  gboolean took_part = member->stage >= STAGE_PREPARING;
  member_lost(c, member);
  if (c->stage == RUN_NONE || !took_part)
    return;
  if (c->stage < RUN_ON && member_founds(c, id)) {
    coordinator_fail(c, "%s %u broke off before the run began: %s", peer_name(id), ACTOR_INDEX(id), why);
    return;
  }
  if (c->controller)
    c->ear_ops->peer_lost(c->ear, id);
  meter_check(c);
  members_connect(c); /* nobody waits for its grants any more */
}

static void on_lost(void *context, actor_id peer, const char *why)
{
  struct coordinator *c = context;
  struct member *member = member_find(c, peer);
  if (strcmp(why, HUB_LEFT) == 0)
    g_message("%s %u left", peer_name(peer), ACTOR_INDEX(peer));
  else
    g_message("%s %u is lost: %s", peer_name(peer), ACTOR_INDEX(peer), why);
  if (member)
    server_lost(c, member, why);
  else if (peer == c->client && c->stage != RUN_NONE)
    coordinator_abandon(c);
}

const struct hub_ops coordinator_hub_ops = {
    .joined = on_joined, .frame = on_frame, .message = on_message, .lost = on_lost};
