/* The head of an HTTP request to the metrics server: one GET is all that it answers, so all that is asked of
 * a request is which status it gets. */
#ifndef DM_METRICS_REQUEST_H
#define DM_METRICS_REQUEST_H

#include <glib.h>

#define METRICS_REQUEST_MAX 4096 /* bytes of the head; a longer one gets 431 */

/* 0: its head is not whole yet; 200: GET or HEAD of /metrics; else why not: 400 (no HTTP), 404, 405, 431,
 * 505. *head: no body is wanted. `size` at most METRICS_REQUEST_MAX; any bytes. */
guint metrics_request_status(const char *data, gsize size, gboolean *head);

#endif
