/* A link to the hub: one DEALER socket; see control.h.
 *
 * Until the hub's keys have been proven ZeroMQ tries again and again, as the hub may start later; a
 * connection that ends after that is the end of the link. */
#include "backend_real/control.h"

#include <errno.h>
#include <string.h>
#include <zmq.h>

#include "backend_real/control_frame.h"
#include "backend_real/control_log.h"
#include "backend_real/control_socket.h"
#include "backend_real/outbox.h"
#include "core/error.h"

/* As the hub's. */
enum { ROUND_FRAMES = 256, ROUND_MESSAGES = 1024 };

struct link {
  struct loop *loop;
  const struct link_ops *ops;
  void *context;
  struct control_socket control;
  enum actor_kind role;
  struct outbox *outbox;
  struct watch *socket_watch, *monitor_watch;
  uint64_t timeout_timer, loss_timer;
  struct message_rules rules;
  gboolean welcome;
  gboolean connected;    /* the hub has proven its key */
  gboolean disconnected; /* what has come is still read */
  gboolean touched;      /* used since it was read empty: its descriptor may not tell what came meanwhile */
  gboolean dead;         /* the loss was told, or is about to be */
  char *why;             /* of the loss */
  enum link_loss loss;
  const char *failure; /* of the last try to connect */
  guint calls;         /* of the owner's functions that are running */
  gboolean free_wanted;
  guint messages; /* handed over in this round of the loop */
};

/* --- the end
 * ------------------------------------------------------------------------------------------------------*/

static void destroy(struct link *link)
{
  outbox_free(link->outbox);
  g_free(link->why);
  g_free(link);
}

/* The owner may free the link while one of its functions runs: what is under way then finds it dead. */
static void call_begins(struct link *link)
{
  link->calls++;
}

static void call_ends(struct link *link)
{
  if (--link->calls == 0 && link->free_wanted)
    destroy(link);
}

static void flush(void *context);

/* From here on the loop does not know the link. */
static void detach(struct link *link)
{
  loop_before_wait_remove(link->loop, flush, link);
  loop_timer_cancel(link->loop, link->timeout_timer);
  loop_timer_cancel(link->loop, link->loss_timer);
  g_clear_pointer(&link->socket_watch, loop_unwatch);
  g_clear_pointer(&link->monitor_watch, loop_unwatch);
  control_socket_close(&link->control, NULL, NULL);
}

static void tell_loss(void *context, uint64_t tag)
{
  (void)tag;
  struct link *link = context;
  control_socket_drop(&link->control);
  detach(link);
  call_begins(link);
  link->ops->lost(link->context, link->why);
  call_ends(link);
}

/* The owner learns it in the next round of the loop. */
static void lose(struct link *link, enum link_loss loss, const char *why)
{
  if (link->dead)
    return;
  link->dead = TRUE;
  link->loss = loss;
  link->why = g_strdup(why);
  outbox_clear(link->outbox);
  loop_timer_cancel(link->loop, link->timeout_timer);
  link->loss_timer = loop_timer(link->loop, loop_now(link->loop), tell_loss, link, 0);
}

static void time_out(void *context, uint64_t tag)
{
  (void)tag;
  struct link *link = context;
  g_autofree char *why = g_strdup_printf("the controller gave no welcome in time (%s)",
                                         link->failure ? link->failure : "nobody answers there");
  link->timeout_timer = 0;
  lose(link, LINK_REFUSED, why);
}

/* --- what comes
 * ---------------------------------------------------------------------------------------------------*/

static gboolean hand_over(void *context, uint32_t run, const struct message *message)
{
  struct link *link = context;
  link->messages++;
  link->ops->message(link->context, run, message);
  return !link->dead;
}

/* The hub's own words, for a log: not more than one line of printable characters. */
static void refused(struct link *link, const struct frame *frame)
{
  g_autofree char *text = g_strndup((const char *)frame->data, MIN(frame->size, 200));
  for (char *at = text; *at; at++)
    if (!g_ascii_isprint(*at))
      *at = '?';
  g_autofree char *why = g_strdup_printf("the controller refused: %s", text);
  lose(link, LINK_REFUSED, why);
}

