/* The own address on the way to a peer; see nic.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend_real/nic.h"
#include "core/error.h"

/* Any: nothing is sent. */
#define SOME_PORT "9"

/* The host of HOST, HOST:PORT, [IPV6]:PORT, [IPV6] or a bare IPv6 address. */
static char *host_of(const char *address)
{
  const char *colon = strchr(address, ':'), *bracket = strchr(address, ']');
  if (address[0] == '[')
    return bracket ? g_strndup(address + 1, bracket - address - 1) : g_strdup("");
  if (colon && !strchr(colon + 1, ':'))
    return g_strndup(address, colon - address);
  return g_strdup(address);
}

/* A datagram socket that is connected has its route looked up and its own address set. */
static gboolean ask_kernel(const struct addrinfo *to, char local[46])
{
  struct sockaddr_storage name;
  socklen_t length = sizeof name;
  int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  gboolean good = fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
                  getsockname(fd, (struct sockaddr *)&name, &length) == 0;
  int reason = errno;
  if (fd >= 0)
    close(fd);
  errno = reason;
  return good && getnameinfo((struct sockaddr *)&name, length, local, 46, NULL, 0, NI_NUMERICHOST) == 0;
}

gboolean route_local_address(const char *address, char local[46], GError **error)
{
  g_autofree char *host = host_of(address);
  const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV};
  struct addrinfo *list = NULL;
  int status = *host ? getaddrinfo(host, SOME_PORT, &hints, &list) : EAI_NONAME;
  if (status != 0)
    return input_error(error, NULL, 0, "%s: %s", address,
                       status == EAI_SYSTEM ? g_strerror(errno) : gai_strerror(status));
  gboolean good = FALSE;
  for (const struct addrinfo *at = list; at && !good; at = at->ai_next)
    good = ask_kernel(at, local);
  if (!good)
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "no route to %s: %s", address, g_strerror(errno));
  freeaddrinfo(list);
  return good;
}
