/* The hub: one ROUTER socket for all peers; see control.h.
 *
 * A peer is a connection, known by the routing id that our own socket gave it and by the user id (the key)
 * that authentication gave it: a frame counts as a peer's only if both are its own. */
#include "backend_real/hub_internal.h"

#include <errno.h>
#include <string.h>
#include <zmq.h>

#include "core/error.h"
#include "core/units.h"

/* ZeroMQ tells that a connection has ended, not which: all are tried, once its own thread has cleaned up; and
 * now and then in any case. */
#define PROBE_AFTER_NS (2 * NS_PER_MS)
#define SWEEP_NS       (500 * NS_PER_MS)

/* --- connections that end
 * --------------------------------------------------------------------------------------------*/

static void probe_all(struct hub *hub)
{
  GHashTableIter iter;
  gpointer value;
  hub->touched = TRUE;
  g_hash_table_iter_init(&iter, hub->peers);
  while (g_hash_table_iter_next(&iter, NULL, &value)) {
    struct peer *peer = value;
    const char *why = peer->gone ? NULL : outbox_probe(peer->outbox);
    if (why && strcmp(why, PEER_GONE) == 0)
      hub_lose_connection(hub, peer, why);
    else if (why)
      hub_refuse(hub, peer, why);
  }
}

static void probe(void *context, uint64_t tag)
{
  (void)tag;
  struct hub *hub = context;
  hub->probe_timer = 0;
  probe_all(hub);
}

static void sweep(void *context, uint64_t tag)
{
  (void)tag;
  struct hub *hub = context;
  hub->sweep_timer = loop_timer(hub->loop, loop_now(hub->loop) + SWEEP_NS, sweep, hub, 0);
  probe_all(hub);
}

/* One whose key is not authorized was logged by who looked for it. */
static void monitor_readable(void *context)
{
  struct hub *hub = context;
  struct control_event event;
  while (control_socket_event(&hub->control, &event)) {
    if (event.kind == CONTROL_REFUSED)
      refusals_log(&hub->refusals, NULL, NULL, event.why);
    else if (event.kind == CONTROL_DISCONNECTED && hub->probe_timer == 0)
      hub->probe_timer = loop_timer(hub->loop, loop_now(hub->loop) + PROBE_AFTER_NS, probe, hub, 0);
  }
}

/* --- sending
 * ------------------------------------------------------------------------------------------------------*/

static void flush(void *context)
{
  struct hub *hub = context;
  hub->touched |= hub->dirty->len > 0;
  for (guint i = 0; i < hub->dirty->len; i++) {
    struct peer *peer = hub->dirty->pdata[i];
    peer->dirty = FALSE;
    if (peer->state != PEER_JOINED || peer->gone)
      continue;
    const char *why = outbox_flush(peer->outbox);
    if (why && strcmp(why, PEER_GONE) == 0)
      hub_lose_connection(hub, peer, why);
    else if (why)
      hub_refuse(hub, peer, why);
  }
  g_ptr_array_set_size(hub->dirty, 0);
}

static struct peer *find_peer(const struct hub *hub, actor_id id)
{
  struct peer *peer = hub_place(hub, id);
  return peer && !peer->gone ? peer : NULL;
}

static void appended(struct hub *hub, struct peer *peer, gboolean good)
{
  if (good)
    hub_mark_dirty(hub, peer);
  else
    hub_refuse(hub, peer, PEER_STUCK);
}

void hub_send(struct hub *hub, actor_id to, enum frame_kind kind, const void *data, size_t size)
{
  struct peer *peer = find_peer(hub, to);
  if (peer)
    appended(hub, peer, outbox_frame(peer->outbox, kind, data, size));
}

void hub_message(struct hub *hub, actor_id to, uint32_t run, const struct message *message)
{
  struct peer *peer = find_peer(hub, to);
  if (peer)
    appended(hub, peer, outbox_message(peer->outbox, run, message));
}

/* --- life
 * ---------------------------------------------------------------------------------------------------------*/

static gboolean check_config(const struct hub_config *config, GError **error)
{
  if (!endpoint_check(config->endpoint, error))
    return FALSE;
  if (!config->keys && !endpoint_is_local(config->endpoint))
    return input_error(error, NULL, 0,
                       "%s can be reached from other machines, and needs keys: see `keygen --help`",
                       config->endpoint);
  if (config->keys && !config->authorized)
    return input_error(error, NULL, 0, "expected a folder of the public keys that may connect");
  return TRUE;
}