static const char *handle_welcome(struct link *link, const struct frame *frame)
{
  const char *why = link->welcome ? "a second welcome" : welcome_decode(frame->data, frame->size);
  if (why)
    return why;
  link->welcome = TRUE;
  loop_timer_cancel(link->loop, link->timeout_timer);
  link->timeout_timer = 0;
  link->ops->welcome(link->context);
  return NULL;
}

static const char *handle_frame(struct link *link, const struct frame *frame)
{
  if (!link->welcome && frame->kind > FRAME_SIGN)
    return "a frame before its welcome";
  switch (frame->kind) {
  case FRAME_WELCOME:
    return handle_welcome(link, frame);
  case FRAME_REFUSED:
    refused(link, frame);
    return NULL;
  case FRAME_BYE:
    lose(link, LINK_ENDED, "the controller has ended");
    return NULL;
  case FRAME_SIGN:
    return NULL;
  case FRAME_MESSAGES:
    return messages_decode(frame->data, frame->size, &link->rules, ACTOR_CONTROLLER, link->role, hand_over,
                           link);
  default:
    link->ops->frame(link->context, frame->kind, frame->data, frame->size);
    return NULL;
  }
}

static void handle(struct link *link, const uint8_t *data, size_t size, gboolean whole)
{
  struct frame frame;
  const char *why = whole ? frame_parse(data, size, FALSE, &frame) : "a frame of several parts";
  if (!why && !outbox_heard(link->outbox, &frame))
    why = "it claims to have read what was not sent";
  if (!why)
    why = handle_frame(link, &frame);
  if (!why || link->dead)
    return;
  g_autofree char *text = g_strdup_printf("the controller broke the protocol: %s", why);
  lose(link, LINK_REFUSED, text);
}

/* FALSE: nothing is there. */
static gboolean receive(struct link *link)
{
  zmq_msg_t payload;
  zmq_msg_init(&payload);
  gboolean some = control_socket_receive(link->control.socket, &payload);
  if (some)
    handle(link, zmq_msg_data(&payload), zmq_msg_size(&payload),
           control_socket_last_part(link->control.socket, &payload));
  zmq_msg_close(&payload);
  return some;
}

static gboolean socket_ready(void *context)
{
  const struct link *link = context;
  return (link->touched && control_socket_ready(link->control.socket)) || (link->disconnected && !link->dead);
}

/* A dead link is read on, for its descriptor's sake, until the next round of the loop ends it. */
static void socket_readable(void *context)
{
  struct link *link = context;
  gboolean some = TRUE;
  link->messages = 0;
  call_begins(link);
  for (guint frames = 0; some && !link->dead && frames < ROUND_FRAMES && link->messages < ROUND_MESSAGES;
       frames++)
    some = receive(link);
  link->touched = some;
  if (!some && link->disconnected && !link->dead)
    lose(link, LINK_BROKE, "the connection to the controller broke off");
  call_ends(link);
}

static void monitor_readable(void *context)
{
  struct link *link = context;
  struct control_event event;
  while (control_socket_event(&link->control, &event)) {
    if (event.kind == CONTROL_CONNECTED)
      link->connected = TRUE;
    else if (event.kind == CONTROL_DENIED)
      lose(link, LINK_REFUSED, "the controller refused: this key is not authorized");
    else if (event.kind == CONTROL_DISCONNECTED && link->connected)
      link->disconnected = TRUE;
    else if (event.kind == CONTROL_REFUSED)
      link->failure = event.why;
  }
}

/* --- sending
 * ------------------------------------------------------------------------------------------------------*/

static void flush(void *context)
{
  struct link *link = context;
  if (link->dead || link->disconnected || !outbox_pending(link->outbox))
    return;
  link->touched = TRUE;
  const char *why = outbox_flush(link->outbox);
  if (why)
    lose(link, LINK_BROKE, "the controller does not read what it is sent");
}

