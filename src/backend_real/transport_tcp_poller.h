/* A thread that serves many sockets, for both ends of the TCP transport.
 *
 * Sockets are watched edge-triggered, so a turn (the owner's function) goes on until the socket blocks, its
 * share of the round is used up, or its pace forbids more. All calls but poller_wake, poller_add and those
 * that begin and end the poller are made on its thread. */
#ifndef DM_TRANSPORT_TCP_POLLER_H
#define DM_TRANSPORT_TCP_POLLER_H

#include <glib.h>

struct poller;

/* Embedded in what owns the socket; POLLEE before the first use. All fields are the poller's. Without a
 * descriptor it still can be woken. */
struct pollee {
  int fd;
  gboolean hung_up; /* no more data will come than what the socket holds */
  enum { POLLEE_IDLE, POLLEE_READY, POLLEE_LATER } state;
  gint64 later_ns;
  struct pollee *next, *before; /* of the list that state names */
  gboolean woken;
  struct pollee *next_woken;
};

#define POLLEE ((struct pollee){.fd = -1})

/* What comes after a turn. */
enum turn {
  TURN_BLOCKED, /* until the socket has news, or poller_wake */
  TURN_AGAIN,   /* soon, after the others */
  TURN_LATER,   /* at *again_ns, or as TURN_BLOCKED */
  TURN_OVER,    /* the owner has removed it (poller_remove) and may have freed it */
};

typedef enum turn poller_turn(void *context, struct pollee *pollee, gint64 *again_ns);

struct poller *poller_new(const char *name, poller_turn *turn, void *context, GError **error);
/* The thread runs until poller_stop. */
void poller_start(struct poller *poller);
/* Ends the thread, and waits for that. What is still watched may then be removed by whoever asked for it. */
void poller_stop(struct poller *poller);
void poller_free(struct poller *poller);

/* Watches fd for the pollee and gives it a turn. FALSE: errno. */
gboolean poller_add(struct poller *poller, struct pollee *pollee, int fd);
/* It gets no turn any more, and its descriptor, if it has one, is closed. */
void poller_remove(struct poller *poller, struct pollee *pollee);
/* From any thread, as long as the pollee cannot be removed meanwhile: it gets a turn. */
void poller_wake(struct poller *poller, struct pollee *pollee);

gint64 poller_clock(void); /* CLOCK_MONOTONIC, ns */

#endif