static gboolean set_keys(struct hub *hub, const struct hub_config *config, GError **error)
{
  void *socket = hub->control.socket;
  const int yes = 1;
  if (!config->keys)
    return TRUE;
  hub->admission = admission_new(hub->control.context, config->authorized, &hub->refusals, error);
  if (!hub->admission)
    return FALSE;
  if (zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &yes, sizeof yes) == 0 &&
      zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, config->keys->secret_key, KEY_TEXT) == 0 &&
      zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, ADMISSION_DOMAIN, strlen(ADMISSION_DOMAIN)) == 0)
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "no encryption: %s", zmq_strerror(errno));
  return FALSE;
}

static gboolean bind_endpoint(struct hub *hub, const char *endpoint, GError **error)
{
  char last[256];
  size_t size = sizeof last;
  if (zmq_bind(hub->control.socket, endpoint) != 0)
    return input_error(error, NULL, 0, "cannot listen on %s: %s", endpoint, zmq_strerror(errno));
  if (zmq_getsockopt(hub->control.socket, ZMQ_LAST_ENDPOINT, last, &size) != 0)
    return input_error(error, NULL, 0, "cannot listen on %s: %s", endpoint, zmq_strerror(errno));
  hub->endpoint = g_strdup(last);
  return TRUE;
}

struct hub *hub_new(struct loop *loop, const struct hub_config *config, const struct hub_ops *ops,
                    void *context, GError **error)
{
  if (!check_config(config, error))
    return NULL;
  struct hub *hub = g_new0(struct hub, 1);
  *hub =
      (struct hub){.loop = loop, .ops = ops, .context = context, .peers = peer_table_new(), .touched = TRUE};
  refusals_init(&hub->refusals);
  hub_members_init(hub);
  if (!control_socket_open(&hub->control, TRUE, config->endpoint, error) || !set_keys(hub, config, error) ||
      !bind_endpoint(hub, config->endpoint, error)) {
    hub_free(hub);
    return NULL;
  }
  hub->socket_watch =
      loop_watch_edge(loop, control_socket_fd(hub->control.socket), hub_ready, hub_readable, hub);
  hub->monitor_watch = loop_watch(loop, control_socket_fd(hub->control.monitor), monitor_readable, hub);
  monitor_readable(hub);
  hub->sweep_timer = loop_timer(loop, loop_now(loop) + SWEEP_NS, sweep, hub, 0);
  loop_before_wait(loop, flush, hub);
  return hub;
}

static void say_goodbye(struct hub *hub)
{
  GHashTableIter iter;
  gpointer value;
  g_hash_table_iter_init(&iter, hub->peers);
  while (g_hash_table_iter_next(&iter, NULL, &value)) {
    struct peer *peer = value;
    if (peer->state == PEER_JOINED && !peer->gone && outbox_frame(peer->outbox, FRAME_BYE, NULL, 0))
      outbox_flush_all(peer->outbox);
  }
}

static void join_admission(void *data)
{
  admission_free(data);
}

void hub_free(struct hub *hub)
{
  if (!hub)
    return;
  say_goodbye(hub);
  loop_before_wait_remove(hub->loop, flush, hub);
  loop_timer_cancel(hub->loop, hub->probe_timer);
  loop_timer_cancel(hub->loop, hub->sweep_timer);
  loop_unwatch(hub->socket_watch);
  loop_unwatch(hub->monitor_watch);
  control_socket_close(&hub->control, join_admission, hub->admission);
  g_hash_table_unref(hub->peers);
  hub_members_clear(hub);
  refusals_clear(&hub->refusals);
  g_free(hub->endpoint);
  g_free(hub);
}

const char *hub_endpoint(const struct hub *hub)
{
  return hub->endpoint;
}

void hub_set_limits(struct hub *hub, uint32_t run, const struct message_limits *limits)
{
  hub->rules = (struct message_rules){.set = TRUE, .run = run, .limits = *limits};
}

void hub_expel(struct hub *hub, actor_id id, const char *why)
{
  struct peer *peer = find_peer(hub, id);
  if (peer)
    hub_refuse(hub, peer, why);
}

void hub_counts(struct hub *hub, struct hub_counts *counts)
{
  GHashTableIter at;
  gpointer value;
  *counts = (struct hub_counts){
      .refused = refusals_count(&hub->refusals), .expelled = hub->expelled, .lost = hub->lost};
  g_hash_table_iter_init(&at, hub->peers);
  while (g_hash_table_iter_next(&at, NULL, &value)) { /* only counted: their order does not show */
    const struct peer *peer = value;
    if (peer->state == PEER_JOINED && !peer->gone)
      counts->joined[ACTOR_KIND(peer->id)]++;
  }
}