static void appended(struct link *link, gboolean good)
{
  if (!good)
    lose(link, LINK_BROKE, "the controller does not read what it is sent");
}

void link_send(struct link *link, enum frame_kind kind, const void *data, size_t size)
{
  if (!link->dead)
    appended(link, outbox_frame(link->outbox, kind, data, size));
}

void link_message(struct link *link, uint32_t run, const struct message *message)
{
  if (!link->dead)
    appended(link, outbox_message(link->outbox, run, message));
}

enum link_loss link_loss(const struct link *link)
{
  return link->loss;
}

void link_set_limits(struct link *link, uint32_t run, const struct message_limits *limits)
{
  link->rules = (struct message_rules){.set = TRUE, .run = run, .limits = *limits};
}

/* --- life
 * ---------------------------------------------------------------------------------------------------------*/

static gboolean check_config(const struct link_config *config, const struct hello *hello, GError **error)
{
  if (!endpoint_check(config->endpoint, error))
    return FALSE;
  if (!config->keys && !endpoint_is_local(config->endpoint))
    return input_error(error, NULL, 0, "%s is another machine, and needs keys: see `keygen --help`",
                       config->endpoint);
  if (config->keys && !config->server_key)
    return input_error(error, NULL, 0, "expected the controller's public key");
  if (!memchr(hello->address, '\0', sizeof hello->address) ||
      !memchr(hello->version, '\0', sizeof hello->version))
    return input_error(error, NULL, 0, "expected an address of less than %zu characters",
                       sizeof hello->address);
  return TRUE;
}

static gboolean connect_socket(struct link *link, const struct link_config *config, GError **error)
{
  void *socket = link->control.socket;
  if (config->keys && (zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, config->server_key, KEY_TEXT) != 0 ||
                       zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, config->keys->public_key, KEY_TEXT) != 0 ||
                       zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, config->keys->secret_key, KEY_TEXT) != 0))
    return input_error(error, NULL, 0, "these are no keys: %s", zmq_strerror(errno));
  if (zmq_connect(socket, config->endpoint) == 0)
    return TRUE;
  return input_error(error, NULL, 0, "cannot connect to %s: %s", config->endpoint, zmq_strerror(errno));
}

struct link *link_new(struct loop *loop, const struct link_config *config, const struct hello *hello,
                      const struct link_ops *ops, void *context, GError **error)
{
  if (!check_config(config, hello, error))
    return NULL;
  struct link *link = g_new0(struct link, 1);
  *link = (struct link){.loop = loop, .ops = ops, .context = context, .role = hello->role, .touched = TRUE};
  if (!control_socket_open(&link->control, FALSE, config->endpoint, error) ||
      !connect_socket(link, config, error)) {
    control_socket_close(&link->control, NULL, NULL);
    destroy(link);
    return NULL;
  }
  uint8_t bytes[HELLO_BYTES_MAX];
  link->outbox = outbox_new(link->control.socket, NULL, 0);
  outbox_frame(link->outbox, FRAME_HELLO, bytes, hello_encode(hello, bytes));
  link->socket_watch =
      loop_watch_edge(loop, control_socket_fd(link->control.socket), socket_ready, socket_readable, link);
  link->monitor_watch = loop_watch(loop, control_socket_fd(link->control.monitor), monitor_readable, link);
  link->timeout_timer = loop_timer(loop, loop_now(loop) + config->connect_timeout_ns, time_out, link, 0);
  loop_before_wait(loop, flush, link);
  monitor_readable(link);
  return link;
}

void link_free(struct link *link)
{
  if (!link || link->free_wanted)
    return;
  if (!link->dead && !link->disconnected && outbox_frame(link->outbox, FRAME_BYE, NULL, 0))
    outbox_flush_all(link->outbox);
  detach(link);
  link->dead = link->free_wanted = TRUE;
  call_begins(link);
  call_ends(link);
}
