/* Sockets of the TCP transport: addresses and options. All sockets are non-blocking and closed on exec. */
#ifndef DM_TRANSPORT_TCP_SOCKET_H
#define DM_TRANSPORT_TCP_SOCKET_H

#include <glib.h>

/* Listens on "HOST:PORT" or "[IPV6]:PORT" (port 0 = any; host * = every address). -1 + DM_ERROR_INPUT:
 * malformed, unknown host; + DM_ERROR_FAILED: cannot listen there. */
int socket_listen(const char *address, GError **error);
/* Only takes the address, for an end whose data goes another way: two ends cannot have the same, and who
 * connects to it is refused. Errors as above. */
int socket_reserve(const char *address, GError **error);
/* The address that a listening or reserving socket got, in the same form. */
char *socket_address(int fd);
/* Begins to connect; the socket gets writable when it has come to something. Host names are looked up here,
 * which may block; numeric addresses are not. -1: malformed, unknown or refused at once, with errors as
 * above. */
int socket_connect(const char *address, GError **error);
/* Options of a connection's socket, either end. */
void socket_tune(int fd);

#endif
