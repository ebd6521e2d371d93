/* ZeroMQ sockets; see control_socket.h. */
#include "backend_real/control_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "backend_real/control_frame.h"
#include "backend_real/outbox.h"
#include "core/error.h"

enum {
  SOCKETS_MAX = 64, /* of a context; connections are not sockets */
  BACKLOG = 256,
  /* A silent peer is noticed within their sum: 2 s. */
  HEARTBEAT_MS = 500,
  HEARTBEAT_TIMEOUT_MS = 1500,
  HANDSHAKE_MS = 5000, /* a stranger's time to prove itself */
  LINGER_MS = 500,
  RECONNECT_MS = 50,
  RECONNECT_MAX_MS = 500,
  /* Our own windows end sooner; these are for peers that lie about what they read, and leave room for signs
   * of life. One that is full would stop heartbeats too. A link trusts its hub, which goes on with signs of
   * life while the link's process is busy with something long. */
  SEND_FRAMES = 4 * WINDOW_FRAMES,
  HUB_RECEIVE_FRAMES = 2 * WINDOW_FRAMES,
  LINK_RECEIVE_FRAMES = 16384,
};

#define MONITOR_ENDPOINT "inproc://control.monitor"
#define MONITOR_EVENTS                                                                                       \
  (ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |           \
   ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)

/* --- endpoints
 * ---------------------------------------------------------------------------------------------------*/

/* ZeroMQ itself takes any number, modulo 2^16. */
static gboolean is_port(const char *text)
{
  guint64 port;
  return strcmp(text, "*") == 0 || g_ascii_string_to_unsigned(text, 10, 0, UINT16_MAX, &port, NULL);
}

/* The host of tcp://HOST:PORT without brackets; NULL = none. */
static char *tcp_host(const char *endpoint)
{
  if (!g_str_has_prefix(endpoint, "tcp://"))
    return NULL;
  const char *host = endpoint + strlen("tcp://"), *colon = strrchr(host, ':');
  if (!colon || colon == host || !is_port(colon + 1))
    return NULL;
  if (*host == '[' && colon[-1] == ']')
    return g_strndup(host + 1, (gsize)(colon - host - 2));
  return g_strndup(host, (gsize)(colon - host));
}

gboolean endpoint_is_local(const char *endpoint)
{
  if (g_str_has_prefix(endpoint, "ipc://"))
    return TRUE;
  g_autofree char *host = tcp_host(endpoint);
  struct in_addr four;
  struct in6_addr six;
  if (host && inet_pton(AF_INET, host, &four) == 1)
    return ntohl(four.s_addr) >> 24 == 127;
  return host && inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

gboolean endpoint_check(const char *endpoint, GError **error)
{
  g_autofree char *host = tcp_host(endpoint);
  if (host || (g_str_has_prefix(endpoint, "ipc://") && endpoint[strlen("ipc://")] != '\0'))
    return TRUE;
  return input_error(error, NULL, 0, "expected tcp://HOST:PORT, found \"%s\"", endpoint);
}

/* --- sockets
 * -----------------------------------------------------------------------------------------------------*/

static gboolean set(void *socket, int option, int value)
{
  return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

static gboolean set_options(void *socket, gboolean hub, const char *endpoint)
{
  int64_t message_max = FRAME_BYTES_MAX;
  return set(socket, ZMQ_LINGER, LINGER_MS) && set(socket, ZMQ_SNDHWM, SEND_FRAMES) &&
         set(socket, ZMQ_RCVHWM, hub ? HUB_RECEIVE_FRAMES : LINK_RECEIVE_FRAMES) &&
         set(socket, ZMQ_HEARTBEAT_IVL, HEARTBEAT_MS) &&
         set(socket, ZMQ_HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS) &&
         set(socket, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS) &&
         zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &message_max, sizeof message_max) == 0 &&
         set(socket, ZMQ_IPV6, strchr(endpoint, '[') != NULL) &&
         (hub ? set(socket, ZMQ_ROUTER_MANDATORY, 1) && set(socket, ZMQ_BACKLOG, BACKLOG)
              : set(socket, ZMQ_RECONNECT_IVL, RECONNECT_MS) &&
                    set(socket, ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS));
}

static gboolean open_monitor(struct control_socket *control)
{
  if (zmq_socket_monitor(control->socket, MONITOR_ENDPOINT, MONITOR_EVENTS) != 0)
    return FALSE;
  control->monitor = zmq_socket(control->context, ZMQ_PAIR);
  /* Unbounded: a full one would block ZeroMQ's own thread. */
  return control->monitor && set(control->monitor, ZMQ_LINGER, 0) && set(control->monitor, ZMQ_RCVHWM, 0) &&
         zmq_connect(control->monitor, MONITOR_ENDPOINT) == 0;
}

gboolean control_socket_open(struct control_socket *control, gboolean hub, const char *endpoint,
                             GError **error)
{
  *control = (struct control_socket){.context = zmq_ctx_new()};
  if (control->context && zmq_ctx_set(control->context, ZMQ_MAX_SOCKETS, SOCKETS_MAX) == 0)
    control->socket = zmq_socket(control->context, hub ? ZMQ_ROUTER : ZMQ_DEALER);
  if (control->socket && set_options(control->socket, hub, endpoint) && open_monitor(control))
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "no socket for the control plane: %s", zmq_strerror(errno));
  control_socket_close(control, NULL, NULL);
  return FALSE;
}

