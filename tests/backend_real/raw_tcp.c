/* A reader of raw TCP; see raw_tcp.h. */
#include "raw_tcp.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "backend_real/transport_tcp_wire.h"

static int raw_connect(const char *address)
{
  struct sockaddr_in name = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons(atoi(strrchr(address, ':') + 1))};
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct timeval patience = {.tv_sec = 20};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  cr_assert_eq(connect(fd, (struct sockaddr *)&name, sizeof name), 0);
  return fd;
}

int raw_to(const struct lab *lab)
{
  return raw_connect(lab->ops->shelf_address(lab->shelf));
}

void raw_send(int fd, const void *data, size_t size)
{
  for (size_t done = 0; done < size;) {
    ssize_t sent = send(fd, (const uint8_t *)data + done, size - done, MSG_NOSIGNAL);
    if (sent < 0) {
      cr_assert(errno == EPIPE || errno == ECONNRESET, "%s", strerror(errno));
      return;
    }
    done += sent;
  }
}

void raw_ticket(int fd, const struct ticket_secret *secret, uint32_t reader, uint32_t shelf, uint32_t model,
                uint64_t serial)
{
  uint8_t wire[WIRE_TICKET_BYTES];
  wire_ticket_put(secret, reader, shelf, model, serial, wire);
  raw_send(fd, wire, sizeof wire);
}

void raw_request(int fd, uint32_t model, uint64_t offset, uint32_t bytes, uint64_t id)
{
  uint8_t wire[WIRE_REQUEST_BYTES];
  wire_request_put(&(struct wire_request){.model = model, .offset = offset, .bytes = bytes, .id = id}, wire);
  raw_send(fd, wire, sizeof wire);
}

gboolean raw_answered(int fd, uint32_t model, uint64_t offset, uint32_t bytes, uint64_t id)
{
  uint8_t head[WIRE_REPLY_BYTES], end[WIRE_END_BYTES];
  g_autofree uint8_t *payload = g_malloc(bytes);
  struct wire_reply reply;
  gboolean good;
  if (recv(fd, head, sizeof head, MSG_WAITALL) != sizeof head ||
      !wire_reply_parse(head, &(struct wire_request){.bytes = bytes, .id = id}, &reply) ||
      reply.bytes != bytes || recv(fd, payload, bytes, MSG_WAITALL) != (ssize_t)bytes ||
      recv(fd, end, sizeof end, MSG_WAITALL) != sizeof end || !wire_end_parse(end, &good) || !good)
    return FALSE;
  for (uint32_t i = 0; i < bytes; i++)
    if (payload[i] != lab_byte(model, offset + i))
      return FALSE;
  return TRUE;
}

gboolean raw_closed(int fd)
{
  uint8_t byte;
  ssize_t got = recv(fd, &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}
