/* A process's metrics, served over HTTP to Prometheus: GET /metrics on the loop's thread, in text format
 * 0.0.4.
 *
 * Nothing that a client does costs more than a bound: few connections at once (of too many the oldest goes),
 * a short head, a deadline for each, one request each, and the text is made anew ten times a second at most.
 */
#ifndef DM_METRICS_HTTP_H
#define DM_METRICS_HTTP_H

#include "backend_real/loop.h"

struct metrics_http;

/* Listens on "PORT" (loopback), "HOST:PORT" or "[IPV6]:PORT"; what is served there anyone who reaches it may
 * read. Returns the socket; -1 + DM_ERROR_INPUT or DM_ERROR_FAILED. */
int metrics_listen(const char *address, GError **error);

/* Takes the listening socket. render appends the text. */
struct metrics_http *metrics_http_new(struct loop *loop, int socket,
                                      void (*render)(void *context, GString *text), void *context);
void metrics_http_free(struct metrics_http *http);

#endif