void control_socket_drop(struct control_socket *control)
{
  set(control->socket, ZMQ_LINGER, 0);
}

void control_socket_close(struct control_socket *control, void (*after_shutdown)(void *data), void *data)
{
  if (control->socket) {
    zmq_socket_monitor(control->socket, NULL, 0);
    zmq_close(control->socket);
  }
  if (control->monitor)
    zmq_close(control->monitor);
  if (control->context) {
    zmq_ctx_shutdown(control->context);
    if (after_shutdown)
      after_shutdown(data);
    while (zmq_ctx_term(control->context) != 0 && errno == EINTR)
      ;
  }
  *control = (struct control_socket){0};
}

int control_socket_fd(void *socket)
{
  int fd = -1;
  size_t size = sizeof fd;
  zmq_getsockopt(socket, ZMQ_FD, &fd, &size);
  return fd;
}

gboolean control_socket_ready(void *socket)
{
  int events = 0, status;
  do {
    size_t size = sizeof events;
    status = zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size);
  } while (status != 0 && errno == EINTR);
  return status == 0 && (events & ZMQ_POLLIN) != 0;
}

gboolean control_socket_receive(void *socket, zmq_msg_t *part)
{
  int size;
  do
    size = zmq_msg_recv(part, socket, ZMQ_DONTWAIT);
  while (size < 0 && errno == EINTR);
  return size >= 0;
}

gboolean control_socket_last_part(void *socket, zmq_msg_t *last)
{
  gboolean none = TRUE;
  for (int more = zmq_msg_more(last); more; none = FALSE) {
    zmq_msg_t part;
    zmq_msg_init(&part);
    more = control_socket_receive(socket, &part) && zmq_msg_more(&part);
    zmq_msg_close(&part);
  }
  return none;
}

/* --- events
 * ------------------------------------------------------------------------------------------------------*/

static const char *protocol_failure(uint32_t code)
{
  if (code == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH)
    return "one end has keys, the other none";
  if (code == ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC)
    return "a key does not fit";
  return "it does not speak the protocol";
}

/* An event comes as a part of u16 number and u32 value, in this machine's order, and one with the address.
 */
gboolean control_socket_event(struct control_socket *control, struct control_event *event)
{
  uint8_t part[6];
  char address[1];
  uint16_t number;
  uint32_t value;
  if (zmq_recv(control->monitor, part, sizeof part, ZMQ_DONTWAIT) != (int)sizeof part)
    return FALSE;
  zmq_recv(control->monitor, address, sizeof address, ZMQ_DONTWAIT);
  memcpy(&number, part, sizeof number);
  memcpy(&value, part + sizeof number, sizeof value);
  if (number == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
    *event = (struct control_event){CONTROL_CONNECTED, NULL};
  else if (number == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
    *event = (struct control_event){CONTROL_DENIED, "its key is not authorized"};
  else if (number == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)
    *event = (struct control_event){CONTROL_REFUSED, protocol_failure(value)};
  else if (number == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
    *event =
        (struct control_event){CONTROL_REFUSED, "it broke off before the keys were proven: do they fit?"};
  else
    *event = (struct control_event){CONTROL_DISCONNECTED, "the connection broke off"};
  return TRUE;
}
