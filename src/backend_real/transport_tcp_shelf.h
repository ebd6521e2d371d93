/* Inside the TCP shelf: what its files share.
 *
 * transport_tcp_shelf.c owns the shelf: who may come in, what is served, the listening socket.
 * transport_tcp_connection.c serves one connection. A connection belongs to the thread of its poller; the
 * fields that others look at are under the shelf's door. */
#ifndef DM_TRANSPORT_TCP_SHELF_H
#define DM_TRANSPORT_TCP_SHELF_H

#include <pthread.h>
#include <sys/socket.h>
#include "backend_real/pace.h"
#include "backend_real/transport.h"
#include "backend_real/transport_log.h"
#include "backend_real/transport_tcp_poller.h"
#include "backend_real/transport_tcp_served.h"
#include "backend_real/transport_tcp_wire.h"

#define CONNECTION_INPUT   2048 /* bytes of requests that are taken in advance */
#define CONNECTION_ANSWERS 16   /* most that go out in one piece */

/* A reader that may come; kept until the end, since its window of tickets must outlive it. */
struct visitor {
  gboolean admitted;
  struct ticket_secret secret;
  struct ticket_window window;
  uint32_t connections;
};

/* What is sent to one request. */
struct answer {
  struct wire_request request;
  gint64 came_ns;    /* when a link of the shelf's pace had carried the request */
  gint64 begin_ns;   /* when it begins to carry this; 0: not put on it yet, or there is no pace */
  uint32_t promised; /* bytes of payload that the head tells: all that was asked for, or 0 */
  gboolean decided;  /* which of the two */
  gboolean given_up; /* they were promised, but are no longer served */
};

struct connection {
  struct pollee pollee; /* must be first */
  struct shelf *shelf;
  struct poller *poller;
  struct sockaddr_storage from;

  /* Under the door. */
  struct connection *next, *before; /* of all of the shelf, oldest first */
  struct visitor *visitor;          /* NULL until a ticket was good */
  gint64 deadline_ns;               /* for that */
  gint doomed;                      /* atomic: to be closed */

  /* The poller's thread's own. */
  struct wire_rights rights;
  uint32_t reader;
  uint8_t input[CONNECTION_INPUT];
  uint32_t input_begin, input_end;
  struct answer answer[CONNECTION_ANSWERS]; /* a ring: to be sent, in order */
  uint32_t first_answer, answers;
  uint64_t sent; /* of the first, with its head and end */
};

struct shelf {
  struct transport_log log;
  struct memory memory;
  uint32_t index;
  char *address;
  struct pace *in, *out; /* NULL: no limit */
  uint64_t bytes;        /* of payload sent; atomic */

  /* Held for reading while bytes of memory are being sent; writers are preferred. */
  pthread_rwlock_t serving;
  struct served *served;

  GMutex door;
  GHashTable *visitors; /* actor_id -> struct visitor; looked up, never walked */
  struct connection *first, *last;
  uint32_t strangers; /* connections without a visitor */
  uint64_t refused;   /* connections closed for want of a good ticket */

  struct pollee listener; /* of poller[0] */
  struct poller **poller;
  uint32_t pollers, next_poller;
};

/* Checks a connection's ticket, marks it as used, and gives the connection its rights. NULL, or why not. */
const char *shelf_check_ticket(struct shelf *shelf, struct connection *connection,
                               const struct ticket *ticket);
/* Ends a connection, on its own thread; why NULL: an ordinary end, which is not logged. */
void shelf_close(struct connection *connection, const char *why);

enum turn connection_turn(struct connection *connection, gint64 *again_ns);

#endif
