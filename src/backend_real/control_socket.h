/* ZeroMQ sockets of the control plane: their limits, their events, and what an endpoint is. */
#ifndef DM_CONTROL_SOCKET_H
#define DM_CONTROL_SOCKET_H

#include <glib.h>
#include <zmq.h>

struct control_socket {
  void *context, *socket;
  void *monitor; /* events of the socket's connections come here */
};

enum control_event_kind {
  CONTROL_CONNECTED,    /* the handshake is done: peers trust each other */
  CONTROL_REFUSED,      /* the handshake failed, for `why` */
  CONTROL_DENIED,       /* the other end does not know our key */
  CONTROL_DISCONNECTED, /* a connection has ended */
};

struct control_event {
  enum control_event_kind kind;
  const char *why;
};

/* A hub's end (ROUTER) or a link's (DEALER), neither bound nor connected. FALSE + DM_ERROR_FAILED. */
gboolean control_socket_open(struct control_socket *control, gboolean hub, const char *endpoint,
                             GError **error);
/* What is sent already goes out, for half a second at most. after_shutdown may be NULL: called when blocked
 * calls on other sockets of the context have returned. */
void control_socket_close(struct control_socket *control, void (*after_shutdown)(void *data), void *data);
/* What is sent already need not go out. */
void control_socket_drop(struct control_socket *control);
/* To watch, edge triggered, with control_socket_ready. The monitor's tells reliably, as nobody sends there,
 * once it was read until control_socket_event found nothing. */
int control_socket_fd(void *socket);
gboolean control_socket_ready(void *socket);
/* The next part, if one is there. */
gboolean control_socket_receive(void *socket, zmq_msg_t *part);
/* Skips the parts that came after `last`, which nobody expects. FALSE: there were some. */
gboolean control_socket_last_part(void *socket, zmq_msg_t *last);
/* FALSE: there is none. */
gboolean control_socket_event(struct control_socket *control, struct control_event *event);

/* Reached from this machine only: tcp to a loopback address (as a number), or ipc. */
gboolean endpoint_is_local(const char *endpoint);
/* FALSE + DM_ERROR_INPUT unless endpoint is tcp://HOST:PORT or ipc://PATH. */
gboolean endpoint_check(const char *endpoint, GError **error);

#endif
