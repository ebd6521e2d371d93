/* Sockets of the TCP transport; see transport_tcp_socket.h. */
#include "backend_real/transport_tcp_socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/error.h"

typedef struct addrinfo AddressList;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(AddressList, freeaddrinfo)

/* Cuts "HOST:PORT" or "[HOST]:PORT" in two. */
static gboolean split(const char *address, char **host, char **port, GError **error)
{
  const char *colon = strrchr(address, ':');
  if (!colon || colon == address || !colon[1] || strlen(colon + 1) > 5 ||
      strspn(colon + 1, "0123456789") != strlen(colon + 1) || atoi(colon + 1) > 65535)
    return input_error(error, NULL, 0, "expected HOST:PORT or [IPV6]:PORT, found \"%s\"", address);
  gboolean bracketed = address[0] == '[' && colon[-1] == ']' && colon - address > 2;
  gboolean bare = !memchr(address, ':', colon - address) && !strpbrk(address, "[]");
  if (!bracketed && !bare)
    return input_error(error, NULL, 0, "expected HOST:PORT or [IPV6]:PORT, found \"%s\"", address);
  *host = bracketed ? g_strndup(address + 1, colon - address - 2) : g_strndup(address, colon - address);
  *port = g_strdup(colon + 1);
  return TRUE;
}

static AddressList *look_up(const char *address, gboolean passive, GError **error)
{
  g_autofree char *host = NULL, *port = NULL;
  if (!split(address, &host, &port, error))
    return NULL;
  gboolean any = passive && strcmp(host, "*") == 0;
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                           .ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0)};
  AddressList *list = NULL;
  int status = getaddrinfo(any ? NULL : host, port, &hints, &list);
  if (status == 0)
    return list;
  input_error(error, NULL, 0, "%s: %s", address,
              status == EAI_SYSTEM ? g_strerror(errno) : gai_strerror(status));
  return NULL;
}

static int fail(int fd, const char *what, const char *address, GError **error)
{
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "cannot %s %s: %s", what, address, g_strerror(errno));
  if (fd >= 0)
    close(fd);
  return -1;
}

static int open_socket(const AddressList *to)
{
  return socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

int socket_listen(const char *address, GError **error)
{
  g_autoptr(AddressList) list = look_up(address, TRUE, error);
  if (!list)
    return -1;
  int fd = open_socket(list), on = 1;
  if (fd < 0)
    return fail(fd, "listen on", address, error);
  /* A memory server that starts again takes its old port although old connections are still fading. */
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, list->ai_addr, list->ai_addrlen) < 0 || listen(fd, SOMAXCONN) < 0)
    return fail(fd, "listen on", address, error);
  return fd;
}

int socket_reserve(const char *address, GError **error)
{
  g_autoptr(AddressList) list = look_up(address, TRUE, error);
  if (!list)
    return -1;
  int fd = open_socket(list);
  if (fd < 0 || bind(fd, list->ai_addr, list->ai_addrlen) < 0)
    return fail(fd, "take the address", address, error);
  return fd;
}

char *socket_address(int fd)
{
  struct sockaddr_storage name;
  socklen_t length = sizeof name;
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (getsockname(fd, (struct sockaddr *)&name, &length) < 0 ||
      getnameinfo((struct sockaddr *)&name, length, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return g_strdup("");
  return g_strdup_printf(name.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

int socket_connect(const char *address, GError **error)
{
  g_autoptr(AddressList) list = look_up(address, FALSE, error);
  if (!list)
    return -1;
  int fd = open_socket(list);
  if (fd < 0)
    return fail(fd, "connect to", address, error);
  socket_tune(fd);
  if (connect(fd, list->ai_addr, list->ai_addrlen) < 0 && errno != EINPROGRESS)
    return fail(fd, "connect to", address, error);
  return fd;
}

void socket_tune(int fd)
{
  int on = 1;
  /* Requests and the last piece of a reply must not wait for an acknowledgement of what went before. */
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  /* A host that vanished, or a network that lets nothing through, is noticed within 10 s, whether the other
   * end is waited for or is to be told something. The kernel of a process that is merely stopped answers. */
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){2}, sizeof(int));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &(int){2}, sizeof(int));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &(int){4}, sizeof(int));
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &(unsigned){10000}, sizeof(unsigned));
}
