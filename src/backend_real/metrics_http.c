/* The metrics server; see metrics_http.h. */
#define G_LOG_DOMAIN "metrics"

#include "backend_real/metrics_http.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend_real/metrics_request.h"
#include "backend_real/transport_tcp_socket.h"
#include "core/units.h"

#define CLIENTS_MAX     8
#define CLIENT_NS       (5 * NS_PER_S)
#define RENDER_NS       (100 * NS_PER_MS)
#define ACCEPT_AGAIN_NS NS_PER_S /* when no descriptor was left for a client */
#define LEFT_OVER_MAX   65536    /* bytes after its request that a client may send before it is cut off */

struct client {
  struct metrics_http *http;
  int fd; /* -1: free */
  uint64_t order, deadline;
  struct watch *readable, *writable;
  char request[METRICS_REQUEST_MAX];
  gsize got, left_over;
  GString *answer; /* NULL: not yet */
  gsize sent;
};

struct metrics_http {
  struct loop *loop;
  int socket;
  struct watch *watch; /* NULL: pauses */
  void (*render)(void *context, GString *text);
  void *context;
  GString *text;
  int64_t rendered;
  uint64_t accepted;
  struct client client[CLIENTS_MAX];
};

int metrics_listen(const char *address, GError **error)
{
  g_autofree char *loopback = strchr(address, ':') ? NULL : g_strconcat("127.0.0.1:", address, NULL);
  int fd = socket_listen(loopback ? loopback : address, error);
  if (fd < 0)
    g_prefix_error(error, "--metrics: ");
  return fd;
}

static void client_close(struct client *client)
{
  loop_timer_cancel(client->http->loop, client->deadline);
  loop_unwatch(client->readable);
  loop_unwatch(client->writable);
  if (client->answer)
    g_string_free(client->answer, TRUE);
  close(client->fd);
  *client = (struct client){.http = client->http, .fd = -1};
}

/* --- the answer
 * ---------------------------------------------------------------------------------------------------------*/

static const char *status_text(guint status)
{
  switch (status) {
  case 200:
    return "OK";
  case 404:
    return "Not Found";
  case 405:
    return "Method Not Allowed";
  case 431:
    return "Request Header Fields Too Large";
  case 505:
    return "HTTP Version Not Supported";
  default:
    return "Bad Request";
  }
}

static const GString *current_text(struct metrics_http *http)
{
  int64_t now = loop_now(http->loop);
  if (http->text->len == 0 || now - http->rendered >= RENDER_NS) {
    g_string_truncate(http->text, 0);
    http->render(http->context, http->text);
    http->rendered = now;
  }
  return http->text;
}

static GString *make_answer(struct metrics_http *http, guint status, gboolean head)
{
  GString *answer = g_string_new(NULL);
  g_autoptr(GString) line = g_string_new(NULL);
  const GString *body = line;
  if (status == 200)
    body = current_text(http);
  else
    g_string_printf(line, "%u %s: the metrics are at /metrics\n", status, status_text(status));
  g_string_printf(answer,
                  "HTTP/1.1 %u %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                  "Content-Length: %" G_GSIZE_FORMAT
                  "\r\nCache-Control: no-store\r\n%sConnection: close\r\n\r\n",
                  status, status_text(status), body->len, status == 405 ? "Allow: GET, HEAD\r\n" : "");
  if (!head)
    g_string_append_len(answer, body->str, (gssize)body->len);
  return answer;
}

/* What was not read yet when a socket is closed would reset the connection, and the answer with it: the
 * client closes first, unless it takes too long. */
static void client_send(void *context)
{
  struct client *client = context;
  while (client->sent < client->answer->len) {
    ssize_t sent = send(client->fd, client->answer->str + client->sent, client->answer->len - client->sent,
                        MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!client->writable)
        client->writable = loop_watch_writable(client->http->loop, client->fd, client_send, client);
      return;
    }
    if (sent < 0) {
      client_close(client);
      return;
    }
    client->sent += (gsize)sent;
  }
  loop_unwatch(client->writable);
  client->writable = NULL;
  shutdown(client->fd, SHUT_WR);
}

/* --- the request
 * ------------------------------------------------------------------------------------------------------------*/

/* Bytes that came; FALSE: the client is gone, or nothing is there. */
static gboolean client_receive(struct client *client, void *into, gsize room, gsize *got)
{
  ssize_t size;
  do
    size = recv(client->fd, into, room, 0);
  while (size < 0 && errno == EINTR);
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return FALSE;
  if (size == 0 && client->answer && client->sent < client->answer->len) {
    loop_unwatch(g_steal_pointer(&client->readable)); /* it closed its side only, and still reads */
    return FALSE;
  }
  if (size <= 0) {
    client_close(client);
    return FALSE;
  }
  *got = (gsize)size;
  return TRUE;
}

static void client_readable(void *context)
{
  struct client *client = context;
  char rest[1024];
  gsize got;
  if (client->answer) {
    if (client_receive(client, rest, sizeof rest, &got) && (client->left_over += got) > LEFT_OVER_MAX)
      client_close(client);
    return;
  }
  if (!client_receive(client, client->request + client->got, sizeof client->request - client->got, &got))
    return;
  client->got += got;
  gboolean head;
  guint status = metrics_request_status(client->request, client->got, &head);
  if (status == 0)
    return;
  client->answer = make_answer(client->http, status, head);
  client_send(client);
}

static void client_late(void *context, uint64_t index)
{
  struct metrics_http *http = context;
  http->client[index].deadline = 0;
  client_close(&http->client[index]);
}

/* --- clients
 * ------------------------------------------------------------------------------------------------------------*/

/* A free place, or that of the oldest, who goes. */
static struct client *client_place(struct metrics_http *http)
{
  struct client *oldest = &http->client[0];
  for (int i = 0; i < CLIENTS_MAX; i++) {
    if (http->client[i].fd < 0)
      return &http->client[i];
    if (http->client[i].order < oldest->order)
      oldest = &http->client[i];
  }
  client_close(oldest);
  return oldest;
}

static void accept_some(void *context);

static void accept_again(void *context, uint64_t tag)
{
  struct metrics_http *http = context;
  (void)tag;
  http->watch = loop_watch(http->loop, http->socket, accept_some, http);
}

static void accept_some(void *context)
{
  struct metrics_http *http = context;
  for (int i = 0; i < CLIENTS_MAX; i++) {
    int fd = accept4(http->socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
      g_warning("no client is taken for a second: %s", g_strerror(errno));
      loop_unwatch(g_steal_pointer(&http->watch));
      loop_timer(http->loop, loop_now(http->loop) + ACCEPT_AGAIN_NS, accept_again, http, 0);
    }
    if (fd < 0)
      return;
    struct client *client = client_place(http);
    client->fd = fd;
    client->order = ++http->accepted;
    client->readable = loop_watch(http->loop, fd, client_readable, client);
    client->deadline = loop_timer(http->loop, loop_now(http->loop) + CLIENT_NS, client_late, http,
                                  (uint64_t)(client - http->client));
  }
}

struct metrics_http *metrics_http_new(struct loop *loop, int socket,
                                      void (*render)(void *context, GString *text), void *context)
{
  struct metrics_http *http = g_new0(struct metrics_http, 1);
  g_autofree char *address = socket_address(socket);
  *http = (struct metrics_http){
      .loop = loop, .socket = socket, .render = render, .context = context, .text = g_string_new(NULL)};
  for (int i = 0; i < CLIENTS_MAX; i++)
    http->client[i] = (struct client){.http = http, .fd = -1};
  http->watch = loop_watch(loop, socket, accept_some, http);
  g_message("metrics on http://%s/metrics", address);
  return http;
}

void metrics_http_free(struct metrics_http *http)
{
  if (!http)
    return;
  for (int i = 0; i < CLIENTS_MAX; i++)
    if (http->client[i].fd >= 0)
      client_close(&http->client[i]);
  loop_unwatch(http->watch);
  loop_forget(http->loop, http);
  close(http->socket);
  g_string_free(http->text, TRUE);
  g_free(http);
}
